#include "worker/worker.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <typeinfo>

#include "base/cut_text.h"
#include "base/type_name.h"
#include "channel/worker_end.h"
#include "storage/remote_directory.h"
#include "store/held_objects.h"
#include "worker/entries.h"
#include "worker/host.h"
#include "worker/root_engine.h"

namespace cadre::worker {
namespace {

constexpr std::size_t max_description_bytes = std::size_t{64} << 10;

std::string type_name(const std::type_info* type) { return type == nullptr ? "unknown type" : base::type_name(*type); }

// Uses the reserve that the engine keeps below the hard limit of this process's memory: without it, a function that has
// leaked all its memory could not report its failure.
void use_memory_reserve() {
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_DATA, &limit);
}

// Runs the entry and returns the message about its outcome.
channel::Message run_entry(channel::WorkerEnd& controller, const channel::Assignment& assignment) {
  const Entry* entry = find_entry(assignment.entry);
  if (Host* const host = find_host(); entry == nullptr && host != nullptr) {
    try {
      host->load_missing();
    } catch (const std::exception&) {
      return channel::Failed{describe_current_exception()};
    }
    entry = find_entry(assignment.entry);
  }
  if (entry == nullptr) return channel::Failed{"this program has nothing named \"" + assignment.entry + "\" to run"};
  try {
    return channel::Finished{(*entry)(controller, assignment.payload)};
  } catch (const StopWorker&) {
    return channel::Finished{};
  } catch (const Declined&) {
    return channel::Declined{};
  } catch (const channel::ControllerGone&) {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    use_memory_reserve();
    return channel::Failed{describe_current_exception()};
  }
}

// Ends what the host has running in this process. A failure of that is said, and does not change the outcome.
void end_host() {
  if (Host* const host = find_host()) {
    try {
      host->before_end();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "cadre: at the end of this process: %s\n", error.what());
    }
  }
}

void serve(channel::WorkerEnd& controller, std::optional<std::uint64_t> memory_bytes) {
  if (Host* const host = find_host()) host->after_fork();
  channel::Message last_word = run_entry(controller, controller.receive_assignment());
  end_host();
  if (auto* failed = std::get_if<channel::Failed>(&last_word); failed != nullptr && memory_bytes)
    failed->message = with_memory_limit(std::move(failed->message), *memory_bytes);
  std::fflush(nullptr);  // before the last message, after which the controller may read the files
  std::cout.flush();
  std::clog.flush();
  std::visit([&](const auto& word) { controller.send(word); }, last_word);
}

// Lets the C library keep up to 256 MiB of freed memory until the worker waits. A training step allocates and frees the
// same megabytes again and again, and getting them as new pages from the kernel can take longer than the computation in
// them. 32 MiB is the largest threshold that mallopt accepts.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

void append_description(std::string& text, const std::exception& error) {
  text += type_name(&typeid(error)) + ": " + error.what();
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& nested) {
    text += "\n  because of ";
    append_description(text, nested);
  } catch (...) {
    text += "\n  because of an exception of type " + type_name(abi::__cxa_current_exception_type());
  }
}

}  // namespace

void run_worker(engine::local::WorkerParts parts) {
  keep_freed_memory();
  if (parts.fork_server) start_workers_through(std::move(parts.fork_server));
  channel::WorkerEnd controller(std::move(parts.connection));
  controller.when_idle([] { ::malloc_trim(0); });
  try {
    serve(controller, parts.memory_bytes);
  } catch (const channel::ControllerGone&) {
    ::_exit(1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: the worker cannot go on: %s\n", error.what());
    std::fflush(stderr);
    ::_exit(1);
  }
  ::_exit(0);  // not exit(): the destructors of static objects take 110 ms with libtorch, for nothing
}

void prepare_process(const std::optional<std::string>& visible_devices, const std::filesystem::path& checkpoint,
                     const std::filesystem::path& run) {
  if (visible_devices) ::setenv("CUDA_VISIBLE_DEVICES", visible_devices->c_str(), 1);
  storage::fetch(checkpoint);
  store::set_experiment_of_objects(run);
}

std::string describe_current_exception() {
  std::string text;
  try {
    throw;
  } catch (const HostError& error) {
    text = base::last_bytes(error.what(), max_description_bytes);
  } catch (const std::exception& error) {
    append_description(text, error);
  } catch (...) {
    text = "an exception of type " + type_name(abi::__cxa_current_exception_type());
  }
  return std::string(base::first_bytes(text, max_description_bytes));
}

std::string with_memory_limit(std::string description, std::uint64_t memory_bytes) {
  // Recognised by its text, because it may be nested, and libtorch has no type for it, only the text of
  // strerror(ENOMEM).
  const bool no_memory = description.find("std::bad_alloc") != std::string::npos ||
                         description.find("Cannot allocate memory") != std::string::npos;
  if (!no_memory) return description;
  return description + fmt::format(" (the memory limit of this trial is {:g} MiB)",
                                   std::ldexp(static_cast<double>(memory_bytes), -20));
}

}  // namespace cadre::worker
