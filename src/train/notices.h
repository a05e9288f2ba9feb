// What a rank's worker tells its controller beside its reports: the typed form of channel::Notice's content.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "cadre/value.h"

namespace cadre::train {

// Its group is formed, and its function is about to be called.
struct FunctionBegins {};

// A function of the user's that makes a checkpoint in the background has come to its end.
struct PromiseEnd {
  std::int64_t step = 0;   // of the report
  std::string path = {};   // inside the run's directory
  std::string error = {};  // why there is nothing; empty: there is

  static void fields(auto& archive, auto& end) {
    archive("step", end.step);
    archive("path", end.path);
    archive("error", end.error);
  }
};

// A validator needs workers, and the run has none for it: no other one can do any better.
struct ValidatorLacksWorkers {
  std::string error = {};
};

using Notice = std::variant<FunctionBegins, PromiseEnd, ValidatorLacksWorkers>;

Value to_value(const Notice& notice);
// Throws InvalidArgument or NotFound for what to_value() did not make.
Notice to_notice(const Value& content);

}  // namespace cadre::train
