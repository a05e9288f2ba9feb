// The few types of Gloo that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp names, because the torch wheel has that
// header and not Gloo's. Objects of these types are made, used and destroyed by libtorch alone; we hold pointers to
// them. So only the names and the signatures of what is declared here have to be Gloo's.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo
