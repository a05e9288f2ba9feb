// What starts workers, carries their messages and tells of their ends. The controllers know nothing else of processes,
// machines and time. Every engine passes the same conformance suite (tests/system/engine_conformance.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cadre/resources.h"
#include "channel/message.h"

namespace cadre::engine {

// Given by the controller, never used twice with one engine.
using WorkerId = std::uint64_t;

struct WorkerSpec {
  channel::Assignment assignment;
  // Exists; the worker's stdout and stderr are appended to files of these names in it.
  std::filesystem::path directory = {};
  double cpus = 1;  // its share, for the thread count of numerical libraries (at least 1 thread)
  // Private memory that each of its processes may allocate beyond what it starts with. Empty: no limit.
  std::optional<std::uint64_t> memory_bytes = {};
  // Whether it may start workers itself, which end with it: run::make_root_engine() then works there too.
  bool starts_workers = false;
};

// How a process ended.
struct Exit {
  // not_started: there never was a process; lost: the engine that could have told is gone
  enum class Kind { code, signal, not_started, lost };
  Kind kind = Kind::lost;
  int value = 0;  // the exit code or the signal's number
  // What the engine knows beside that: why it did not start, why the engine ended it; often empty.
  std::string detail = {};
  // The last lines of stderr and the back trace of a worker that ended by itself before its last message, as
  // lines that people read; often empty.
  std::string output = {};
  bool operator==(const Exit&) const = default;
};
// "exited with code 3", "was ended by signal 11 (SIGSEGV)", "could not be started", "was lost with the engine that ran
// it"; with ": " and the detail where there is one.
std::string to_string(const Exit& exit);
// "\nThe last lines of its stderr:\n..." with what it wrote last, to follow that; empty where it wrote nothing.
std::string output_text(const Exit& exit);

// A message arrived.
struct Received {
  WorkerId worker = 0;
  channel::Message message = {};
};
// The process is gone, and with it the whole process group. Comes once for each started worker, after all its messages.
struct Exited {
  WorkerId worker = 0;
  Exit exit = {};
};
using Event = std::variant<Received, Exited>;

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Engine() = default;

  // What there is in all, whoever uses it.
  virtual Resources resources() const = 0;

  // Starts a worker. A failure to start is an Exited event.
  virtual void start(WorkerId worker, const WorkerSpec& spec) = 0;
  // Replies to the worker's last Report. Nothing happens when the worker is gone.
  virtual void answer(WorkerId worker, const channel::Answer& answer) = 0;
  // Replies to the worker's last StoreRequest. Nothing happens when the worker is gone.
  virtual void reply(WorkerId worker, const channel::StoreReply& reply) = 0;
  // Replies to the worker's last Request. Nothing happens when the worker is gone.
  virtual void reply(WorkerId worker, const channel::Reply& reply) = 0;
  // Ends the worker's process group at once; Exited follows. Nothing happens when the worker is gone.
  virtual void kill(WorkerId worker) = 0;

  // Waits until something happened, at most `timeout` (empty: for ever), and returns all events that are there by then,
  // in the order in which they happened; none after a timeout, or when wake() ended the wait.
  virtual std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) = 0;
  // Ends the present wait(), or the next one. For other threads and for signal handlers.
  virtual void wake() noexcept = 0;

  // How long in all this process was stopped, by Ctrl-Z or in a frozen container. What it waits for may have happened
  // meanwhile, and whoever had to do something in time may have been stopped too.
  virtual Clock::duration stopped() const { return Clock::duration(0); }
  // Time that only grows, for timers; and the wall clock in seconds since 1970, for people.
  virtual Clock::time_point now() const = 0;
  virtual double wall_seconds() const = 0;
};

}  // namespace cadre::engine
