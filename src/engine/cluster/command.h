// A command that runs beside this process: started without a shell, in a session of its own. Only its destructor waits
// for it, after killing it, and no longer than five seconds.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::engine::cluster {

struct CommandStart {
  std::vector<std::string> arguments = {};          // the first is the program, looked for in this process's PATH
  std::vector<std::string> environment = {};        // all of it, as NAME=value
  std::filesystem::path directory = {};             // empty: this process's
  std::string input = {};                           // standard input; of a session its beginning, which must fit in
  bool carries_session = false;                     // both are one socket, whose other end is take_session()
  int death_signal = SIGKILL;                       // when the thread that started it ends; 0: it goes on
  std::size_t most_output = std::size_t{16} << 20;  // bytes of its output that are kept, from the beginning
};

class Command {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Bytes of its error messages that are kept, from the end.
  static constexpr std::size_t kMostErrors = std::size_t{16} << 10;
  // The time that the destructor waits.
  static constexpr std::chrono::seconds kMostEndTime{5};

  // Starts it, which takes as long as starting any process. Throws EngineError if it cannot be started.
  explicit Command(const CommandStart& start);
  // Takes over one that was started by a process that has ended; how it ends is not known then, nor what it prints.
  // Returns nullptr if it has ended. `mark`: text that its environment has, which shows that its id is still its own.
  static std::unique_ptr<Command> take_over(::pid_t process, std::string_view mark);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  // Kills it with all processes of its group if it has not ended. One that is stuck in the kernel, as on a file system
  // that does not answer, is left to end when it pleases.
  ~Command();

  // Reads what it has written, without waiting. Returns true once it has ended; what processes that it left behind
  // write later is not read.
  bool update();
  // Sends a signal to it and to all processes of its group; does nothing once it has ended.
  void kill(int signal) const;
  // Lets update() send SIGKILL at this time or later, once: one that is stuck in the kernel ends when it pleases.
  void kill_at(TimePoint time) { kill_time_ = time; }
  // Returns when that is due; TimePoint::max(): never, or it was done.
  TimePoint kill_time() const { return kill_time_; }

  // Returns descriptors that are readable when update() has something to do.
  std::vector<int> fds() const;

  bool has_ended() const { return status_.has_value(); }
  bool has_succeeded() const { return status_ == 0; }
  ::pid_t process() const { return process_; }
  // Returns how it ended: "exit code 1", "signal 9"; empty before.
  std::string end() const;
  // Returns that as a sentence: "srun ended with exit code 1: no such node". `name`: of the command; `said`: its errors
  // as they are shown; may be empty.
  std::string end_of(std::string_view name, std::string_view said) const;
  // Returns this process's end of the socket, once; empty if there is none.
  base::FileDescriptor take_session() { return std::exchange(session_, base::FileDescriptor()); }
  std::string_view output() const { return output_; }
  bool is_output_cut() const { return is_output_cut_; }
  std::string_view errors() const { return errors_; }

 private:
  Command(::pid_t process, base::FileDescriptor end);  // one that was taken over
  bool has_ended_now();
  void read_output();
  void read_errors();

  ::pid_t process_ = 0;
  bool is_child_ = true;            // false: it was taken over
  std::optional<int> status_ = {};  // of waitpid
  TimePoint kill_time_ = TimePoint::max();
  base::FileDescriptor end_;  // readable when it has ended
  base::FileDescriptor output_pipe_;
  base::FileDescriptor errors_pipe_;
  base::FileDescriptor session_;
  std::size_t most_output_;
  std::string output_ = {};
  std::string errors_ = {};
  bool is_output_cut_ = false;
};

}  // namespace cadre::engine::cluster
