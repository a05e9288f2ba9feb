#include "tune/domain.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace cadre::tune {
namespace {

std::string text(double value) {
  std::string out;
  base::append_python_float(out, value);
  return out;
}

// The largest double below `upper`: rounding must not lead out of a half-open interval.
double below(double value, double lower, double upper) {
  return std::clamp(value, lower, std::nextafter(upper, lower));
}

struct Sample {
  base::RandomStream& random;

  Value operator()(const Uniform& domain) const {
    return below(domain.lower + random.uniform() * (domain.upper - domain.lower), domain.lower, domain.upper);
  }
  Value operator()(const LogUniform& domain) const {
    const double low = std::log(domain.lower);
    return below(std::exp(low + random.uniform() * (std::log(domain.upper) - low)), domain.lower, domain.upper);
  }
  Value operator()(const RandInt& domain) const {
    const auto width = static_cast<std::uint64_t>(domain.upper) - static_cast<std::uint64_t>(domain.lower);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(domain.lower) + random.below(width));
  }
  Value operator()(const Choice& domain) const { return domain.options[random.below(domain.options.size())]; }
};

struct Clip {
  const Value& value;

  Value operator()(const Uniform& domain) const { return real(domain.lower, domain.upper); }
  Value operator()(const LogUniform& domain) const { return real(domain.lower, domain.upper); }
  Value operator()(const RandInt& domain) const {
    if (value.is_integer()) return std::clamp(value.get<std::int64_t>(), domain.lower, domain.upper - 1);
    return real(static_cast<double>(domain.lower), static_cast<double>(domain.upper - 1));
  }
  Value operator()(const Choice&) const { return value; }

 private:
  Value real(double lower, double upper) const {
    if (value.is_double()) return std::clamp(value.get<double>(), lower, upper);
    if (!value.is_integer()) return value;
    const auto whole = value.get<double>();
    if (whole < lower) return static_cast<std::int64_t>(std::ceil(lower));
    if (whole > upper) return static_cast<std::int64_t>(std::floor(upper));
    return value;
  }
};

std::string fault_of_bounds(double lower, double upper) {
  if (!std::isfinite(lower) || !std::isfinite(upper))
    return "its bounds " + text(lower) + " and " + text(upper) + " are not both finite";
  if (lower < upper) return {};
  return "its lower bound " + text(lower) + " is not below its upper bound " + text(upper);
}

struct Fault {
  std::string operator()(const Uniform& domain) const { return fault_of_bounds(domain.lower, domain.upper); }
  std::string operator()(const LogUniform& domain) const {
    if (domain.lower <= 0) return "its lower bound " + text(domain.lower) + " is not above 0, and has no logarithm";
    return fault_of_bounds(domain.lower, domain.upper);
  }
  std::string operator()(const RandInt& domain) const {
    constexpr std::uint64_t widest = std::uint64_t{1} << 53;
    if (domain.lower >= domain.upper)
      return "its lower bound " + std::to_string(domain.lower) + " is not below its upper bound " +
             std::to_string(domain.upper) + " (which is not included)";
    if (static_cast<std::uint64_t>(domain.upper) - static_cast<std::uint64_t>(domain.lower) > widest)
      return "its bounds are more than 2^53 apart";
    return {};
  }
  std::string operator()(const Choice& domain) const {
    return domain.options.empty() ? "it has no options to choose from" : "";
  }
};

struct Describe {
  std::string operator()(const Uniform& domain) const { return call("uniform", domain.lower, domain.upper); }
  std::string operator()(const LogUniform& domain) const { return call("loguniform", domain.lower, domain.upper); }
  std::string operator()(const RandInt& domain) const {
    return "randint(" + std::to_string(domain.lower) + ", " + std::to_string(domain.upper) + ")";
  }
  std::string operator()(const Choice& domain) const { return "choice(" + to_json(Value(domain.options)) + ")"; }

 private:
  static std::string call(const char* name, double lower, double upper) {
    return std::string(name) + "(" + text(lower) + ", " + text(upper) + ")";
  }
};

}  // namespace

Value sample(const Domain& domain, base::RandomStream& random) { return std::visit(Sample{random}, domain); }

Value clip(const Domain& domain, const Value& value) { return std::visit(Clip{value}, domain); }

std::string fault_of(const Domain& domain) { return std::visit(Fault{}, domain); }

std::string to_string(const Domain& domain) { return std::visit(Describe{}, domain); }

}  // namespace cadre::tune
