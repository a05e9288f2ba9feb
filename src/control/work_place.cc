#include "control/work_place.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <utility>

#include "base/directory.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "publish/manifest.h"
#include "publish/upload_directory.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"
#include "store/object_files.h"

namespace cadre::control {
namespace fs = std::filesystem;
namespace {

// Names of the files that a worker prints into, in the directory in which it runs.
constexpr std::array kOutputFiles{"stdout", "stderr"};

bool holds_directory(const fs::path& path) {
  std::error_code unusable;  // a name may be too long for any file
  return fs::is_directory(fs::symlink_status(path, unusable));
}

bool holds_file(const fs::path& path) {
  std::error_code unusable;
  return fs::is_regular_file(fs::symlink_status(path, unusable));
}

bool holds_link(const fs::path& path) {
  std::error_code unusable;
  return fs::is_symlink(fs::symlink_status(path, unusable));
}

}  // namespace

WorkPlace::WorkPlace(fs::path directory, const std::optional<publish::Publication>& publication,
                     const engine::Engine& engine)
    : directory_(std::move(directory)), engine_(engine) {
  if (publication) {
    published_ = publication->directory();
    uri_ = publication->uri;
    storage_ = publication->storage;
    generation_ = publication->lease->generation();
  }
  if (engine.carries_files()) return;
  const fs::path of_workers = engine.directory_of_workers(0);
  if (of_workers.empty() || of_workers == directory_) return;
  if (of_workers != published_)
    throw EngineError(
        fmt::format("workers cannot work in {}: the run's directory is {}", of_workers.string(), directory_.string()));
  is_shared_ = true;
}

fs::path WorkPlace::root(engine::NodeId node) const {
  return engine_.carries_files() ? engine_.directory_of_workers(node) : root();
}

fs::path WorkPlace::path_of(const fs::path& inner, engine::NodeId node) const { return root(node) / inner; }

std::vector<std::string> WorkPlace::needs(const std::string& checkpoint) const {
  std::vector<std::string> needs;
  if (!engine_.carries_files()) return needs;
  if (!checkpoint.empty()) needs.push_back(checkpoint);
  if (!holds_directory(directory_ / store::kObjectsDirectory)) return needs;
  for (const std::string& id : base::list_directory(directory_ / store::kObjectsDirectory)) {
    if (store::size_of_object(id)) needs.push_back(std::string(store::kObjectsDirectory) + "/" + id);
  }
  return needs;
}

std::optional<engine::RunStorage> WorkPlace::storage_for_nodes() const {
  if (storage_ == nullptr || !published_.empty()) return std::nullopt;
  return engine::RunStorage{.uri = uri_,
                            .file = publish::kLeaseFile,
                            .contents = storage_->read(publish::kLeaseFile).value_or(""),
                            .place_of = [generation = generation_](const std::string& reported) {
                              const fs::path path = reported;
                              const auto [name, part] = checkpoint::stored_name(path.filename().string());
                              return engine::RunStorage::Place{
                                  publish::checkpoint_place((path.parent_path() / name).string(), generation), part};
                            }};
}

// ---- Before workers start

void WorkPlace::prepare(const store::ExperimentStore& store) const {
  if (!is_shared_) return;
  base::make_directories(published_);
  for (const store::CheckpointRow& row : store.checkpoints()) move_to_shared(row.directory);
  share_objects();
}

void WorkPlace::share_objects() const {
  const fs::path objects = directory_ / store::kObjectsDirectory;
  if (!holds_directory(objects)) return;
  for (const std::string& id : base::list_directory(objects)) {
    if (!store::size_of_object(id)) continue;
    const fs::path shared = store::object_path(published_, id);
    // Never replaced: workers may have mapped it.
    if (!store::fault_of_object(shared, id, false).empty())
      storage_->upload(objects / id, std::string(store::kObjectsDirectory) + "/" + id);
  }
}

void WorkPlace::make_directory(const fs::path& inner) const {
  if (is_shared_) base::make_directories(published_ / inner);
  for (const char* name : kOutputFiles) is_shared_ ? share_output(inner, name) : take_output_back(inner, name);
}

void WorkPlace::share_output(const fs::path& directory, const char* name) const {
  const fs::path own = directory_ / directory / name;
  const fs::path shared = published_ / directory / name;
  if (holds_link(own)) return;
  if (holds_file(own)) {  // printed on this machine: the published file is an older copy of it
    storage_->upload(own, (directory / name).string());
    fs::remove(own);
  }
  std::error_code error;
  fs::create_symlink(shared, own, error);
  if (error)
    throw StorageError(fmt::format("cannot link {} to {}: {}", own.string(), shared.string(), error.message()));
}

// The engine of this machine opens no links.
void WorkPlace::take_output_back(const fs::path& directory, const char* name) const {
  const fs::path own = directory_ / directory / name;
  if (published_.empty() || !holds_link(own)) return;
  fs::remove(own);
  if (holds_file(published_ / directory / name)) storage_->download((directory / name).string(), own);
}

// ---- Checkpoints

bool WorkPlace::is_in_published(const fs::path& inner) const {
  return !published_.empty() && !holds_directory(directory_ / inner) && holds_directory(published_ / inner);
}

fs::path WorkPlace::reported(const fs::path& inner) const {
  const bool is_there = is_shared_ ? !holds_directory(directory_ / inner) : is_in_published(inner);
  return (is_there ? published_ : directory_) / inner;
}

void WorkPlace::commit(const std::string& reported, const std::string& committed) const {
  if (checkpoint::is_committed(directory_ / committed)) return;
  const std::string place = publish::checkpoint_place(committed, generation_);
  if (!holds_directory(directory_ / reported) && (is_in_published(reported) || is_in_published(place))) {
    checkpoint::commit_directory(published_, reported, place);
    list_in_directory(committed, generation_);
  } else {
    checkpoint::commit_directory(directory_, reported, committed);
    if (is_shared_) move_to_shared(committed);
  }
}

void WorkPlace::commit_in_place(const std::string& inner) const {
  if (!checkpoint::is_committed(directory_ / inner) && !published_.empty() && holds_directory(published_ / inner)) {
    list_in_directory(inner, 1);
  } else if (is_shared_) {
    move_to_shared(inner);
  }
}

void WorkPlace::list_in_directory(const std::string& committed, std::int64_t generation) const {
  const fs::path place = published_ / publish::checkpoint_place(committed, generation);
  storage::make_remote(directory_ / committed,
                       publish::remote_of(committed, checkpoint::list_files(place), generation));
}

// A checkpoint of an earlier controller, whose workers worked in the run's directory.
void WorkPlace::move_to_shared(const std::string& checkpoint) const {
  const fs::path own = directory_ / checkpoint;
  if (!holds_directory(own) || storage::remote_files(own)) return;
  const std::atomic<bool> stop = false;
  Dict files = publish::upload_directory(*storage_, own, publish::checkpoint_place(checkpoint, generation_), stop);
  storage::replace_by_remote(own, publish::remote_of(checkpoint, std::move(files), generation_));
}

void WorkPlace::finish_commit(const std::string& committed) const {
  if (published_.empty() || holds_directory(directory_ / committed)) return;
  for (std::int64_t generation = generation_; generation > 0; --generation) {
    if (!holds_directory(published_ / publish::checkpoint_place(committed, generation))) continue;
    return list_in_directory(committed, generation);
  }
}

std::vector<std::string> WorkPlace::reported_where_published(const fs::path& inner) const {
  if (published_.empty() || !holds_directory(published_ / inner)) return {};
  std::vector<std::string> names = base::list_directory(published_ / inner);
  std::erase_if(names, [](const std::string& name) { return !checkpoint::is_reporting_name(name); });
  return names;
}

void WorkPlace::remove_where_published(const base::InnerPath& reported) const {
  if (!published_.empty() && checkpoint::is_reporting_name(fs::path(reported.text()).filename().native()))
    base::remove_inside(published_, reported);
}

fs::path WorkPlace::checkpoint(const std::string& directory, engine::NodeId node) const {
  if (!is_shared_) return path_of(directory, node);
  const auto remote = storage::remote_files(directory_ / directory);
  return published_ / (remote ? remote->place_of(directory) : directory);
}

}  // namespace cadre::control
