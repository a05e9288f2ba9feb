// The directory that an experiment or a training run is to live in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cadre/checkpoint_config.h"

namespace cadre::run {

// "train_net_2026-11-22_05-43-52": named by its function and the time.
std::string default_name(const std::string& function);

// Returns whether a directory holds a store, as store::has_store does.
bool holds_store(const std::filesystem::path& directory);

// Returns the message that `subject` exists, with what to do. `restore` names the call that continues it.
std::string exists_already(const std::string& subject, const std::string& restore);

// Returns how to continue an interrupted run: by the same program, or by `restore`.
std::string how_to_continue(IfExists if_exists, const std::string& restore, const std::filesystem::path& directory);

// What is to live there, for messages.
struct Tenant {
  std::string what;     // "experiment"
  std::string a;        // "an experiment"
  std::string restore;  // "Tuner::restore"
};
// Makes the directory of a new one, which nothing else uses. Throws InvalidArgument where somebody does, with what to
// do.
void make_new_directory(const std::filesystem::path& directory, const Tenant& tenant);

// Makes the directory of a new one in a folder under a name, or with "_2", "_3" and so on behind it where that is there
// or `is_taken`. It was made by this call, so nobody else who makes one has it.
std::filesystem::path make_free_directory(const std::filesystem::path& folder, const std::string& name,
                                          const std::function<bool(const std::string&)>& is_taken);

// Removes a directory that holds a store, which nobody uses, with all that is in it. The store goes last: whoever is
// interrupted leaves it, or one that make_new_directory takes.
void remove_with_store(const std::filesystem::path& directory);

}  // namespace cadre::run
