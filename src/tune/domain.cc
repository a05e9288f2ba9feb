#include "tune/domain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>

#include "base/json.h"
#include "base/normal_distribution.h"
#include "base/overload.h"

namespace cadre::tune {
namespace {

using base::normal_probability;
using base::normal_quantile;
using base::Overload;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMostValues = 0x1p53;  // distinguishable by one number of a stream

std::string text(double value) {
  std::string out;
  base::append_python_float(out, value);
  return out;
}

// ---- Multiples of q

// The multiples of q from `lower` to `upper`, as first * q to last * q. 0.3 counts as a multiple of 0.1.
struct Multiples {
  double first;
  double last;

  Multiples(double lower, double upper, double q)
      : first(std::ceil(lower / q - slack(lower / q))), last(std::floor(upper / q + slack(upper / q))) {}

  double count() const { return last - first + 1; }

 private:
  static double slack(double steps) { return 1e-9 * std::max(1.0, std::abs(steps)); }
};

// Returns the multiples of a domain with a q. A logarithmic one has none at 0, however near to that its lower bound is.
template <class Numbers>
Multiples multiples_of(const Numbers& domain) {
  Multiples multiples(static_cast<double>(domain.lower), static_cast<double>(domain.upper),
                      static_cast<double>(domain.q));
  if constexpr (std::same_as<Numbers, LogUniform> || std::same_as<Numbers, LogRandInt>)
    multiples.first = std::max(multiples.first, 1.0);
  return multiples;
}

// Returns k * q; if q has few decimal digits, the double nearest to the decimal product: 3 / 10, not 3 * 0.1, which is
// 0.30000000000000004. Never -0.0.
double multiple(double k, double q) {
  for (double scale = 1; scale <= 1e15; scale *= 10) {
    const double digits = std::round(q * scale);
    if (digits > 0 && std::abs(q * scale - digits) < 1e-12 * digits) return k * digits / scale + 0.0;
  }
  return k * q + 0.0;
}

// Rounds as Python does: half-way to the even number.
double nearest(double value) { return std::nearbyint(value); }

// ---- Drawing

// Clamps to [lower, upper): rounding must not lead out of a half-open interval.
double below(double value, double lower, double upper) {
  return std::clamp(value, lower, std::nextafter(upper, lower));
}

double draw_log_uniform(double lower, double upper, base::RandomStream& random) {
  const double low = std::log(lower);
  return std::exp(low + random.uniform() * (std::log(upper) - low));
}

// Draws from a range that is half a step wider at both ends and rounds, so that the end values get their full share.
double draw_log_multiple(const Multiples& steps, base::RandomStream& random) {
  const double drawn = draw_log_uniform(steps.first - 0.5, steps.last + 0.5, random);
  return std::clamp(nearest(drawn), steps.first, steps.last);
}

struct Sample {
  base::RandomStream& random;

  SpaceEntry operator()(const Uniform& domain) const {
    if (domain.q > 0) {
      const Multiples steps = multiples_of(domain);
      return multiple(steps.first + static_cast<double>(random.below(static_cast<std::uint64_t>(steps.count()))),
                      domain.q);
    }
    return below(domain.lower + random.uniform() * (domain.upper - domain.lower), domain.lower, domain.upper);
  }
  SpaceEntry operator()(const LogUniform& domain) const {
    if (domain.q > 0) return multiple(draw_log_multiple(multiples_of(domain), random), domain.q);
    return below(draw_log_uniform(domain.lower, domain.upper, random), domain.lower, domain.upper);
  }
  SpaceEntry operator()(const Normal& domain) const {
    const double value = domain.mean + domain.sd * random.normal();
    return domain.q > 0 ? multiple(nearest(value / domain.q), domain.q) : value;
  }
  SpaceEntry operator()(const RandInt& domain) const {
    if (domain.q > 0) {
      const std::int64_t first = first_multiple(domain);
      const auto count = static_cast<std::uint64_t>(last_multiple(domain) - first) + 1;
      return (first + static_cast<std::int64_t>(random.below(count))) * domain.q;
    }
    const auto width = static_cast<std::uint64_t>(domain.upper) - static_cast<std::uint64_t>(domain.lower);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(domain.lower) + random.below(width));
  }
  SpaceEntry operator()(const LogRandInt& domain) const {
    if (domain.q > 0) return static_cast<std::int64_t>(draw_log_multiple(multiples_of(domain), random)) * domain.q;
    const auto lower = static_cast<double>(domain.lower);
    const auto upper = static_cast<double>(domain.upper);
    const auto drawn = static_cast<std::int64_t>(draw_log_uniform(lower, upper, random));
    return std::clamp(drawn, domain.lower, domain.upper - 1);
  }
  SpaceEntry operator()(const Choice& domain) const { return (*domain.options)[random.below(domain.options->size())]; }
  SpaceEntry operator()(const Ordinal& domain) const { return domain.options[random.below(domain.options.size())]; }

