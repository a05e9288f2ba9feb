// S3 on the loopback, with faults: object_server.py.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cadre::storage_tests {

class ObjectServer {
 public:
  // Starts it and makes a bucket named "bucket". Sets the environment of this process, and so of those that it starts,
  // to reach it. At most one in a process.
  ObjectServer();
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;
  ~ObjectServer();

  std::string uri(const std::string& name) const { return "s3://bucket/" + name; }

  // See object_server.py.
  void fail(const std::string& fault, int count = -1) { tell("fail " + fault + " " + std::to_string(count)); }
  void mix(double share, int seed) { tell("mix " + std::to_string(share) + " " + std::to_string(seed)); }
  void ignore_conditions() { tell("unconditional"); }
  void well() { tell("well"); }
  std::int64_t requests() { return std::stoll(tell("requests")); }

 private:
  std::string tell(const std::string& command);
  std::string read_line();

  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace cadre::storage_tests
