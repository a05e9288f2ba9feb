// The body of a worker process: one assignment, its entry, the word how it went.
#pragma once

#include <string>

#include "base/file.h"

namespace cadre::run {

// Thrown inside an entry to unwind the user's stack when the controller said stop: destructors run, and the worker is
// finished. Not a std::exception, so that user code that catches those does not swallow it.
struct StopWorker {};

// Serves the connection and ends the process: with 0 once the controller was told Finished or Failed, with 1 when it
// is gone.
[[noreturn]] void run_worker(base::FileDescriptor connection);

// "<type>: <what>" of the exception that is being handled, and the same of the ones nested in it. At most 64 KiB.
std::string describe_current_exception();

}  // namespace cadre::run
