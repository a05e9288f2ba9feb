#include "publish/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "base/directory.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/name.h"
#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"
#include "storage/retry.h"
#include "store/experiment_lock.h"
#include "store/experiment_reader.h"
#include "store/object_files.h"
#include "store/read_store.h"
#include "store/run_directory.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

constexpr auto kPatience = std::chrono::seconds(10);  // for a storage that does not answer
constexpr std::string_view kReadingCopy = "cadre_reading";
constexpr std::string_view kRestoring = ".cadre_restoring";
constexpr int kAttempts = 3;  // while another controller keeps publishing

std::unique_ptr<storage::Storage> open(const storage::Uri& uri) {
  if (const std::string fault = base::fault_of_file_name(storage::name_of(uri)); !fault.empty())
    throw InvalidArgument(fmt::format("{} cannot be an experiment: its name is none, {}", shown(uri), fault));
  return storage::open_storage(uri);
}

// Calls `act` with retries. Turns StorageFault (the storage cannot be reached) into InvalidArgument; other errors,
// such as damage, pass through.
template <class Act>
auto reading(const storage::Uri& uri, const Act& act) {
  try {
    return storage::with_patience(kPatience, act);
  } catch (const storage::StorageFault& fault) {
    throw InvalidArgument(fmt::format("{} cannot be read: {}", shown(uri), fault.what()));
  }
}

std::optional<std::string> read_manifest_text(storage::Storage& storage, const storage::Uri& uri) {
  return reading(uri, [&] { return storage.read(kManifestFile); });
}

// Returns the manifest; one without segments if nothing is published.
Manifest read_manifest(storage::Storage& storage, const storage::Uri& uri) {
  const auto text = read_manifest_text(storage, uri);
  return text ? parse_manifest(*text, shown(uri / kManifestFile)) : Manifest();
}

Manifest require_manifest(storage::Storage& storage, const storage::Uri& uri) {
  Manifest manifest = read_manifest(storage, uri);
  if (manifest.segments.empty())
    throw NotFound(fmt::format("nothing is published at {}{}", shown(uri),
                               manifest.generation == 0 ? fmt::format(": it has no {}", kManifestFile)
                                                        : " yet: who began there has not come that far"));
  return manifest;
}

class Download {
 public:
  Download(storage::Storage& storage, const storage::Uri& uri, fs::path directory)
      : storage_(storage), uri_(uri), directory_(std::move(directory)) {}

  // Empties the directory, downloads the store into it, and makes directories without files for the checkpoints that it
  // lists.
  void take_store(const Manifest& manifest) {
    for (const std::string& left : base::list_directory(directory_)) base::remove_tree(directory_ / left);
    std::vector<fs::path> segments;
    for (const SegmentEntry& entry : manifest.segments) segments.push_back(take_segment(entry));
    const store::Places places = store::build_store(directory_, segments);
    for (const fs::path& segment : segments) fs::remove(segment);
    storage::write_published_to(directory_, uri_);
    store::ExperimentReader reader(directory_, store::ExperimentReader::Check::rows);
    for (const store::CheckpointRow& row : reader.checkpoints()) {
      storage::Remote remote = remote_of(row.directory, base::parse_json(row.manifest, row.directory).dict(),
                                         manifest.generation_of(row.id));
      if (const auto place = places.find(row.id); place != places.end()) remote.place = place->second;
      storage::make_remote(directory_ / row.directory, remote);
    }
    trials_ = reader.trials();
  }

  // Downloads the files that a controller continues with: objects, and the output of workers of trials that have not
  // ended.
  void take_files() {
    take_all_below(store::kObjectsDirectory);
    for (const store::TrialRow& trial : trials_) {
      if (store::is_status_of_ended(trial.status)) continue;
      for (const std::string& folder : folders_of(trial)) {
        for (const char* name : {"stdout", "stderr"}) take_if_there(folder + "/" + name);
      }
    }
  }

