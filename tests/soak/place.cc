#include "place.h"

#include "storage/storage.h"
#include "storage_server.h"

namespace cadre::survival {
namespace fs = std::filesystem;

Place make_place(const fs::path& folder, const std::string& name, bool is_published) {
  Place place{.directory = folder / name, .home = folder, .said = folder / (name + ".said")};
  if (is_published) {
    place.home = folder / (name + "_home");
    place.directory = place.home / "cadre_results" / name;
    place.uri = published_folder("soak", (folder / "storage").string()) + "/" + name;
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
