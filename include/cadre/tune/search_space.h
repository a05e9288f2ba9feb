// What a config is drawn from: domains, constants, grids, functions and nested spaces.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/detail/function_name.h"
#include "cadre/random.h"
#include "cadre/value.h"

namespace cadre::tune {

class SpaceEntry;
// Names and what each is drawn from, in the order in which they are shown.
using Space = std::vector<std::pair<std::string, SpaceEntry>>;
using Entries = std::vector<SpaceEntry>;

// Bounds mean the same everywhere: the lower one is included, the upper one is not, except where values are multiples
// of a `q`: then all multiples from lower to upper are there, both ends included, each with its full share. Bounds in
// the wrong order are swapped, and a warning says so.

// A real number, every one equally likely.
struct Uniform {
  double lower = 0;
  double upper = 1;
  double q = 0;  // multiples of this only; 0: any number
  bool operator==(const Uniform&) const = default;
};
// A real number, its logarithm uniform; 0 < lower.
struct LogUniform {
  double lower = 0;
  double upper = 1;
  double q = 0;
  bool operator==(const LogUniform&) const = default;
};
// A real number of a normal distribution, without bounds.
struct Normal {
  double mean = 0;
  double sd = 1;  // standard deviation, above 0
  double q = 0;
  bool operator==(const Normal&) const = default;
};
// An integer, each equally likely. At most 2^53 values.
struct RandInt {
  std::int64_t lower = 0;
  std::int64_t upper = 1;
  std::int64_t q = 0;  // multiples of this only; 0: any integer
  bool operator==(const RandInt&) const = default;
};
// An integer, its logarithm uniform: n as likely as the interval from n to n + 1; 0 < lower.
struct LogRandInt {
  std::int64_t lower = 1;
  std::int64_t upper = 2;
  std::int64_t q = 0;
  bool operator==(const LogRandInt&) const = default;
};
// One of the options, each equally likely. An option may be a domain or a space again, which is then drawn from: so a
// key can exist only together with another one.
struct Choice {
  std::shared_ptr<const Entries> options;
  bool operator==(const Choice& other) const;
};
// One of the options, each equally likely, in an order that means something: "small", "medium", "large".
struct Ordinal {
  List options;
  bool operator==(const Ordinal&) const = default;
};
using Domain = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal>;

// Every option in turn: with each of the num_samples, a trial for every combination of all grids.
struct GridSearch {
  std::shared_ptr<const Entries> options;
  bool operator==(const GridSearch& other) const;
};

// What a function of the program returns; see sample_from().
struct SampleFrom {
  std::string function = {};
  bool operator==(const SampleFrom&) const = default;
};

// A domain, a grid, a function, a constant, a list of entries, or a nested space:
// {{"lr", uniform(0, 1)}, {"epochs", 5}, {"model", {{"width", choice({1, 2})}}}}
class SpaceEntry {
 public:
  using Data =
      std::variant<Domain, GridSearch, SampleFrom, Value, std::shared_ptr<const Entries>, std::shared_ptr<const Space>>;

  SpaceEntry(Domain domain) : data_(std::move(domain)) {}
  SpaceEntry(GridSearch grid) : data_(std::move(grid)) {}
  SpaceEntry(SampleFrom function) : data_(std::move(function)) {}
  template <class T>
    requires std::constructible_from<Value, T&&>
  SpaceEntry(T&& constant) : data_(Value(std::forward<T>(constant))) {}
  explicit SpaceEntry(Entries list);
  SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested);
  SpaceEntry(Space nested);

  const Data& data() const { return data_; }
  bool operator==(const SpaceEntry& other) const;

 private:
  Data data_;
};

inline SpaceEntry::SpaceEntry(Entries list) : data_(std::make_shared<const Entries>(std::move(list))) {}
inline SpaceEntry::SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested)
    : data_(std::make_shared<const Space>(nested)) {}
