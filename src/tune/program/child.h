// A process that this one starts, and everything that it starts in turn.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::tune {

// What a process is started with.
struct ChildStart {
  std::vector<std::string> command = {};      // the program is looked for in PATH
  std::vector<std::string> environment = {};  // "NAME=value"
  std::string directory = {};                 // empty: this process's
  int output = -1;                            // its standard output; below 0: this process's
  int report = -1;                            // gets the number kReportDescriptor
};

// Has one digit, because some shells write to no other: echo '{"loss": 1}' >&3.
inline constexpr int kReportDescriptor = 3;

// It stays in the process group of this worker, with which the engine ends it.
class Child {
 public:
  // Throws Error if it cannot be started.
  explicit Child(const ChildStart& start);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Kills it, and all processes that it has started, unless they are gone.
  ~Child();

  // Becomes readable when it ends.
  int end() const { return end_.get(); }
  // Returns the status of waitpid() if it has ended.
  std::optional<int> status();
  // Waits until it ends, at most this long. Returns true if it has ended.
  bool wait(std::chrono::duration<double> time);
  // Does nothing if it has ended.
  void send(int signal);
  // Sends a signal to it and to the processes that it has started.
  void send_to_all(int signal);

 private:
  ::pid_t process_ = 0;
  base::FileDescriptor end_;
  std::optional<int> status_ = {};
};

// Returns "exit code 1", or "signal 11 (Segmentation fault)".
std::string describe_status(int status);

// Returns the number of a signal by its name, "SIGUSR1" or "USR1"; nothing if there is none.
std::optional<int> signal_of(const std::string& name);

}  // namespace cadre::tune
