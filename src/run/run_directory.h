// The directory that an experiment or a training run is to live in.
#pragma once

#include <filesystem>
#include <string>

namespace cadre::run {

// "train_net_2026-11-22_05-43-52": named by its function and the time, as long as nobody else took that name in the
// same second.
std::string free_name(const std::filesystem::path& storage, const std::string& function);

// Whether a directory holds a store. False also for one that cannot be looked at.
bool holds_store(const std::filesystem::path& directory);

// What is to live there, for messages.
struct Tenant {
  std::string what;     // "experiment"
  std::string a;        // "an experiment"
  std::string restore;  // "Tuner::restore"
};
// Makes the directory of a new one, which nothing else uses. Throws InvalidArgument where somebody does, with what to
// do.
void make_new_directory(const std::filesystem::path& directory, const Tenant& tenant);

// Removes a directory that holds a store, which nobody uses, with all that is in it. The store goes last: whoever is
// interrupted leaves it, or one that make_new_directory takes.
void remove_with_store(const std::filesystem::path& directory);

}  // namespace cadre::run
