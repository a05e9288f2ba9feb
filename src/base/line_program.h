// A program that is asked and answers by lines of text, on its standard input and output.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::base {

// The program has ended, does not read or does not answer in time: "it exited with code 1". Or it was cancelled.
class ProgramFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LineProgram {
 public:
  // Starts the command, looked for in PATH, in a process group of its own, so that Ctrl-C does not end it. Its standard
  // error is this process's. Throws ProgramFailed if it cannot be started.
  explicit LineProgram(const std::vector<std::string>& command);
  LineProgram(const LineProgram&) = delete;
  LineProgram& operator=(const LineProgram&) = delete;
  // Closes its standard input, by which it should end; otherwise kills it after two seconds.
  ~LineProgram();

  // Both throw ProgramFailed; the program must not be used afterwards. They do so within 100 ms once `cancelled`, which
  // another thread may set, is true.
  void send(std::string_view line, std::chrono::duration<double> timeout, const std::atomic<bool>& cancelled = kNever);
  std::string receive(std::chrono::duration<double> timeout, const std::atomic<bool>& cancelled = kNever);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  static inline const std::atomic<bool> kNever = false;

  static void wait_for(int file, short what, TimePoint deadline, const std::atomic<bool>& cancelled);
  [[noreturn]] void fail();

  ::pid_t process_ = 0;
  FileDescriptor input_;  // of the program
  FileDescriptor output_;
  std::string received_ = {};
};

// Returns true if the command can be started: its first word is an executable file, or the name of one in PATH.
bool can_be_started(const std::vector<std::string>& command);

}  // namespace cadre::base
