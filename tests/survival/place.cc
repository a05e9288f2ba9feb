#include "survival/place.h"

#include "storage/storage.h"

namespace cadre::survival {
namespace fs = std::filesystem;

StorageFolder folder_of_files(const fs::path& directory) {
  return [directory] { return "file://" + (directory / "storage").string(); };
}

Place make_place(const fs::path& folder, const std::string& name, const StorageFolder& storage) {
  Place place{.directory = folder / name, .home = folder, .said = folder / (name + ".said")};
  if (storage) {
    place.home = folder / (name + "_home");
    place.directory = place.home / "cadre_results" / name;
    place.uri = storage() + "/" + name;
  }
  remove(place);  // left by an earlier soak in the same folder
  return place;
}

void remove(const Place& place) {
  fs::remove(place.said);
  fs::remove_all(place.directory);
  if (place.uri.empty()) return;
  lose_the_local_disk(place);
  storage::open_storage(storage::parse_uri(place.uri))->remove_folder("");
}

void lose_the_local_disk(const Place& place) { fs::remove_all(place.home); }

}  // namespace cadre::survival