  static std::int64_t first_multiple(const RandInt& domain) {
    const std::int64_t quotient = domain.lower / domain.q;  // towards 0
    return quotient + (domain.lower > 0 && domain.lower % domain.q != 0 ? 1 : 0);
  }
  static std::int64_t last_multiple(const RandInt& domain) {
    const std::int64_t quotient = domain.upper / domain.q;
    return quotient - (domain.upper < 0 && domain.upper % domain.q != 0 ? 1 : 0);
  }
};

// ---- Quantiles

// Return the number whose logarithm lies at a fraction of the way between those of two numbers, and that fraction.
double from_logarithm(double begin, double end, double quantile) {
  const double low = std::log(begin);
  return std::exp(low + quantile * (std::log(end) - low));
}

double to_logarithm(double begin, double end, double value) {
  const double low = std::log(begin);
  return std::clamp((std::log(value) - low) / (std::log(end) - low), 0.0, 1.0);
}

std::int64_t index_at(double quantile, double count) {
  return static_cast<std::int64_t>(std::min(std::floor(quantile * count), count - 1));
}

// The integers from `first` to `last`, each as likely as the others.
Parameter::Cell one_of(double first, double last, double value) {
  const double count = last - first + 1;
  return {(value - first) / count, (value - first + 1) / count};
}

// The integers from `first` to `last`, by the logarithm of the interval around each, half a step to both sides.
double log_step_at(const Multiples& steps, double quantile) {
  const double drawn = from_logarithm(steps.first - 0.5, steps.last + 0.5, quantile);
  return std::clamp(nearest(drawn), steps.first, steps.last);
}

Parameter::Cell log_step_cell(const Multiples& steps, double step) {
  return {to_logarithm(steps.first - 0.5, steps.last + 0.5, step - 0.5),
          to_logarithm(steps.first - 0.5, steps.last + 0.5, step + 0.5)};
}

struct AtQuantile {
  double quantile;

  SpaceEntry operator()(const Uniform& d) const {
    if (d.q > 0) {
      const Multiples steps = multiples_of(d);
      return multiple(steps.first + static_cast<double>(index_at(quantile, steps.count())), d.q);
    }
    return below(d.lower + quantile * (d.upper - d.lower), d.lower, d.upper);
  }
  SpaceEntry operator()(const LogUniform& d) const {
    if (d.q > 0) return multiple(log_step_at(multiples_of(d), quantile), d.q);
    return below(from_logarithm(d.lower, d.upper, quantile), d.lower, d.upper);
  }
  SpaceEntry operator()(const Normal& d) const {
    constexpr double least = 0x1p-54;
    const double value = d.mean + d.sd * normal_quantile(std::clamp(quantile, least, 1 - 2 * least));
    return d.q > 0 ? multiple(nearest(value / d.q), d.q) : value;
  }
  SpaceEntry operator()(const RandInt& d) const {
    if (d.q == 0) return d.lower + index_at(quantile, static_cast<double>(d.upper - d.lower));
    const Multiples steps = multiples_of(d);
    return (static_cast<std::int64_t>(steps.first) + index_at(quantile, steps.count())) * d.q;
  }
  SpaceEntry operator()(const LogRandInt& d) const {
    if (d.q > 0) return static_cast<std::int64_t>(log_step_at(multiples_of(d), quantile)) * d.q;
    const auto lower = static_cast<double>(d.lower);
    const auto upper = static_cast<double>(d.upper);
    return std::clamp(static_cast<std::int64_t>(from_logarithm(lower, upper, quantile)), d.lower, d.upper - 1);
  }
  SpaceEntry operator()(const Choice& d) const { return (*d.options)[option_at(d.options->size())]; }
  SpaceEntry operator()(const Ordinal& d) const { return d.options[option_at(d.options.size())]; }

