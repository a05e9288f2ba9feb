// The directory of an experiment or a training run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cadre/checkpoint_config.h"

namespace cadre::store {

// Returns ~/cadre_results, where directories are made by default. Throws NotFound if HOME is not set.
std::filesystem::path default_storage_path();

// Returns a name from its function and the time: "train_net_2026-11-22_05-43-52".
std::string default_name(const std::string& function);

// Returns the message that `subject` exists, with what to do. `restore` names the call that continues it.
std::string exists_already(const std::string& subject, const std::string& restore);

// Returns the message how to continue an interrupted run: by the same program, or by `restore`.
std::string how_to_continue(IfExists if_exists, const std::string& restore, const std::filesystem::path& directory);

// The kind of run that uses a directory, and its words for messages.
struct Tenant {
  std::string kind;     // "experiment" or "training_run": `kind` of its stored options
  std::string what;     // "experiment"
  std::string a;        // "an experiment"
  std::string restore;  // "Tuner::restore"
  std::string workers;  // "trials"
};
inline const Tenant experiment_tenant{"experiment", "experiment", "an experiment", "Tuner::restore", "trials"};
inline const Tenant training_run_tenant{"training_run", "training run", "a training run", "Trainer::restore",
                                        "workers"};
// Makes the directory of a new run. Throws InvalidArgument, with what to do, if it is in use or has other contents.
void make_new_directory(const std::filesystem::path& directory, const Tenant& tenant);

// Makes the directory of a new run in a folder, under a name, or followed by "_2", "_3" and so on if the name exists or
// `is_taken`. This call creates it, so concurrent calls get different directories.
std::filesystem::path make_free_directory(const std::filesystem::path& folder, const std::string& name,
                                          const std::function<bool(const std::string&)>& is_taken);

// Removes a directory that holds a store, which no process may use, with all its contents. The store is removed last:
// an interruption leaves the store, or a directory that make_new_directory accepts.
void remove_with_store(const std::filesystem::path& directory);

}  // namespace cadre::store
