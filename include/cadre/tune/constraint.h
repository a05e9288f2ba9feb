/// \file
/// Constraints on the results of trials.
#pragma once

#include <string>

namespace cadre::tune {

/// A limit that results should keep, for searchers: configs whose results keep all limits count as better than any
/// that break one, and among the others those that break them less. A trial whose last result lacks the metric, or has
/// NaN there, breaks the limit infinitely.
struct Constraint {
  std::string metric = {};                             ///< name or path of the metric: "latency_ms"
  double at_most = 0;                                  ///< the limit; for a lower one report the negative number
  bool operator==(const Constraint&) const = default;  ///< compares both
};

}  // namespace cadre::tune
