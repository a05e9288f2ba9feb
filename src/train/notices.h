// A notice from a rank's or a validator's worker to its controller, besides reports: the typed form of
// channel::Notice's content.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "cadre/value.h"

namespace cadre::train {

// The group is formed, and the rank's function is about to be called.
struct FunctionBegins {};

// A user's function that makes a checkpoint in the background has returned or failed; or a copy of the rank's worker is
// complete, or has failed.
struct PromiseEnd {
  std::int64_t step = 0;   // the report's
  std::string path = {};   // relative to the run's directory; empty: the part's
  std::string error = {};  // empty: it succeeded
  bool operator==(const PromiseEnd&) const = default;
};

// A validator needs workers, and the run provides none: no other validation by this function can succeed.
struct ValidatorLacksWorkers {
  std::string error = {};
};

using Notice = std::variant<FunctionBegins, PromiseEnd, ValidatorLacksWorkers>;

Value to_value(const Notice& notice);
// Throws InvalidArgument or NotFound for values that to_value() did not make.
Notice to_notice(const Value& content);

}  // namespace cadre::train
