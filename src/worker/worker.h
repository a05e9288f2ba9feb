// The body of a worker process: receives one assignment, runs its entry and sends the outcome.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cadre/host.h"
#include "engine/local/worker_parts.h"

namespace cadre::worker {

// Thrown inside an entry to unwind the user's stack when the controller has asked it to stop: destructors run, and the
// worker counts as finished. Not a std::exception, so that user code that catches those does not swallow it.
using cadre::StopWorker;

// Thrown inside an entry that was asked to take over another assignment and cannot.
struct Declined {};

// Runs the worker and ends the process: with exit code 0 once Finished, Failed or Declined was sent, with 1 if the
// controller is gone or the worker cannot go on.
[[noreturn]] void run_worker(engine::local::WorkerParts parts);

// Prepares this process for a function, before it is called. `visible_devices`: the GPUs that CUDA is to see; empty:
// unchanged. Loads the files of `checkpoint` if they are in a storage only; empty: there is none. `run`: the directory
// whose objects get() finds, of an experiment or a training run. Throws StorageError.
void prepare_process(const std::optional<std::string>& visible_devices, const std::filesystem::path& checkpoint,
                     const std::filesystem::path& run);

// Returns "<type>: <what>" of the exception that is being handled, followed by its nested exceptions. At most 64 KiB.
std::string describe_current_exception();
// Returns the description, with the memory limit added if it says that there was no memory.
std::string with_memory_limit(std::string description, std::uint64_t memory_bytes);

}  // namespace cadre::worker
