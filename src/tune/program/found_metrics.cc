#include "tune/program/found_metrics.h"

#include <charconv>
#include <utility>

namespace cadre::tune {

void FoundMetrics::find(const std::string& name, Value value) {
  values_.set(name, std::move(value));
  has_new_ = true;
  has_objective_ = has_objective_ || objective_.empty() || name == objective_;
}

std::optional<Metrics> FoundMetrics::end_step() {
  if (!std::exchange(has_objective_, false)) return {};
  return rest();
}

std::optional<Metrics> FoundMetrics::rest() {
  if (!std::exchange(has_new_, false)) return {};
  return values_;
}

MetricPatterns::MetricPatterns(const std::map<std::string, std::string>& patterns) {
  for (const auto& [metric, pattern] : patterns) patterns_.emplace_back(metric, std::regex(pattern));
}

void MetricPatterns::search(std::string_view line, FoundMetrics& found) const {
  line = line.substr(0, kMostSearched);
  for (const auto& [metric, pattern] : patterns_) {
    std::string_view last;
    for (std::cregex_iterator match(line.data(), line.data() + line.size(), pattern), end; match != end; ++match) {
      const std::csub_match& value = (*match)[match->size() > 1 ? 1 : 0];
      if (value.matched) last = std::string_view(value.first, static_cast<std::size_t>(value.length()));
    }
    if (!last.empty()) found.find(metric, number_or_text(last));
  }
}

std::string fault_of_pattern(const std::string& pattern) {
  try {
    static_cast<void>(std::regex(pattern));
    return "";
  } catch (const std::regex_error& error) {
    return "\"" + pattern + "\" is no regular expression: " + error.what();
  }
}

Value number_or_text(std::string_view text) {
  const char* const end = text.data() + text.size();
  if (std::int64_t whole = 0; std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) return whole;
  const char* const begin = text.starts_with('+') ? text.data() + 1 : text.data();
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end && begin != end) return number;
  return std::string(text);
}

}  // namespace cadre::tune
