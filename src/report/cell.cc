#include "report/cell.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/host_object.h"

namespace cadre::report {
namespace {

constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;
constexpr int kCurveDigits = 7;
constexpr double kLongestInteger = 1e15;

Value exact_number(const char* digits) { return Dict{{"number", digits}}; }

}  // namespace

Value cell_of(const Value* value) {
  if (value == nullptr || value->is_null() || value->is_string()) return value == nullptr ? Value() : *value;
  if (value->is_double()) {
    const auto number = value->get<double>();
    if (std::isnan(number)) return exact_number("NaN");
    if (std::isinf(number)) return exact_number(number > 0 ? "Infinity" : "-Infinity");
    return *value;
  }
  if (value->is_integer()) {
    const auto number = value->get<std::int64_t>();
    const bool is_exact = number > -kExactInDouble && number < kExactInDouble;
    return is_exact ? *value : exact_number(std::to_string(number).c_str());
  }
  if (base::text_of_host_object(*value) != nullptr) {
    const Value plain = base::without_host_objects(*value);
    return cell_of(&plain);
  }
  return Dict{{"json", to_json(base::without_host_objects(*value))}};
}

Value point_of(double number) {
  if (!std::isfinite(number)) return {};
  if (number == std::floor(number) && std::abs(number) < kLongestInteger) return number;
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::general, kCurveDigits);
  double rounded = 0;
  std::from_chars(digits.data(), end.ptr, rounded);
  return rounded;
}

}  // namespace cadre::report
