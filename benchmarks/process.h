// Work in a process of its own, and what that and everything below it takes.
//
// The kernel adds what a process has taken to what its parent has when the parent waits for it, and so on upwards. A
// fork server waits for its workers; what has lost its parent becomes a child of this process, which waits for all.
// Hence nothing is missed: not a worker, not a fork server that outlives its controller.
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

// On the clock that all processes of the machine share.
double now_seconds();

// What a process and all its descendants have taken, from beginning to end.
struct Usage {
  double cpu_s = 0;                // user and system time
  std::int64_t written_bytes = 0;  // handed to write calls, of whatever file
};

// One at a time in this process, which must have no other children.
class Process {
 public:
  // Runs `work` in a fork of this process, which goes no further than that; what `work` returns is what it has to say.
  static Process fork(const std::function<Dict()>& work);
  // Executes this program anew for one of its parts (parts.h), with these arguments.
  static Process execute(const std::string& part, const std::vector<std::string>& arguments);

  // Kills it and waits until everything below it is gone.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  // Becomes readable when it, and everything that it has started, has ended or has said what it had to say.
  int output() const { return output_.get(); }
  // As kill -9 does; its descendants go with it.
  void kill();

  enum class End { normal, killed };
  struct Ended {
    Dict said = {};  // empty when it was killed
    Usage usage = {};
    double seconds = 0;  // from its start until everything of it was gone
  };
  // Waits until it and all its descendants have ended. Throws Error when it ended otherwise than expected; when it
  // failed, it has said why on standard error.
  Ended wait(End expected = End::normal);

 private:
  Process(pid_t id, base::FileDescriptor output, std::int64_t written_before, Stopwatch stopwatch);

  pid_t id_;
  base::FileDescriptor output_;
  std::int64_t written_before_;
  Stopwatch stopwatch_;
  bool waited_ = false;
};

// Children and their children, of a process that is not this one.
std::vector<pid_t> children_of(pid_t parent);

}  // namespace cadre::bench
