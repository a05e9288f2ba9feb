/// \file
/// All faults of a user's options, in one message.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cadre {

/// Collects faults, each with the path of its option.
class Faults {
 public:
  /// Adds a fault: "num_samples", "it is 0; at least 1 trial is needed".
  void add(const std::string& option, const std::string& what) { faults_.emplace_back(option, what); }
  /// Adds a fault if `good` is false.
  void unless(bool good, const std::string& option, const std::string& what) {
    if (!good) add(option, what);
  }
  /// Adds the faults of a part of the options; `whole` and a space come before the path of each.
  void add_all(const std::string& whole, const Faults& part) {
    for (const auto& [option, what] : part.faults_) add(whole + " " + option, what);
  }
  /// Returns true if there are none.
  bool empty() const { return faults_.empty(); }
  /// Throws InvalidArgument with all faults, one per line, if there are any: "the experiment cannot be run: ...".
  /// Control characters are escaped, because names may come from anywhere.
  void throw_if_any(const std::string& subject) const;
  /// Does the same with a message of the caller's: "a StepLR cannot be made".
  void throw_as(const std::string& message) const;

 private:
  std::vector<std::pair<std::string, std::string>> faults_;
};

}  // namespace cadre
