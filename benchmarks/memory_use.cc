#include "memory_use.h"

#include <fstream>
#include <string>

#include "cadre/error.h"

namespace cadre::bench {

MemoryUse memory_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/smaps_rollup";
  std::ifstream file(path);
  MemoryUse use;
  std::string line;
  std::getline(file, line);  // the range of addresses
  std::string name, unit;
  for (std::int64_t kibibytes = 0; file >> name >> kibibytes >> unit;) {
    const std::int64_t bytes = kibibytes * 1024;
    if (name == "Rss:") use.resident = bytes;
    if (name == "Private_Clean:" || name == "Private_Dirty:") use.private_ += bytes;
    if (name == "Pss_Anon:" || name == "Pss_Shmem:") use.anonymous += bytes;
  }
  if (use.resident == 0) throw Error("cannot read " + path);
  return use;
}

}  // namespace cadre::bench
