// Collects all faults of one call, to report them in one message.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"

namespace cadre::pt {

class Faults {
 public:
  void add(std::string fault) { faults_.push_back(std::move(fault)); }

  // Adds all of others; `where` comes before each.
  void add_all(const std::string& where, const Faults& others) {
    for (const std::string& fault : others.faults_) faults_.push_back(where + ": " + fault);
  }

  bool empty() const { return faults_.empty(); }

  // Throws InvalidArgument "<what>: <fault>; <fault>; …" if there are any; shows at most 20.
  void throw_if_any(const std::string& what) const {
    if (faults_.empty()) return;
    constexpr std::size_t shown = 20;
    std::string message = what + ": ";
    for (std::size_t i = 0; i < faults_.size() && i < shown; ++i) message += (i == 0 ? "" : "; ") + faults_[i];
    if (faults_.size() > shown) message += "; and " + std::to_string(faults_.size() - shown) + " more";
    throw InvalidArgument(message);
  }

 private:
  std::vector<std::string> faults_;
};

}  // namespace cadre::pt
