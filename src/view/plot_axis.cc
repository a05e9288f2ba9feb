#include "view/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cadre::view {
namespace {

constexpr double kMargin = 0.04;  // on each side, as a part of the shown range

// "10⁻³"
std::string power_of_ten(int exponent) {
  constexpr std::array<const char*, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += digits[static_cast<std::size_t>(digit - '0')];
  return text;
}

// Returns the smallest of 1, 2 and 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// Formats a number with a minus sign instead of a hyphen.
std::string number_text(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool zero = text.find_first_not_of("0.") == text.npos;
  return value < 0 && !zero ? "−" + text : text;
}

int decade_of(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// Returns a digit times a power of ten as text: "0.05", or "5×10⁻⁷" where the zeros would have to be counted.
std::string round_number_text(int digit, int exponent) {
  constexpr int lowest_plain = -3;
  constexpr int highest_plain = 4;
  if (exponent >= lowest_plain && exponent <= highest_plain) return fmt::format("{:g}", digit * std::pow(10, exponent));
  return (digit == 1 ? "" : fmt::format("{}×", digit)) + power_of_ten(exponent);
}

}  // namespace

PlotAxis::PlotAxis(double lowest, double highest, Scale scale) : scale_(scale) {
  const double low = shown(lowest);
  const double high = shown(highest);
  const double size = std::max(std::abs(low), std::abs(high));
  // Numbers that differ only by rounding count as one, and so do numbers next to 0 for a double.
  constexpr double next_to_zero = 1e-290;
  const bool one = high - low <= std::max(size * 1e-12, next_to_zero);
  const double around_one = scale_ == Scale::logarithmic ? 0.5 : size > next_to_zero ? size / 2 : 1;
  const double margin = one ? around_one : (high - low) * kMargin;
  begin_ = low - margin;
  end_ = high + margin;
}

double PlotAxis::shown(double value) const { return scale_ == Scale::logarithmic ? std::log10(value) : value; }

double PlotAxis::position_of(double value) const { return (shown(value) - begin_) / (end_ - begin_); }

PlotAxis::Ticks PlotAxis::ticks(int count, bool whole) const {
  return scale_ == Scale::linear ? linear_ticks(count, whole) : logarithmic_ticks(count);
}

PlotAxis::Ticks PlotAxis::linear_ticks(int count, bool whole) const {
  double step = round_step((end_ - begin_) / count);
  if (whole) step = std::max(step, 1.0);
  const double size = std::max(std::abs(begin_), std::abs(end_));
  int exponent = decade_of(size);
  Ticks ticks;
  // For large numbers that are close to each other, a factor would hide the digits in which they differ.
  const bool alike = exponent > 0 && exponent < 15 && exponent - decade_of(step) > 3;
  if ((exponent >= 5 && !alike) || exponent <= -4) {
    ticks.factor = "×" + power_of_ten(exponent);
  } else {
    exponent = 0;
  }
  const int decimals = std::clamp(exponent - decade_of(step), 0, 12);
  const double first = std::ceil(begin_ / step - 1e-9);
  const int steps = static_cast<int>(std::floor(end_ / step + 1e-9) - first);
  for (int i = 0; i <= steps; ++i) {
    const double value = (first + i) * step;
    ticks.ticks.push_back({position_of(value), number_text(value / std::pow(10, exponent), decimals)});
  }
  return ticks;
}

PlotAxis::Ticks PlotAxis::logarithmic_ticks(int count) const {
  Ticks ticks;
  const int lowest = static_cast<int>(std::ceil(begin_ - 1e-9));
  const int highest = static_cast<int>(std::floor(end_ + 1e-9));
  const bool plain = lowest >= -3 && highest <= 4;
  constexpr int fewest = 3;  // of powers of ten; two alone say little about what lies between and beyond them
  if (highest - lowest + 1 >= fewest) {
    const int step = (highest - lowest) / count + 1;
    const int first = static_cast<int>(std::ceil(static_cast<double>(lowest) / step)) * step;
    for (int exponent = first; exponent <= highest; exponent += step)
      ticks.ticks.push_back({position_of(std::pow(10, exponent)),
                             plain ? fmt::format("{:g}", std::pow(10, exponent)) : power_of_ten(exponent)});
    return ticks;
  }
  for (int exponent = lowest - 1; exponent <= highest + 1; ++exponent) {
    for (const int digit : {1, 2, 5}) {
      const double position = position_of(digit * std::pow(10, exponent));
      if (position >= 0 && position <= 1) ticks.ticks.push_back({position, round_number_text(digit, exponent)});
    }
  }
  if (ticks.ticks.size() >= 2) return ticks;
  // The range has fewer than two of these ticks: use linear ones, which are spaced evenly enough.
  const PlotAxis linear(std::pow(10, begin_), std::pow(10, end_), Scale::linear);
  ticks = linear.linear_ticks(count, false);
  const double low = linear.begin_;
  std::erase_if(ticks.ticks, [&](Tick& tick) {
    const double value = low + tick.position * (linear.end_ - low);
    if (!(value > 0)) return true;
    tick.position = position_of(value);
    return tick.position < 0 || tick.position > 1;
  });
  return ticks;
}

}  // namespace cadre::view
