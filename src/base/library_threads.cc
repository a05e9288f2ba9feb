#include "base/library_threads.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>

namespace cadre::base {
namespace {

constexpr int kMostThreads = 16'384;

}  // namespace

int thread_count(double cpus) {
  return static_cast<int>(std::clamp(std::floor(cpus), 1.0, static_cast<double>(kMostThreads)));
}

void set_library_threads(int threads) {
  using SetThreads = void (*)(int);
  for (const char* name : {"omp_set_num_threads", "openblas_set_num_threads"}) {
    if (const auto set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, name))) set(threads);
  }
}

}  // namespace cadre::base
