// A server in Python, in this folder: it prints its port first, answers commands line by line and ends with its
// standard input.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cadre::storage_tests {

class PythonServer {
 public:
  explicit PythonServer(const std::string& script, std::vector<std::string> arguments = {});
  PythonServer(const PythonServer&) = delete;
  PythonServer& operator=(const PythonServer&) = delete;
  ~PythonServer();

  std::string address() const { return "127.0.0.1:" + port_; }
  pid_t process() const { return process_; }
  // Returns the answer, one line.
  std::string tell(const std::string& command);

 private:
  std::string read_line();

  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string port_ = {};
};

}  // namespace cadre::storage_tests
