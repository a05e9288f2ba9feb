// The number of threads that numerical libraries use.
#pragma once

namespace cadre::base {

// Returns the number of threads for so many CPUs: at least one.
int thread_count(double cpus);

// Sets the number in libraries that are loaded: of the calling thread in OpenMP, which MKL follows too unless it is
// told otherwise, and of the process in OpenBLAS. One thread at a time may call this.
void set_library_threads(int threads);

// Sets the number of the calling thread alone, which only OpenMP has. Any thread may call this.
void set_openmp_threads(int threads);

// Finds what set_library_threads() calls, unless no library was loaded or unloaded since the last time. A process that
// forks calls it before: the search touches pages of every library, in each child anew.
void find_library_threads();

}  // namespace cadre::base
