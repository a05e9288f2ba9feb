// Declarations of the few Gloo types that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp uses: the torch wheel has
// that header but not Gloo's. Only libtorch makes, uses and destroys objects of these types; Cadre holds pointers to
// them. So only the names and signatures declared here must match Gloo's.
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
