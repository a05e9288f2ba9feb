// Tests that need a controller process of their own, to kill it or to start it in another way: this program is executed
// again and runs a scenario instead of the tests.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::system_tests {

// Runs after cadre::init; the result is the exit code.
using Scenario = int (*)();
bool register_scenario(const char* name, Scenario scenario);
// Returns the scenario that this process was started for, if any. It writes to the test on standard output, line by
// line.
std::optional<Scenario> find_scenario(int argc, char** argv);

// Actions of main before cadre::init, requested by further arguments.
inline constexpr const char* thread_before_init = "--thread-before-init";  // in the first process only
inline constexpr const char* thread_always = "--thread-always";            // in an executed fork server as well
inline constexpr const char* preload_throws = "--preload-throws";
inline constexpr const char* preload_takes_long = "--preload-takes-long";
inline constexpr const char* without_root = "--without-root";
inline constexpr const char* own_oom_counter = "--own-oom-counter";  // see surroundings.h
inline constexpr const char* own_small_disk = "--own-small-disk";
inline constexpr const char* few_open_files = "--few-open-files";
inline constexpr const char* small_cgroup = "--small-cgroup";

class ScenarioProcess {
 public:
  ScenarioProcess(const std::string& name, std::vector<std::string> arguments = {},
                  std::vector<std::string> environment = {});
  ~ScenarioProcess();

  pid_t process() const { return process_; }
  // Returns the scenario's next line; fails the test after a minute or at the end of the output.
  std::string line();
  // Lets the scenario continue after its call of wait_for_test().
  void go_on();
  // Waits for the process; returns its exit code, or minus the signal.
  int wait();

 private:
  pid_t process_ = -1;
  base::FileDescriptor output_;
  base::FileDescriptor input_;
  std::string buffered_;
};

// For the scenario: writes a line; waits for go_on() of the test.
void say(const std::string& line);
void wait_for_test();

// A process by its pidfd, which never refers to a later process with the same id.
class Watched {
 public:
  explicit Watched(pid_t process);
  bool ends_within(int timeout_ms) const;

 private:
  base::FileDescriptor fd_;
};

}  // namespace cadre::system_tests
