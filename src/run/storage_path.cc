#include "run/storage_path.h"

#include <cstdlib>

#include "cadre/error.h"

namespace cadre::run {
namespace fs = std::filesystem;

fs::path default_storage_path() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw NotFound("there is no HOME for the default directory of experiments, ~/cadre_results: name another one");
  return fs::path(home) / "cadre_results";
}

}  // namespace cadre::run
