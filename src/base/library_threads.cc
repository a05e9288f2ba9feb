#include "base/library_threads.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cadre::base {
namespace {

constexpr int kMostThreads = 16'384;

using SetThreads = void (*)(int);

SetThreads function_of(void* library, const char* name) { return reinterpret_cast<SetThreads>(::dlsym(library, name)); }

// Returns the files of OpenBLAS's copies that are loaded, those in the wheels of numpy and scipy for example, which
// only their own users see.
std::vector<std::string> loaded_openblas() {
  std::vector<std::string> files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* found) {
        const std::string_view file = library->dlpi_name == nullptr ? "" : library->dlpi_name;
        if (file.find("openblas") != file.npos) static_cast<std::vector<std::string>*>(found)->emplace_back(file);
        return 0;
      },
      &files);
  return files;
}

// The functions of the libraries that were loaded at the time of the search.
struct Setters {
  unsigned long long changes_of_libraries = 0;
  std::vector<SetThreads> functions;
};

Setters& setters() {
  static Setters setters;
  return setters;
}

// Returns how often a library was loaded or unloaded.
unsigned long long changes_of_libraries() {
  unsigned long long count = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* count) {
        *static_cast<unsigned long long*>(count) = library->dlpi_adds + library->dlpi_subs;
        return 1;  // the first one knows
      },
      &count);
  return count;
}

}  // namespace

int thread_count(double cpus) {
  return static_cast<int>(std::clamp(std::floor(cpus), 1.0, static_cast<double>(kMostThreads)));
}

void find_library_threads() {
  const unsigned long long changes = changes_of_libraries();
  if (changes == setters().changes_of_libraries) return;
  std::vector<SetThreads> functions;
  const auto add = [&](void* library, const char* name) {
    if (const SetThreads set = function_of(library, name)) functions.push_back(set);
  };
  for (const char* name : {"omp_set_num_threads", "openblas_set_num_threads"}) add(RTLD_DEFAULT, name);
  for (const std::string& file : loaded_openblas()) {
    void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // stays open, with its functions
    if (library == nullptr) continue;
    for (const char* name : {"openblas_set_num_threads", "openblas_set_num_threads64_",
                             "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_"}) {
      add(library, name);
    }
  }
  setters() = {.changes_of_libraries = changes, .functions = std::move(functions)};
}

void set_openmp_threads(int threads) {
  if (const SetThreads set = function_of(RTLD_DEFAULT, "omp_set_num_threads")) set(threads);
}

void set_library_threads(int threads) {
  find_library_threads();
  for (const SetThreads set : setters().functions) set(threads);
}

}  // namespace cadre::base