 private:
  fs::path take_segment(const SegmentEntry& entry) {
    const std::string name = segment_name(entry);
    fs::path file = directory_ / fs::path(name).filename();
    const auto contents = reading(uri_, [&]() -> std::optional<storage::Contents> {
      if (!storage_.find(name)) return std::nullopt;
      return storage_.download(name, file);
    });
    const std::string where = shown(uri_ / name);
    if (!contents) throw StorageError(where + " is missing, without which what is published cannot be read");
    if (contents->size != entry.bytes || storage::checksum_text(*contents) != entry.xxh3)
      throw StorageError(fmt::format("{} is damaged: it has {} bytes with the checksum {} instead of {} with {}", where,
                                     contents->size, storage::checksum_text(*contents), entry.bytes, entry.xxh3));
    return file;
  }

  // Returns the output folders of a trial's workers: its directory, or one folder per rank for a training run (trial 0
  // of its store, without a directory).
  std::vector<std::string> folders_of(const store::TrialRow& trial) {
    if (!trial.directory.empty()) return {trial.directory};
    std::vector<std::string> folders;
    for (int rank = 0;; ++rank) {
      std::string folder = fmt::format("rank_{}", rank);
      if (!reading(uri_, [&] { return storage_.find(folder + "/stdout"); })) return folders;
      folders.push_back(std::move(folder));
    }
  }

  // A bucket may have any names. Throws StorageError for one that leads out of the directory.
  void take(const std::string& name) {
    const fs::path file = directory_ / base::InnerPath(name, shown(uri_));
    base::make_directories(file.parent_path());
    reading(uri_, [&] { return storage_.download(name, file); });
  }
  void take_if_there(const std::string& name) {
    if (reading(uri_, [&] { return storage_.find(name); })) take(name);
  }
  void take_all_below(const std::string& folder) {
    for (const storage::StoredFile& file : reading(uri_, [&] { return storage_.list(folder); })) take(file.name);
  }

  storage::Storage& storage_;
  const storage::Uri& uri_;
  fs::path directory_;
  std::vector<store::TrialRow> trials_ = {};
};

// Returns true if a local directory is the working directory of the run published at a URI.
bool belongs_to(const fs::path& directory, const storage::Uri& uri) {
  const auto where = storage::published_to(directory);
  return where && where->scheme == uri.scheme && where->location == uri.location;
}

// Downloads the store into a directory. Reads the manifest again after an error, because a publishing controller may
// have removed segments meanwhile.
void download_store(Download& download, storage::Storage& storage, const storage::Uri& uri, Manifest manifest) {
  for (int attempt = 1;; ++attempt) {
    try {
      return download.take_store(manifest);
    } catch (const StorageError&) {
      Manifest newer = require_manifest(storage, uri);
      if (attempt == kAttempts || to_text(newer) == to_text(manifest)) throw;
      manifest = std::move(newer);
    }
  }
}

// Returns true if the directory's store is at the published state or has continued from it.
bool continues(const fs::path& directory, const Manifest& manifest) {
  return store::has_passed(directory, manifest.position());
}

std::string put_aside(const fs::path& directory) {
  const std::string name =
      fmt::format("{}.outdated_{}", directory.filename().string(), base::date_text(base::wall_seconds()));
  fs::path other = directory.parent_path() / name;
  for (int i = 2; fs::exists(other); ++i) other = directory.parent_path() / fmt::format("{}_{}", name, i);
  fs::rename(directory, other);
  return other.string();
}

}  // namespace

void require_own(const fs::path& directory, const storage::Uri& uri) {
  if (!belongs_to(directory, uri)) {
    const auto where = storage::published_to(directory);
    throw InvalidArgument(
        fmt::format("the working directory {} belongs to another experiment, {}: set "
                    "PublishConfig::local_path",
                    directory.string(), where ? shown(*where) : "which is published nowhere"));
  }
  if (const auto holder = store::ExperimentLock::holder(directory))
    throw StorageError(fmt::format("the experiment in {} is being run already, by {}; wait for it or stop it first",
                                   directory.string(), *holder));
}