  std::size_t option_at(std::size_t count) const {
    return static_cast<std::size_t>(index_at(quantile, static_cast<double>(count)));
  }
};

// Returns how many integers of the domain are below one of its values; exact also where a double is not.
double integers_below(const RandInt& domain, const Value& value) {
  const double below = value.is_integer() ? static_cast<double>(value.get<std::int64_t>() - domain.lower)
                                          : value.get<double>() - static_cast<double>(domain.lower);
  return std::clamp(below, 0.0, static_cast<double>(domain.upper - domain.lower - 1));
}

struct QuantilesOf {
  const Value& given;
  double value = given.get<double>();

  using Cell = Parameter::Cell;

  Cell operator()(const Uniform& d) const {
    if (d.q > 0) {
      const Multiples steps = multiples_of(d);
      return one_of(steps.first, steps.last, nearest(value / d.q));
    }
    return at((value - d.lower) / (d.upper - d.lower));
  }
  Cell operator()(const LogUniform& d) const {
    if (d.q > 0) return log_step_cell(multiples_of(d), nearest(value / d.q));
    return at(to_logarithm(d.lower, d.upper, value));
  }
  Cell operator()(const Normal& d) const {
    if (d.q == 0) return at(normal_probability((value - d.mean) / d.sd));
    const double step = nearest(value / d.q);
    return {normal_probability(((step - 0.5) * d.q - d.mean) / d.sd),
            normal_probability(((step + 0.5) * d.q - d.mean) / d.sd)};
  }
  Cell operator()(const RandInt& d) const {
    if (d.q == 0) return one_of(0, static_cast<double>(d.upper - d.lower - 1), integers_below(d, given));
    const Multiples steps = multiples_of(d);
    return one_of(steps.first, steps.last, nearest(value / static_cast<double>(d.q)));
  }
  Cell operator()(const LogRandInt& d) const {
    if (d.q > 0) return log_step_cell(multiples_of(d), nearest(value / static_cast<double>(d.q)));
    const auto lower = static_cast<double>(d.lower);
    const auto upper = static_cast<double>(d.upper);
    return {to_logarithm(lower, upper, value), to_logarithm(lower, upper, value + 1)};
  }
  Cell operator()(const Choice& d) const { return one_of(0, static_cast<double>(d.options->size()) - 1, value); }
  Cell operator()(const Ordinal& d) const { return one_of(0, static_cast<double>(d.options.size()) - 1, value); }