inline SpaceEntry::SpaceEntry(Space nested) : data_(std::make_shared<const Space>(std::move(nested))) {}

// The names that a search space is written with. They check nothing: the Tuner names every fault with its key.
// Source of names and meaning: Ray Tune's search-space API; docs/architecture.md lists the differences.
inline Domain uniform(double lower, double upper) { return Uniform{lower, upper}; }
inline Domain quniform(double lower, double upper, double q) { return Uniform{lower, upper, q}; }
inline Domain loguniform(double lower, double upper) { return LogUniform{lower, upper}; }
inline Domain qloguniform(double lower, double upper, double q) { return LogUniform{lower, upper, q}; }
inline Domain randn(double mean = 0, double sd = 1) { return Normal{mean, sd}; }
inline Domain qrandn(double mean, double sd, double q) { return Normal{mean, sd, q}; }
inline Domain randint(std::int64_t lower, std::int64_t upper) { return RandInt{lower, upper}; }
inline Domain qrandint(std::int64_t lower, std::int64_t upper, std::int64_t q = 1) { return RandInt{lower, upper, q}; }
inline Domain lograndint(std::int64_t lower, std::int64_t upper) { return LogRandInt{lower, upper}; }
inline Domain qlograndint(std::int64_t lower, std::int64_t upper, std::int64_t q) {
  return LogRandInt{lower, upper, q};
}
inline Domain choice(Entries options) { return Choice{std::make_shared<const Entries>(std::move(options))}; }
inline Domain choice(std::initializer_list<SpaceEntry> options) { return choice(Entries(options)); }
inline Domain choice(const List& options) { return choice(Entries(options.begin(), options.end())); }
inline Domain ordinal(List options) { return Ordinal{std::move(options)}; }
inline Domain ordinal(std::initializer_list<Value> options) { return Ordinal{List(options)}; }
inline GridSearch grid_search(Entries options) { return {std::make_shared<const Entries>(std::move(options))}; }
inline GridSearch grid_search(std::initializer_list<SpaceEntry> options) { return grid_search(Entries(options)); }
inline GridSearch grid_search(const List& options) { return grid_search(Entries(options.begin(), options.end())); }

using cadre::list;
// A list whose items are entries of their own: list(randint(1, 9), randint(1, 9), 3).
template <class... T>
  requires((std::convertible_to<T &&, SpaceEntry> && ...) && !(std::constructible_from<Value, T &&> && ...))
SpaceEntry list(T&&... items) {
  return SpaceEntry(Entries{SpaceEntry(std::forward<T>(items))...});
}

namespace detail {
using SamplePointer = Value (*)(const Config&, Random&);
bool register_sample_function(std::string_view name, SamplePointer function);

template <auto F>
Value call_sample_function(const Config& config, Random& random) {
  if constexpr (std::invocable<decltype(F), const Config&, Random&>) {
    return F(config, random);
  } else if constexpr (std::invocable<decltype(F), const Config&>) {
    return F(config);
  } else {
    return F();
  }
}

template <auto F>
struct SampleRegistration {
  static inline const bool done = register_sample_function(cadre::detail::function_name<F>(), &call_sample_function<F>);
};
}  // namespace detail

// What the function F returns: Value f(), Value f(const Config&) or Value f(const Config&, Random&), or any type that a
// Value is made from. It is called in the process of the Tuner once for each trial, after everything else was drawn,
// with the config so far: functions that stand before it in the space have been called, later ones have not. It must
// depend on nothing but its arguments, so that a restore finds the same config. An exception fails that trial.
// Like a trainable it is found by its name; two functions of one name are refused by the Tuner.
template <auto F>
  requires std::invocable<decltype(F)> || std::invocable<decltype(F), const Config&> ||
           std::invocable<decltype(F), const Config&, Random&>
SampleFrom sample_from() {
  return {cadre::detail::registered_name<F, detail::SampleRegistration<F>>()};
}

}  // namespace cadre::tune
