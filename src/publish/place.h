// The location of an experiment or a training run: a working directory on a local disk and, if `storage_path` is not
// on a local disk, the storage where it is published.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"
#include "publish/lease.h"
#include "publish/manifest.h"
#include "storage/storage.h"

namespace cadre::publish {

// A folder of experiments.
struct Place {
  std::filesystem::path local = {};      // folder of the working directories
  std::optional<storage::Uri> uri = {};  // where they are published; empty: not published
};
// Returns the place for the option storage_path; empty means the default. Throws InvalidArgument if the URI is invalid
// or local_path is not on a local disk.
Place place_of(const std::filesystem::path& storage_path, const PublishConfig& config);

// Returns the URI if the path of an experiment refers to a published one: it is a URI, or a directory that contains a
// manifest and no store; otherwise empty.
std::optional<storage::Uri> published_at(const std::filesystem::path& path);

// The resources for publishing: the storage and the lease there.
struct Publication {
  storage::Uri uri = {};
  std::shared_ptr<storage::Storage> storage = {};
  std::shared_ptr<Lease> lease = {};

  // Returns the directory where the run is published; empty if it is published in an object storage.
  std::filesystem::path directory() const;

  // Takes the lease for a new run in a working directory that was just made; returns empty if the place has no URI.
  // `restore` is the call that continues a run, for messages. Throws InvalidArgument, with advice, if something is
  // published already or the storage cannot be used, and StorageError if another controller holds the lease. After an
  // exception the working directory is removed.
  static std::optional<Publication> begin(const Place& place, const std::filesystem::path& working_directory,
                                          const std::string& restore);
  // Takes the lease for the store in a working directory; returns empty if it is not published. Throws like begin(),
  // and StorageError if the published state is not an earlier state of this store.
  static std::optional<Publication> resume(const std::filesystem::path& working_directory);
};

}  // namespace cadre::publish
