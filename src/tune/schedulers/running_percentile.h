// A percentile of numbers that arrive one by one, in logarithmic time.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

namespace cadre::tune {

// The value below which a fraction of the numbers lies, with linear interpolation between two of them.
// Source: numpy.percentile, method "linear", to the last bit.
class RunningPercentile {
 public:
  explicit RunningPercentile(double fraction) : fraction_(fraction) {}

  // Adds a number, which must not be NaN.
  void add(double number) {
    if (!lower_.empty() && number < *lower_.rbegin()) {
      lower_.insert(number);
    } else {
      upper_.insert(number);
    }
    // `lower_` ends with the number at the whole part of the position.
    const std::size_t wanted = static_cast<std::size_t>(std::floor(position())) + 1;
    while (lower_.size() < wanted) lower_.insert(lower_.end(), take(upper_, upper_.begin()));
    while (lower_.size() > wanted) upper_.insert(upper_.begin(), take(lower_, std::prev(lower_.end())));
  }

  std::size_t count() const { return lower_.size() + upper_.size(); }

  // Returns the percentile; empty if there are no numbers.
  std::optional<double> value() const {
    if (lower_.empty()) return std::nullopt;
    const double below = *lower_.rbegin();
    if (upper_.empty()) return below;
    const double above = *upper_.begin();
    const double part = position() - std::floor(position());
    if (part == 0 || !std::isfinite(below) || !std::isfinite(above)) return below;
    return part < 0.5 ? below + (above - below) * part : above - (above - below) * (1 - part);
  }

  // Returns all numbers in ascending order.
  std::vector<double> numbers() const {
    std::vector<double> all(lower_.begin(), lower_.end());
    all.insert(all.end(), upper_.begin(), upper_.end());
    return all;
  }

 private:
  double position() const { return fraction_ * static_cast<double>(count() - 1); }
  static double take(std::multiset<double>& some, std::multiset<double>::iterator which) {
    const double number = *which;
    some.erase(which);
    return number;
  }

  double fraction_;  // 0 to below 1
  std::multiset<double> lower_;
  std::multiset<double> upper_;
};

}  // namespace cadre::tune
