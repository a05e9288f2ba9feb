#include "publish/place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "cadre/error.h"
#include "storage/local_disk.h"
#include "storage/remote_directory.h"
#include "store/read_store.h"
#include "store/run_directory.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

fs::path default_local_path() {
  fs::path usual = store::default_storage_path();
  if (storage::is_on_local_disk(usual)) return usual;
  return fs::path("/var/tmp") / fmt::format("cadre_results_{}", ::getuid());
}

storage::Uri uri_of_directory(const fs::path& directory) {
  return {.scheme = "file", .location = fs::absolute(directory).lexically_normal().string()};
}

// See Lease::Setting for `accept`.
Publication take_over(const storage::Uri& uri, std::function<void(const Manifest&)> accept) {
  Publication publication{.uri = uri};
  try {
    publication.storage = storage::open_storage(uri);
  } catch (const storage::StorageFault& fault) {
    throw InvalidArgument(fmt::format("the storage path {} cannot be used: {}", shown(uri), fault.what()));
  }
  publication.lease =
      std::make_shared<Lease>(Lease::Setting{.storage = publication.storage, .uri = uri, .accept = std::move(accept)});
  return publication;
}

}  // namespace

Place place_of(const fs::path& storage_path, const PublishConfig& config) {
  const bool is_uri = storage::is_uri(storage_path.native());
  const fs::path plain =
      fs::absolute(storage_path.empty() ? store::default_storage_path() : storage_path).lexically_normal();
  if (!is_uri && storage::is_on_local_disk(plain)) return {.local = plain};
  Place place{.local = config.local_path.empty() ? default_local_path() : config.local_path,
              .uri = is_uri ? storage::parse_uri(storage_path.native()) : uri_of_directory(plain)};
  place.local = fs::absolute(place.local).lexically_normal();
  if (!storage::is_on_local_disk(place.local))
    throw InvalidArgument(fmt::format(
        "{} is published, so it needs a working directory on a local disk, and {} is on none (or on a file system that "
        "is not known to be one): set PublishConfig::local_path",
        shown(*place.uri), place.local.string()));
  return place;
}

std::optional<storage::Uri> published_at(const fs::path& path) {
  if (storage::is_uri(path.native())) return storage::parse_uri(path.native());
  std::error_code unreadable;
  if (store::has_store(path) || !fs::exists(path / kManifestFile, unreadable)) return std::nullopt;
  return uri_of_directory(path);
}

fs::path Publication::directory() const { return storage::directory_of(uri); }

std::optional<Publication> Publication::begin(const Place& place, const fs::path& working_directory,
                                              const std::string& restore) {
  if (!place.uri) return std::nullopt;
  const storage::Uri uri = *place.uri / working_directory.filename().string();
  try {
    Publication publication = take_over(uri, [&](const Manifest& manifest) {
      if (!manifest.segments.empty()) throw InvalidArgument(store::exists_already(shown(uri), restore));
    });
    storage::write_published_to(working_directory, uri);
    return publication;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(working_directory, ignored);
    throw;
  }
}

std::optional<Publication> Publication::resume(const fs::path& working_directory) {
  const auto uri = storage::published_to(working_directory);
  if (!uri) return std::nullopt;
  return take_over(*uri, [&](const Manifest& manifest) {
    if (!store::has_passed(working_directory, manifest.position()))
      throw StorageError(
          fmt::format("{} was continued elsewhere: what is published there is not what {} holds. Restore from the URI, "
                      "which continues from what is published",
                      shown(*uri), working_directory.string()));
  });
}

}  // namespace cadre::publish