  // Below 1, also at the upper bound of a continuum.
  static Cell at(double quantile) {
    const double inside = std::clamp(quantile, 0.0, std::nextafter(1.0, 0.0));
    return {inside, inside};
  }
};

// ---- The numbers of a domain

struct Range {
  double lower = -kInfinity;  // both included
  double upper = kInfinity;
  double q = 0;
  bool logarithmic = false;
};

// `last`: the greatest number if there is no q.
template <class Numbers, class Number>
Range range(const Numbers& domain, Number last, bool logarithmic) {
  const auto q = static_cast<double>(domain.q);
  if (q == 0) return {static_cast<double>(domain.lower), static_cast<double>(last), q, logarithmic};
  const Multiples steps = multiples_of(domain);
  return {multiple(steps.first, q), multiple(steps.last, q), q, logarithmic};
}

std::optional<Range> range_of(const Domain& domain) {
  using Result = std::optional<Range>;
  return std::visit(Overload{[](const Uniform& d) -> Result { return range(d, d.upper, false); },
                             [](const LogUniform& d) -> Result { return range(d, d.upper, true); },
                             [](const Normal& d) -> Result { return Range{.q = d.q}; },
                             [](const RandInt& d) -> Result { return range(d, d.upper - 1, false); },
                             [](const LogRandInt& d) -> Result { return range(d, d.upper - 1, true); },
                             [](const auto&) -> Result { return std::nullopt; }},
                    domain);
}

bool draws_integers(const Domain& domain) {
  return std::holds_alternative<RandInt>(domain) || std::holds_alternative<LogRandInt>(domain);
}

// Folds the value into the bounds, like light between mirrors.
double reflect(double value, double lower, double upper) {
  const double width = upper - lower;
  if (!(width > 0)) return lower;
  const double way = std::fmod(std::abs(value - lower), 2 * width);
  return lower + (way <= width ? way : 2 * width - way);
}

double reflect(double value, const Range& range) {
  if (!range.logarithmic) return reflect(value, range.lower, range.upper);
  if (value <= 0) return range.lower;
  return std::exp(reflect(std::log(value), std::log(range.lower), std::log(range.upper)));
}

// ---- Faults

template <class Numbers>
std::string fault_of_bounds(const Numbers& domain) {
  const auto lower = static_cast<double>(domain.lower);
  const auto upper = static_cast<double>(domain.upper);
  const auto q = static_cast<double>(domain.q);
  if (!std::isfinite(lower) || !std::isfinite(upper))
    return "its bounds " + text(lower) + " and " + text(upper) + " are not both finite";
  if (!std::isfinite(q) || q < 0) return "its q " + text(q) + " is not 0 or more";
  if (q == 0 && !(lower < upper))
    return "its lower bound " + text(lower) + " is not below its upper bound " + text(upper);
  if (q == 0)
    return std::isfinite(upper - lower)
               ? ""
               : "its bounds " + text(lower) + " and " + text(upper) + " are further apart than the greatest number";
  const Multiples steps = multiples_of(domain);
  if (steps.count() < 1)
    return "there is no multiple of its q " + text(q) + " from " + text(lower) + " to " + text(upper);
  // NaN where even the quotients are too large for a number.
  return steps.count() <= kMostValues ? "" : "its bounds are more than 2^53 multiples of its q apart";
}

template <class Integers>
std::string fault_of_integers(const Integers& domain) {
  const auto& [lower, upper, q] = domain;
  if (q < 0) return fmt::format("its q {} is not 0 or more", q);
  if (q == 0 && lower >= upper)
    return fmt::format("its lower bound {} is not below its upper bound {} (which is not included)", lower, upper);
  if (static_cast<std::uint64_t>(upper) - static_cast<std::uint64_t>(lower) > static_cast<std::uint64_t>(kMostValues))
    return "its bounds are more than 2^53 apart";
  return q == 0 ? "" : fault_of_bounds(domain);
}

std::string no_logarithm(double lower) {
  return "its lower bound " + text(lower) + " is not above 0, and has no logarithm";
}

struct Fault {
  std::string operator()(const Uniform& d) const { return fault_of_bounds(d); }
  std::string operator()(const LogUniform& d) const {
    return d.lower <= 0 ? no_logarithm(d.lower) : fault_of_bounds(d);
  }
  std::string operator()(const Normal& d) const {
    if (!std::isfinite(d.mean)) return "its mean " + text(d.mean) + " is not finite";
    if (!std::isfinite(d.sd) || d.sd <= 0) return "its standard deviation " + text(d.sd) + " is not above 0";
    constexpr double kFarthest = 9;  // no number that is drawn is as many standard deviations away
    if (!std::isfinite(std::abs(d.mean) + kFarthest * d.sd))
      return "its mean " + text(d.mean) + " and standard deviation " + text(d.sd) +
             " give numbers that are greater than the greatest one";
    return std::isfinite(d.q) && d.q >= 0 ? "" : "its q " + text(d.q) + " is not 0 or more";
  }
  std::string operator()(const RandInt& d) const { return fault_of_integers(d); }
  std::string operator()(const LogRandInt& d) const {
    return d.lower <= 0 ? no_logarithm(static_cast<double>(d.lower)) : fault_of_integers(d);
  }
  std::string operator()(const Choice& d) const { return fault_of_options(d.options->size()); }
  std::string operator()(const Ordinal& d) const { return fault_of_options(d.options.size()); }

