// The beginning of an experiment or a training run, and of its continuation: what Tuner and Trainer do before their
// controllers run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "engine/engine.h"
#include "publish/home.h"
#include "publish/place.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "store/held_objects.h"
#include "store/run_directory.h"

namespace cadre::control {

// ---- Existing ones

// Returns the `kind` of the tenant that a directory holds; empty if it holds none, or a store that cannot be read.
std::optional<std::string> kind_in(const std::filesystem::path& directory);
// Returns true if the directory or URI holds one of the tenant's, intact or damaged. Throws InvalidArgument for a URI
// that cannot be read.
bool can_restore(const std::filesystem::path& directory, const PublishConfig& config, const store::Tenant& tenant);

// Returns the directory of an existing one, with links resolved so that it keeps its name; of a published one, the
// working directory. Adds messages for the user. Throws NotFound if there is none, and StorageError.
std::filesystem::path find(const std::filesystem::path& directory, const PublishConfig& config,
                           const store::Tenant& tenant, std::vector<std::string>& notes);
// The options of an existing one, those that it was begun with, and their name in messages.
struct StoredOptions {
  Value options = {};
  Value first_options = {};  // null: the same
  std::string source = {};
};
// Reads them while no controller writes the store. A controller checks the whole store before it writes.
StoredOptions read_options(const std::filesystem::path& directory);

// ---- Sessions

// Owns everything of which there is one at a time: the lock, the lease in a storage, the store opened for writing.
struct Session {
  std::filesystem::path directory;
  store::ExperimentLock lock;
  std::optional<publish::Publication> publication;  // empty: nothing is published
  store::ExperimentStore store;
  store::ObjectsInReach objects{directory};

  std::string name() const { return directory.filename(); }
};

// Begins a new one in the directory, which was made for it, and is removed after an exception but for that of a lock
// that another process has. `write_objects` writes what its options refer to.
Session begin(const std::filesystem::path& directory, const publish::Place& place, const store::Tenant& tenant,
              const std::function<void()>& write_objects, const std::string& function, const Dict& options);
// Continues an existing one.
Session resume(const std::filesystem::path& directory);

// Returns the engine for a run, idle if that has ended (worker/root_engine.h). Throws like throw_interrupted() after a
// signal while nodes are awaited.
std::unique_ptr<engine::Engine> make_engine(const Session& session, const store::Tenant& tenant, IfExists if_exists,
                                            bool has_ended);

// Throws Interrupted with how to continue.
[[noreturn]] void throw_interrupted(const Session& session, const store::Tenant& tenant, IfExists if_exists);

}  // namespace cadre::control
