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

std::string published_folder(const std::string& name, const std::string&) {
  if (!server()) server().emplace();
  return server()->uri(name);
}
pid_t storage_server() { return server() ? server()->process() : -1; }

#else

std::string published_folder(const std::string& name, const std::string& fallback) {
  return "file://" + fallback + "/" + name;
}
pid_t storage_server() { return -1; }

#endif

}  // namespace cadre::survival
