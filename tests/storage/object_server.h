// Object storages on the loopback: S3 (with faults), Google's and Azure's. Each is a Python program, whose docstring
// describes its commands.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "python_server.h"

namespace cadre::storage_tests {

enum class Service { s3, google, azure };

class ObjectServer {
 public:
  // Starts the server and makes a bucket named "bucket". Sets the environment of this process, and so of its children,
  // to reach it. At most one in a process.
  explicit ObjectServer(Service service = Service::s3);

  std::string uri(const std::string& name) const { return bucket_ + "/" + name + query_; }
  pid_t process() const { return server_.process(); }

  // For S3 only, see object_server.py.
  void fail(const std::string& fault, int count = -1) { tell("fail " + fault + " " + std::to_string(count)); }
  void mix(double share, int seed) { tell("mix " + std::to_string(share) + " " + std::to_string(seed)); }
  void ignore_conditions() { tell("unconditional"); }  // for Google as well
  void refuse_conditions() { tell("unimplemented"); }
  void well() { tell("well"); }
  // For Azure only: a shared access signature takes the place of the account's key in the environment.
  void use_signature();
  std::int64_t requests() { return std::stoll(tell("requests")); }

 private:
  std::string tell(const std::string& command) { return server_.tell(command); }

  PythonServer server_;
  std::string bucket_ = {};  // the bucket's URI
  std::string query_ = {};   // appended to all URIs
};

}  // namespace cadre::storage_tests
