// The body of a worker process: one assignment, its entry, the word how it went.
#pragma once

#include <cstdint>
#include <string>

#include "engine/local/worker_parts.h"

namespace cadre::run {

// Thrown inside an entry to unwind the user's stack when the controller said stop: destructors run, and the worker is
// finished. Not a std::exception, so that user code that catches those does not swallow it.
struct StopWorker {};

// Thrown inside an entry that was told to take over another assignment and cannot.
struct Declined {};

// Serves the connection and ends the process: with 0 once the controller was told Finished or Failed, with 1 when it
// is gone.
[[noreturn]] void run_worker(engine::local::WorkerParts parts);

// "<type>: <what>" of the exception that is being handled, and the same of the ones nested in it. At most 64 KiB.
std::string describe_current_exception();
// The same with the limit where the exception says that there was no memory.
std::string with_memory_limit(std::string description, std::uint64_t memory_bytes);

}  // namespace cadre::run
