#include "publish/home.h"

#include <fmt/format.h>

#include "publish/restore.h"
#include "store/read_store.h"

namespace cadre::publish {
namespace fs = std::filesystem;

std::optional<fs::path> find_existing(const Place& place, const std::string& name) {
  if (place.uri && is_published(*place.uri / name)) return fs::path(to_string(*place.uri / name));
  fs::path directory = place.local / name;
  if (!store::has_store(directory)) return std::nullopt;
  if (place.uri) require_own(directory, *place.uri / name);  // interrupted before anything was published
  return directory;
}

Home make_home(const Place& place, const std::string& name, const std::string& function, IfExists if_exists,
               const store::Tenant& tenant) {
  if (!name.empty() && if_exists != IfExists::new_name) {
    store::make_new_directory(place.local / name, tenant);
    return {place.local / name};
  }
  if (name.empty())
    return {store::make_free_directory(place.local, store::default_name(function), [](const auto&) { return false; })};
  const auto is_published_already = [&](const std::string& candidate) {
    return place.uri && is_published(*place.uri / candidate);
  };
  Home home{store::make_free_directory(place.local, name, is_published_already)};
  if (home.directory.filename() != name)
    home.notes.push_back(fmt::format("There is {} \"{}\" already, so this one is \"{}\"", tenant.a, name,
                                     home.directory.filename().string()));
  return home;
}

}  // namespace cadre::publish
