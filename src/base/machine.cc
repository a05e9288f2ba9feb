#include "base/machine.h"

#include <unistd.h>

#include <cstdlib>

#include "base/file.h"

namespace cadre::base {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string boot_id() {
  if (const char* const said = std::getenv("CADRE_BOOT_ID")) return said;
  constexpr const char* file = "/proc/sys/kernel/random/boot_id";
  if (::access(file, R_OK) != 0) return {};
  std::string id = read_file(file);
  if (id.ends_with('\n')) id.pop_back();
  return id;
}

}  // namespace cadre::base
