// Where an experiment or a training run lives: in a working directory on a local disk, and, where `storage_path` is no
// such place, published in a storage.
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
  std::filesystem::path local = {};      // where the working directories lie
  std::optional<storage::Uri> uri = {};  // where they are published; empty: nowhere
};
// Of the options' storage_path, empty for the default. Throws InvalidArgument for a URI that is none, and for a
// local_path that is on no local disk.
Place place_of(const std::filesystem::path& storage_path, const PublishConfig& config);

// Whether a path that names an experiment is meant as a published one: a URI, or a directory that holds what is
// published. Its URI then.
std::optional<storage::Uri> published_at(const std::filesystem::path& path);

// What a controller needs to publish: the storage, and its lease there.
struct Publication {
  storage::Uri uri = {};
  std::shared_ptr<storage::Storage> storage = {};
  std::shared_ptr<Lease> lease = {};

  // For a new one in a working directory that was just made; empty where the place has no URI. `restore` is what
  // continues one, for messages. Throws InvalidArgument, with what to do, where something is published already and
  // where the storage cannot be used; StorageError where another controller is at it. The working directory is then
  // gone.
  static std::optional<Publication> begin(const Place& place, const std::filesystem::path& working_directory,
                                          const std::string& restore);
  // For the store in a working directory; empty where that is published nowhere. Throws what begin() does, and
  // StorageError where something else than an earlier state of this store is published.
  static std::optional<Publication> resume(const std::filesystem::path& working_directory);
};

}  // namespace cadre::publish
