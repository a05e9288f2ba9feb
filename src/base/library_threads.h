// The number of threads that numerical libraries use.
#pragma once

namespace cadre::base {

// Returns the number of threads for so many CPUs: at least one.
int thread_count(double cpus);

// Sets the number in libraries that are loaded: of the calling thread in OpenMP, which MKL follows too unless it is
// told otherwise, and of the process in OpenBLAS.
void set_library_threads(int threads);

}  // namespace cadre::base