  static std::string fault_of_options(std::size_t options) {
    return options == 0 ? "it has no options to choose from" : "";
  }
};

// ---- For messages

std::string join(const Entries& entries) {
  std::vector<std::string> texts;
  for (const SpaceEntry& entry : entries) texts.push_back(to_string(entry));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string call(const char* name, const std::string& first, const std::string& second, const std::string& q,
                 bool multiples) {
  return fmt::format("{}{}({}, {}{}{})", multiples ? "q" : "", name, first, second, multiples ? ", " : "",
                     multiples ? q : "");
}

struct Describe {
  std::string operator()(const Uniform& d) const { return real("uniform", d.lower, d.upper, d.q); }
  std::string operator()(const LogUniform& d) const { return real("loguniform", d.lower, d.upper, d.q); }
  std::string operator()(const Normal& d) const { return real("randn", d.mean, d.sd, d.q); }
  std::string operator()(const RandInt& d) const { return integer("randint", d.lower, d.upper, d.q); }
  std::string operator()(const LogRandInt& d) const { return integer("lograndint", d.lower, d.upper, d.q); }
  std::string operator()(const Choice& d) const { return "choice(" + join(*d.options) + ")"; }
  std::string operator()(const Ordinal& d) const { return "ordinal(" + to_json(Value(d.options)) + ")"; }

 private:
  static std::string real(const char* name, double first, double second, double q) {
    return call(name, text(first), text(second), text(q), q != 0);
  }
  static std::string integer(const char* name, std::int64_t first, std::int64_t second, std::int64_t q) {
    return call(name, std::to_string(first), std::to_string(second), std::to_string(q), q != 0);
  }
};

// Compares numbers by value, integer or not.
bool same(const Value& a, const Value& b) {
  return a == b || (a.is_number() && b.is_number() && a.get<double>() == b.get<double>());
}

bool contains_number(const Domain& domain, const Value& value) {
  const std::optional<Range> numbers = range_of(domain);
  if (!numbers || !value.is_number() || (draws_integers(domain) && !value.is_integer())) return false;
  const auto number = value.get<double>();
  return number >= numbers->lower && number <= numbers->upper;
}

bool contains_any(const Entries& options, const Value& value) {
  return std::ranges::any_of(options, [&](const SpaceEntry& option) { return contains(option, value); });
}

bool contains_all(const Space& space, const Value& value) {
  if (!value.is_dict() || value.dict().size() != space.size()) return false;
  const Config entries(value.dict());
  return std::ranges::all_of(space, [&](const auto& entry) {
    const Value* item = entries.find(entry.first);
    return item != nullptr && contains(entry.second, *item);
  });
}

bool contains_each(const Entries& entries, const Value& value) {
  return value.is_list() && std::ranges::equal(entries, value.items(), contains);
}

// Puts the bounds of all domains in order, with a note for each that was reversed.
class BoundsSorter {
 public:
  explicit BoundsSorter(std::vector<std::string>& notes) : notes_(notes) {}

  SpaceEntry sorted(const SpaceEntry& entry, const std::string& name) {
    return std::visit(
        base::Overload{
            [&](const Domain& domain) { return SpaceEntry(sorted(domain, name)); },
            [&](const GridSearch& grid) { return SpaceEntry(GridSearch{sorted(*grid.options, name)}); },
            [&](const std::shared_ptr<const Entries>& items) { return SpaceEntry(Entries(*sorted(*items, name))); },
            [&](const std::shared_ptr<const Space>& space) { return SpaceEntry(sorted(*space, name + " > ")); },
            [](const auto& other) { return SpaceEntry(other); }},
        entry.data());
  }
  Space sorted(const Space& space, const std::string& path) {
    Space result;
    for (const auto& [key, entry] : space) result.emplace_back(key, sorted(entry, path + "\"" + key + "\""));
    return result;
  }
  Domain sorted(Domain domain, const std::string& name) {
    if (const auto* choice = std::get_if<Choice>(&domain)) return Choice{sorted(*choice->options, name)};
    const std::string given = to_string(domain);
    if (put_bounds_in_order(domain))
      notes_.push_back(
          fmt::format("{}: {} has its bounds in the wrong order; taken as {}", name, given, to_string(domain)));
    return domain;
  }

 private:
  std::shared_ptr<const Entries> sorted(const Entries& entries, const std::string& name) {
    Entries result;
    for (const SpaceEntry& entry : entries) result.push_back(sorted(entry, name));
    return std::make_shared<const Entries>(std::move(result));
  }

  std::vector<std::string>& notes_;
};

}  // namespace

bool Choice::operator==(const Choice& other) const { return *options == *other.options; }

bool GridSearch::operator==(const GridSearch& other) const { return *options == *other.options; }

bool SpaceEntry::operator==(const SpaceEntry& other) const {
  if (data_.index() != other.data_.index()) return false;
  return std::visit(
      [&]<class T>(const T& content) {
        const T& others = std::get<T>(other.data_);
        if constexpr (requires { *content; }) {
          return *content == *others;
        } else {
          return content == others;
        }
      },
      data_);
}

SpaceEntry sample(const Domain& domain, base::RandomStream& random) { return std::visit(Sample{random}, domain); }

SpaceEntry at_quantile(const Domain& domain, double quantile) { return std::visit(AtQuantile{quantile}, domain); }

Parameter::Cell quantiles_of(const Domain& domain, const Value& value) {
  return std::visit(QuantilesOf{value}, domain);
}

std::int64_t count_values(const Domain& domain) {
  return std::visit(Overload{[](const Normal&) { return std::int64_t{0}; },
                             [](const Choice& d) { return static_cast<std::int64_t>(d.options->size()); },
                             [](const Ordinal& d) { return static_cast<std::int64_t>(d.options.size()); },
                             []<class T>(const T& d) {
                               if (d.q > 0) return static_cast<std::int64_t>(multiples_of(d).count());
                               return std::is_integral_v<decltype(d.lower)>
                                          ? static_cast<std::int64_t>(d.upper - d.lower)
                                          : std::int64_t{0};
                             }},
                    domain);
}

Value keep_inside(const Domain& domain, const Value& value, Bounds bounds) {
  const std::optional<Range> numbers = range_of(domain);
  if (!numbers || !value.is_number()) return value;
  double number = value.get<double>();
  const bool outside = number < numbers->lower || number > numbers->upper;
  if (outside && bounds == Bounds::clip) number = std::clamp(number, numbers->lower, numbers->upper);
  if (outside && bounds == Bounds::reflect) number = reflect(number, *numbers);
  if (numbers->q > 0) number = multiple(nearest(number / numbers->q), numbers->q);
  if (value.is_double()) return number;
  if (number == value.get<double>()) return value;
  if (bounds == Bounds::unbounded) return static_cast<std::int64_t>(nearest(number));
  const double least = std::ceil(numbers->lower);
  const double greatest = std::floor(numbers->upper);
  const double whole = nearest(number);
  return static_cast<std::int64_t>(least <= greatest ? std::clamp(whole, least, greatest) : whole);
}

double smallest_step(const Domain& domain, const Value& value) {
  const std::optional<Range> numbers = range_of(domain);
  const double q = numbers ? numbers->q : 0;
  return value.is_integer() ? std::max(q, 1.0) : q;
}

bool contains(const SpaceEntry& entry, const Value& value) {
  return std::visit(
      Overload{[&](const Domain& domain) {
                 if (const auto* choice = std::get_if<Choice>(&domain)) return contains_any(*choice->options, value);
                 if (const auto* ordinal = std::get_if<Ordinal>(&domain))
                   return std::ranges::any_of(ordinal->options, [&](const Value& item) { return same(item, value); });
                 return contains_number(domain, value);
               },
               [&](const GridSearch& grid) { return contains_any(*grid.options, value); },
               [](const SampleFrom&) { return true; }, [&](const Value& constant) { return same(constant, value); },
               [&](const std::shared_ptr<const Entries>& items) { return contains_each(*items, value); },
               [&](const std::shared_ptr<const Space>& space) { return contains_all(*space, value); }},
      entry.data());
}

bool constant_options(const Domain& domain, List& options) {
  if (const auto* ordinal = std::get_if<Ordinal>(&domain)) options = ordinal->options;
  if (const auto* choice = std::get_if<Choice>(&domain)) {
    for (const SpaceEntry& option : *choice->options) {
      const auto* constant = std::get_if<Value>(&option.data());
      if (constant == nullptr) return false;
      options.push_back(*constant);
    }
  }
  return true;
}

bool put_bounds_in_order(Domain& domain) {
  return std::visit(
      [](auto& d) {
        if constexpr (requires { d.lower; }) {
          if (!(d.upper < d.lower)) return false;
          std::swap(d.lower, d.upper);
          return true;
        }
        return false;
      },
      domain);
}

std::string fault_of(const Domain& domain) { return std::visit(Fault{}, domain); }

std::string to_string(const Domain& domain) { return std::visit(Describe{}, domain); }

std::string to_string(const SpaceEntry& entry) {
  return std::visit(Overload{[](const Domain& domain) { return to_string(domain); },
                             [](const GridSearch& grid) { return "grid_search(" + join(*grid.options) + ")"; },
                             [](const SampleFrom& function) { return "fn<" + function.function + ">"; },
                             [](const Value& constant) { return to_json(constant); },
                             [](const std::shared_ptr<const Entries>& items) { return join(*items); },
                             [](const std::shared_ptr<const Space>& space) {
                               std::vector<std::string> texts;
                               for (const auto& [key, item] : *space)
                                 texts.push_back(fmt::format("\"{}\": {}", key, to_string(item)));
                               return fmt::format("{{{}}}", fmt::join(texts, ", "));
                             }},
                    entry.data());
}

Space with_sorted_bounds(const Space& space, const std::string& path, std::vector<std::string>& notes) {
  return BoundsSorter(notes).sorted(space, path);
}

Domain with_sorted_bounds(const Domain& domain, const std::string& name, std::vector<std::string>& notes) {
  return BoundsSorter(notes).sorted(domain, name);
}

}  // namespace cadre::tune
