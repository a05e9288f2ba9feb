#include "storage_server.h"

#include <optional>

#ifdef CADRE_STORAGE_TESTS
#include "storage/object_server.h"
#endif

namespace cadre::survival {

#ifdef CADRE_STORAGE_TESTS

namespace {
std::optional<storage_tests::ObjectServer>& server() {
  static std::optional<storage_tests::ObjectServer> server;
  return server;
}
}  // namespace

StorageFolder folder_of_the_server(const std::filesystem::path&) {
  return [] {
    if (!server()) server().emplace();
    return server()->uri("soak");
  };
}
pid_t storage_server() { return server() ? server()->process() : -1; }

#else

StorageFolder folder_of_the_server(const std::filesystem::path& fallback) { return folder_of_files(fallback); }
pid_t storage_server() { return -1; }

#endif

}  // namespace cadre::survival
