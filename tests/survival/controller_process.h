// A controller in a process of its own, to be killed with all that belongs to it: this program, executed again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "survival/survivor.h"

namespace cadre::survival {

// How a controller ended; exit codes of run_controller.
struct Ended {
  enum Code : int { finished = 0, engine_error = 10, storage_error, out_of_space, interrupted, other_error };
  int code = finished;  // or minus the signal
  std::string message;  // what it said at last
};

struct ControllerOptions {
  std::filesystem::path experiment;  // continued when it is there, begun otherwise; or a URI
  Setting setting;
  int slots = 2;                              // trials that may run at a time
  std::vector<std::string> environment = {};  // "NAME=value", besides this process's
  std::filesystem::path said = {};            // a file for what it says; default: beside the experiment
};

class ControllerProcess {
 public:
  explicit ControllerProcess(const ControllerOptions& options);
  // Starts any program, by default this one: with these arguments behind its name, and a file for what it says.
  ControllerProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
                    std::filesystem::path said, const std::filesystem::path& program = "/proc/self/exe");
  // Kills it.
  ~ControllerProcess();

  pid_t process() const { return process_; }
  std::vector<pid_t> server() const;   // none or one
  std::vector<pid_t> workers() const;  // those of the server
  std::vector<pid_t> family() const;   // the controller and everything below it, parents first
  bool has_ended() const;              // wait() then says how, at once
  // How it ended; empty when it runs on after this time.
  std::optional<Ended> wait(std::chrono::nanoseconds timeout);
  // Returns a text for one that does not end: its processes, and the end of what they have said.
  std::string what_hangs() const;
  void kill(int signal) const;

 private:
  std::filesystem::path said_;  // its standard output and error
  pid_t process_ = -1;
};

// For main, before anything else: runs the controller and never returns when this process was started to be one.
void run_if_controller(int argc, char** argv);
// Does what a controller is there for, and ends the process as Ended says.
[[noreturn]] void run_controller(const std::function<void()>& act);

// Where a process writes its standard output; empty where it has ended.
std::filesystem::path output_of(pid_t process);

// Makes orphans of controllers children of this process, so that it hears of every process's end.
void adopt_orphans();
// Empty when every child of this process, adopted ones included, has ended within this time; the others otherwise.
// `helper` does not count: a process that is to run on.
std::vector<std::string> still_running(std::chrono::nanoseconds patience, pid_t helper = -1);

}  // namespace cadre::survival
