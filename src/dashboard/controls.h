// Requests to experiments that run, such as to stop, as pages make them. The program `cadre` has the implementation.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cadre/value.h"

namespace cadre::dashboard {

// Used by one thread.
class Controls {
 public:
  // A request that waits for its answer. Destroyed before that, it is withdrawn where that is still possible.
  class Asked {
   public:
    virtual ~Asked() = default;
    // Returns what follows from the request, as a text for people, once it is answered. Does not wait. Throws
    // InvalidArgument with the reason if it was refused, and another Error if no answer has come in time.
    virtual std::optional<std::string> answer() = 0;
  };

  virtual ~Controls() = default;
  // Makes a request to the experiment at a location, as docs/formats.md has it: {"do": "stop", "trial": "00003"}.
  // Throws InvalidArgument if it is none or cannot be made there, NotFound if nothing runs there, StorageError.
  virtual std::unique_ptr<Asked> ask(const std::string& location, const Dict& request) = 0;
};

}  // namespace cadre::dashboard