WorkingDirectory working_directory(const storage::Uri& uri, const PublishConfig& config) {
  const std::unique_ptr<storage::Storage> storage = open(uri);
  WorkingDirectory working{.path = local_directory(uri, config)};
  const bool holds_store = store::has_store(working.path);
  const bool is_own = holds_store && belongs_to(working.path, uri);
  const Manifest manifest = is_own ? read_manifest(*storage, uri) : require_manifest(*storage, uri);
  if (holds_store) {
    require_own(working.path, uri);
    if (continues(working.path, manifest)) {
      storage::write_published_to(working.path, uri);  // with the options of this call
      return working;
    }
    working.notes.push_back(
        fmt::format("Warning: the working directory has not all that is published, or something else; it is now {}",
                    put_aside(working.path)));
  } else if (fs::exists(working.path) && !base::list_directory(working.path).empty()) {
    throw InvalidArgument(fmt::format("{} exists and is no working directory of {}: set PublishConfig::local_path",
                                      working.path.string(), shown(uri)));
  }
  // It is elsewhere on the same disk until it is complete.
  base::make_directories_durably(working.path.parent_path());
  const base::TemporaryFolder folder(working.path.parent_path(), kRestoring);
  const fs::path unfinished = folder.path() / working.path.filename();
  base::make_directories(unfinished);
  Download download(*storage, uri, unfinished);
  download_store(download, *storage, uri, manifest);
  download.take_files();
  base::sync_tree(unfinished);
  std::error_code not_there;
  fs::remove(working.path, not_there);
  fs::rename(unfinished, working.path);
  base::sync_directory(working.path.parent_path());
  working.notes.push_back(fmt::format("Continues in {} from what is published, as of {}", working.path.string(),
                                      base::date_text(manifest.time)));
  return working;
}

std::shared_ptr<const fs::path> reading_copy(const storage::Uri& uri) {
  const std::unique_ptr<storage::Storage> storage = open(uri);
  const Manifest manifest = require_manifest(*storage, uri);
  struct Copy {
    base::TemporaryFolder folder{kReadingCopy};
    fs::path path = {};
  };
  const auto owned = std::make_shared<Copy>();
  owned->path = owned->folder.path() / storage::name_of(uri);
  std::shared_ptr<const fs::path> copy(owned, &owned->path);
  base::make_directories(*copy);
  Download download(*storage, uri, *copy);
  download_store(download, *storage, uri, manifest);
  return copy;
}

bool is_in_reading_copy(const fs::path& path) {
  return std::ranges::any_of(path, [](const fs::path& part) { return part.native().starts_with(kReadingCopy); });
}

void fetch_file(const fs::path& directory, const std::string& name) {
  const auto uri = storage::published_to(directory);
  if (!uri || fs::exists(directory / name)) return;
  const std::unique_ptr<storage::Storage> storage = open(*uri);
  reading(*uri, [&] {
    if (storage->find(name)) storage->download(name, directory / name);
    return true;
  });
}

bool is_published(const storage::Uri& uri) {
  const std::unique_ptr<storage::Storage> storage = open(uri);
  const auto text = read_manifest_text(*storage, uri);
  if (!text) return false;
  try {
    return !parse_manifest(*text, shown(uri / kManifestFile)).segments.empty();
  } catch (const StorageError&) {  // damaged: reported when it is used
    return true;
  }
}

bool can_continue(const storage::Uri& uri, const PublishConfig& config) {
  if (is_published(uri)) return true;
  const fs::path local = local_directory(uri, config);
  return store::has_store(local) && belongs_to(local, uri);
}

fs::path local_directory(const storage::Uri& uri, const PublishConfig& config) {
  return place_of(to_string(parent_of(uri)), config).local / storage::name_of(uri);
}

}  // namespace cadre::publish
