// A controller in a process of its own (this program, executed again), to be killed with all its processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "survival/survivor.h"

namespace cadre::survival {

// How a controller ended: exit codes of run_controller.
struct Ended {
  enum Code : int { finished = 0, engine_error = 10, storage_error, out_of_space, interrupted, other_error };
  int code = finished;  // or minus the signal
  std::string message;  // its output
};

struct ControllerOptions {
  std::filesystem::path experiment;  // continued if it exists, begun otherwise; or a URI
  Setting setting;
  int slots = 2;                              // trials that may run at a time, on each node
  int nodes = 0;                              // agents on this machine; 0: trials run beside the controller
  bool over_stdio = false;                    // their sessions are in their standard input and output
  std::vector<std::string> environment = {};  // "NAME=value", in addition to this process's
  std::filesystem::path said = {};            // a file for its output; default: beside the experiment
};

class ControllerProcess {
 public:
  explicit ControllerProcess(const ControllerOptions& options);
  // Starts a program, by default this one, with these arguments after its name, and a file for its output.
  ControllerProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
                    std::filesystem::path said, const std::filesystem::path& program = "/proc/self/exe");
  // Kills the process.
  ~ControllerProcess();

  pid_t process() const { return process_; }
  std::vector<pid_t> server() const;   // none or one
  std::vector<pid_t> workers() const;  // the server's workers
  std::vector<pid_t> family() const;   // the controller and everything below it, parents first
  bool has_ended() const;              // wait() then returns at once
  // Returns how it ended; empty if it still runs after this time.
  std::optional<Ended> wait(std::chrono::nanoseconds timeout);
  // Describes a controller that does not end: its processes, and the end of its output.
  std::string what_hangs() const;
  void kill(int signal) const;

 private:
  std::string said() const;

  std::filesystem::path said_;      // its standard output and error, after those of earlier ones
  std::uintmax_t said_before_ = 0;  // the size of those
  pid_t process_ = -1;
};

// Returns the children of a process that have not ended.
std::vector<pid_t> children_of(pid_t parent);
// Returns the workers of a fork server.
std::vector<pid_t> workers_of(pid_t server);

// Returns the path of another program in this one's folder, so that copies of a build find their own.
std::filesystem::path program_beside(std::string_view name);

// Call first in main: if this process was started as a controller, runs it and never returns.
void run_if_controller(int argc, char** argv);
// Runs a controller, or an agent of one, in this process, which began with these arguments. Ends the process.
[[noreturn]] void run_controller(const ControllerOptions& options, int argc, char** argv);
// Calls `act` and ends the process with a code of Ended.
[[noreturn]] void run_controller(const std::function<void()>& act);

// Returns the file of a process's standard output; empty if the process has ended.
std::filesystem::path output_of(pid_t process);

// Makes orphans of controllers children of this process, so that it notices the end of every process.
void adopt_orphans();
// Waits until every child of this process, including adopted ones, has ended. Returns the children that still run after
// `patience`. Ignores `helper`, a process that is to run on.
std::vector<std::string> still_running(std::chrono::nanoseconds patience, pid_t helper = -1);

}  // namespace cadre::survival
