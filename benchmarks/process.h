// Work in a process of its own, and the resources used by that process and its descendants.
//
// When a parent waits for a child, the kernel adds the child's usage to the parent's, and so on upwards. A fork server
// waits for its workers; a process whose parent died becomes a child of this process, which waits for all. Hence
// nothing is missed: not a worker, not a fork server that outlives its controller.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cadre/value.h"

namespace cadre::bench {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_ = Clock::now();
};

// Returns the time on the clock that all processes of the machine share.
double now_seconds();

// Resources used by a process and all its descendants during their lifetimes.
struct Usage {
  double cpu_s = 0;                // user and system time
  std::int64_t written_bytes = 0;  // passed to write calls, for any file
};

// A child process. This process may have one at a time, and must have no other children.
class Process {
 public:
  // Runs `work` in a fork of this process, which then exits. The return value of `work` is the process's result.
  static Process fork(const std::function<Dict()>& work);
  // Executes this program anew for one of its parts (parts.h), with these arguments.
  static Process execute(const std::string& part, const std::vector<std::string>& arguments);

  // Kills the process and waits until all its descendants have ended.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  // Becomes readable when the process has sent its result, or has ended together with all processes that it started.
  int output() const { return output_.get(); }
  // Sends SIGKILL; its descendants end with it.
  void kill();

  enum class End { normal, killed };
  struct Ended {
    Dict said = {};  // the result; empty if the process was killed
    Usage usage = {};
    double seconds = 0;  // from its start until it and all its descendants had ended
  };
  // Waits until it and all its descendants have ended. Throws Error if it ended otherwise than expected; a process that
  // failed has printed the reason on standard error.
  Ended wait(End expected = End::normal);

 private:
  Process(pid_t id, base::FileDescriptor output, std::int64_t written_before, Stopwatch stopwatch);

  pid_t id_;
  base::FileDescriptor output_;
  std::int64_t written_before_;
  Stopwatch stopwatch_;
  bool waited_ = false;
};

// Returns the child processes of another process, without those that are exiting.
std::vector<pid_t> children_of(pid_t parent);

}  // namespace cadre::bench
