// Decides where the workers of an experiment or a training run make and find their files: in its directory, in its
// shared place, or where the nodes see neither, each in its node's own directory. The shared place is the directory
// where the run is published, and where workers work that run on nodes which do not see the run's directory. What is in
// the directory of a node is carried to the run's, and to it, by the engine (engine/cluster/carrier.h); for the
// controller it is as if its workers worked there.
//
// In a shared place a checkpoint is written once, by the worker, to where it stays. To commit it is to rename it to the
// name under which it is published (publish/manifest.h); the run's directory gets the list of its files instead of them
// (storage/remote_directory.h). So whatever reads checkpoints, publishes them or continues elsewhere finds one that is
// published already. A run may have been begun with another work place: reports are looked for in both.
//
// Nodes that see neither, and reach the object storage where the run is published, store checkpoints there, under names
// of their own: an object storage cannot rename. The run's directory has the lists of their files, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/inner_path.h"
#include "engine/engine.h"
#include "publish/place.h"
#include "store/experiment_store.h"

namespace cadre::control {

class WorkPlace {
 public:
  // `directory`: the run's. `engine`: of its workers; must live as long as this object. Throws EngineError if they work
  // in one directory (engine::Engine::directory_of_workers) that is neither the run's nor where it is published.
  WorkPlace(std::filesystem::path directory, const std::optional<publish::Publication>& publication,
            const engine::Engine& engine);

  const std::filesystem::path& directory() const { return directory_; }
  bool is_shared() const { return is_shared_; }
  // Returns the directory in which what workers report and print is found; in it everything has the path that it has in
  // the run's directory, but for checkpoints.
  const std::filesystem::path& root() const { return is_shared_ ? published_ : directory_; }
  // Returns that directory as workers on a node have it.
  std::filesystem::path root(engine::NodeId node) const;
  // Returns what a worker reads in the run's directory, to be brought to it if that is carried: a checkpoint and all
  // objects. Throws StorageError. `checkpoint`: empty for none.
  std::vector<std::string> needs(const std::string& checkpoint) const;
  // Returns the object storage where the run is published, for nodes; empty if it is published in none. Throws
  // StorageFault.
  std::optional<engine::RunStorage> storage_for_nodes() const;
  // Returns a path as workers on a node have it.
  std::filesystem::path path_of(const std::filesystem::path& inner, engine::NodeId node = 0) const;
  // Returns the shared place, if it is one; empty: it is not.
  std::filesystem::path shared() const { return is_shared_ ? published_ : std::filesystem::path(); }
  // Returns the directory where the run is published, also if workers work elsewhere; empty: it is published in none.
  const std::filesystem::path& published() const { return published_; }
  // Returns the generation for the names of directories that workers report (publish::checkpoint_place): a predecessor
  // may be at work there, unnoticed.
  std::int64_t generation() const { return is_shared_ ? generation_ : 1; }

  // Before the first worker starts: brings the checkpoints in the store, and the run's objects, to where workers find
  // them. Blocks while it copies. Throws StorageError.
  void prepare(const store::ExperimentStore& store) const;
  // Makes a directory in which a worker is to run, which exists in the run's directory. What workers print is found in
  // both: the run's directory has links to the files in a shared place.
  void make_directory(const std::filesystem::path& inner) const;

  // Returns the path of a directory that a worker reports, or has reported to an earlier controller.
  std::filesystem::path reported(const std::filesystem::path& inner) const;
  // Makes a reported directory the checkpoint `committed`; does nothing if that was done already. Throws StorageError,
  // also if neither exists.
  void commit(const std::string& reported, const std::string& committed) const;
  // Does the same for a directory that keeps its name.
  void commit_in_place(const std::string& inner) const;
  // Finishes the commit of a directory that an earlier controller has renamed where the run is published, and no more;
  // does nothing if there is none.
  void finish_commit(const std::string& committed) const;
  // Returns the names of directories in `inner` that workers have made where the run is published, and not reported or
  // not seen committed; and removes such a directory.
  std::vector<std::string> reported_where_published(const std::filesystem::path& inner) const;
  void remove_where_published(const base::InnerPath& reported) const;
  // Returns the path at which workers on a node find a committed checkpoint.
  std::filesystem::path checkpoint(const std::string& directory, engine::NodeId node = 0) const;

 private:
  bool is_in_published(const std::filesystem::path& inner) const;
  void list_in_directory(const std::string& committed, std::int64_t generation) const;
  void move_to_shared(const std::string& checkpoint) const;
  void share_objects() const;
  void share_output(const std::filesystem::path& directory, const char* name) const;
  void take_output_back(const std::filesystem::path& directory, const char* name) const;

  std::filesystem::path directory_;
  const engine::Engine& engine_;
  std::filesystem::path published_ = {};
  storage::Uri uri_ = {};  // if it is published
  std::shared_ptr<storage::Storage> storage_ = {};
  std::int64_t generation_ = 1;
  bool is_shared_ = false;
};

}  // namespace cadre::control
