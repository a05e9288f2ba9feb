// Metrics that are found one by one, in a program's output or in TensorBoard's events, and make reports together.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::tune {

// Collects the last value of each metric. A step in which the experiment's metric was found makes a report.
class FoundMetrics {
 public:
  // `objective`: the experiment's metric; empty: there is none, and each step with any metric makes a report.
  explicit FoundMetrics(std::string objective) : objective_(std::move(objective)) {}

  void find(const std::string& name, Value value);
  // Ends a step: a line, or an event. Returns a report, if it makes one.
  std::optional<Metrics> end_step();
  // Returns a report of the values that were found since the last one, if there are any.
  std::optional<Metrics> rest();

 private:
  std::string objective_;
  Metrics values_ = {};
  bool has_objective_ = false;  // found in this step
  bool has_new_ = false;        // found since the last report
};

// Searches lines for metrics.
class MetricPatterns {
 public:
  static constexpr std::size_t kMostSearched = 4096;  // bytes of a line

  // The patterns by metric must have been checked.
  explicit MetricPatterns(const std::map<std::string, std::string>& patterns);

  // Puts the values of a line into `found`.
  void search(std::string_view line, FoundMetrics& found) const;

 private:
  std::vector<std::pair<std::string, std::regex>> patterns_;
};

// Returns why a pattern is none; empty if it is one.
std::string fault_of_pattern(const std::string& pattern);

// Returns a number if the whole text is one, as "1e-3" or "nan"; otherwise the text.
Value number_or_text(std::string_view text);

}  // namespace cadre::tune
