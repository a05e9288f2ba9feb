/// \file
/// Search spaces, from which configs are drawn: domains, constants, grids, functions and nested spaces.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/detail/member_names.h"
#include "cadre/function.h"
#include "cadre/random.h"
#include "cadre/value.h"

namespace cadre {
class Stored;
}

namespace cadre::tune {

class SpaceEntry;
/// Names and the entries that their values are drawn from, in the order in which they are shown. Keys are not empty,
/// contain no '/', and occur once each.
using Space = std::vector<std::pair<std::string, SpaceEntry>>;
/// Options of a choice or a grid, or items of a list.
using Entries = std::vector<SpaceEntry>;

/// A uniformly distributed real number.
///
/// Bounds mean the same in all domains: they and their difference are finite; the lower one is included, the upper one
/// is not. With a `q` all multiples of q from lower to upper are possible, both ends included, each with its full
/// share, at most 2^53 of them. Bounds in the wrong order are swapped, with a warning.
struct Uniform {
  double lower = 0;                                 ///< included
  double upper = 1;                                 ///< not included without a q
  double q = 0;                                     ///< only multiples of q; 0: any number
  bool operator==(const Uniform&) const = default;  ///< compares bounds and q
};
/// A real number whose logarithm is uniformly distributed. Bounds are as in Uniform.
struct LogUniform {
  double lower = 0;                                    ///< above 0, so it must be set; included
  double upper = 1;                                    ///< not included without a q
  double q = 0;                                        ///< only multiples of q; 0: any number
  bool operator==(const LogUniform&) const = default;  ///< compares bounds and q
};
/// A normally distributed real number, without bounds.
struct Normal {
  double mean = 0;                                 ///< any finite number
  double sd = 1;                                   ///< standard deviation, above 0
  double q = 0;                                    ///< rounded to multiples of q; 0: any number
  bool operator==(const Normal&) const = default;  ///< compares mean, sd and q
};
/// A uniformly distributed integer. At most 2^53 values. Bounds are as in Uniform.
struct RandInt {
  std::int64_t lower = 0;                           ///< included
  std::int64_t upper = 1;                           ///< not included without a q
  std::int64_t q = 0;                               ///< only multiples of q; 0: any integer
  bool operator==(const RandInt&) const = default;  ///< compares bounds and q
};
/// An integer whose logarithm is uniformly distributed: n is as likely as the interval from n to n + 1. Bounds are as
/// in Uniform.
struct LogRandInt {
  std::int64_t lower = 1;                              ///< above 0; included
  std::int64_t upper = 2;                              ///< not included without a q
  std::int64_t q = 0;                                  ///< only multiples of q; 0: any integer
  bool operator==(const LogRandInt&) const = default;  ///< compares bounds and q
};
/// One of the options, each equally likely. An option may be a domain or a space itself, which is then drawn from: so a
/// key can exist only in combination with another one.
struct Choice {
  std::shared_ptr<const Entries> options;      ///< at least one
  bool operator==(const Choice& other) const;  ///< compares the options, in order
};
/// One of the options, each equally likely, in a meaningful order: "small", "medium", "large".
struct Ordinal {
  List options;                                     ///< at least one
  bool operator==(const Ordinal&) const = default;  ///< compares the options, in order
};
/// A domain that a value is drawn from.
using Domain = std::variant<Uniform, LogUniform, Normal, RandInt, LogRandInt, Choice, Ordinal>;

/// Every option in turn: each of the num_samples makes a trial for every combination of all grids. A grid may be inside
/// an option of another grid, but not of a choice.
struct GridSearch {
  std::shared_ptr<const Entries> options;          ///< at least one
  bool operator==(const GridSearch& other) const;  ///< compares the options, in order
};

namespace detail {
using SamplePointer = Value (*)(const Config&, Random&);
bool register_sample_function(std::string_view name, SamplePointer function);

template <class F>
concept SampleFunction =
    std::invocable<F> || std::invocable<F, const Config&> || std::invocable<F, const Config&, Random&>;

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

/// \cond
#define CADRE_NO_SAMPLE_FUNCTION \
  CADRE_MISTAKE(                 \
      "a function of a search space is f(), f(const Config&) or f(const Config&, Random&), and returns a value")
/// \endcond
}  // namespace detail

/// The return value of a function of the program.
struct SampleFrom {
  SampleFrom() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit SampleFrom(std::string name) : function(std::move(name)) {}
  /// Names a function: Value f(), Value f(const Config&) or Value f(const Config&, Random&), or with any result type
  /// that a Value is made from. It is called in the process of the Tuner once for each trial, after all other values
  /// were drawn, with the config so far: functions before it in the space have been called, later ones have not. It may
  /// return something else each time, such as a number that a service gives: a restore takes the config from the store.
  /// An exception fails that trial.
  template <auto F>
    requires detail::SampleFunction<decltype(F)>
  SampleFrom(Function<F>) : function(cadre::detail::registered_name<F, detail::SampleRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::SampleFunction<decltype(F)>)
  CADRE_NO_SAMPLE_FUNCTION SampleFrom(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string function = {};                           ///< its name
  HostFunction host_function = {};                     ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const SampleFrom&) const = default;  ///< compares the members
};

namespace detail {
// Accepts types that no entry of a search space can be made from.
template <class T>
concept NoEntry = !std::constructible_from<Value, const T&> && !std::convertible_to<const T&, Domain> &&
                  !std::convertible_to<const T&, GridSearch> && !std::convertible_to<const T&, SampleFrom> &&
                  !std::convertible_to<const T&, Space> && !std::convertible_to<const T&, Entries> &&
                  !std::same_as<T, SpaceEntry> && cadre::detail::NotFn<T>;
}  // namespace detail

/// \cond forms for cadre/stored.h
Value stored_form(const Space& space);
void read_stored(Space& space, const Stored& stored);
Value stored_form(const Entries& entries);
void read_stored(Entries& entries, const Stored& stored);
/// \endcond

/// An entry of a search space: a domain, a grid, a function, a constant, a list of entries, or a nested space:
///
///     {{"lr", uniform(0, 1)}, {"epochs", 5}, {"model", {{"width", choice({1, 2})}}}}
class SpaceEntry {
 public:
  /// A domain, grid, function, constant, list or nested space.
  using Data =
      std::variant<Domain, GridSearch, SampleFrom, Value, std::shared_ptr<const Entries>, std::shared_ptr<const Space>>;

  /// Makes an entry from a domain.
  SpaceEntry(Domain domain) : data_(std::move(domain)) {}
  /// Makes an entry from a grid.
  SpaceEntry(GridSearch grid) : data_(std::move(grid)) {}
  /// Makes an entry from a function.
  SpaceEntry(SampleFrom function) : data_(std::move(function)) {}
  /// Makes an entry from a function: see SampleFrom.
  template <auto F>
    requires detail::SampleFunction<decltype(F)>
  SpaceEntry(Function<F> function) : data_(SampleFrom(function)) {}
  /// Makes a constant, from any type that a Value is made from.
  template <class T>
    requires std::constructible_from<Value, T&&>
  SpaceEntry(T&& constant) : data_(Value(std::forward<T>(constant))) {}
  /// \cond mistakes, which do not compile
  template <auto F>
    requires(!detail::SampleFunction<decltype(F)>)
  CADRE_NO_SAMPLE_FUNCTION SpaceEntry(Function<F>);
  template <class T>
    requires(detail::NoEntry<T> && cadre::detail::FunctionLike<T>)
  CADRE_MISTAKE("a function of a search space is given by its name: write fn<f>")
  SpaceEntry(const T& function);
  template <class T>
    requires(detail::NoEntry<T> && !cadre::detail::FunctionLike<T>)
  CADRE_MISTAKE("an entry of a search space is a domain, as tune::uniform(0, 1), or a bool, number, text or list(...)")
  SpaceEntry(const T& constant);
  /// \endcond
  /// Makes a list whose items are entries; list() is the way to write it.
  explicit SpaceEntry(Entries list);
  /// Makes a nested space, in braces.
  SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested);
  /// Makes a nested space.
  SpaceEntry(Space nested);

  const Data& data() const { return data_; }       ///< returns the alternatives, for std::visit
  bool operator==(const SpaceEntry& other) const;  ///< returns true if the two entries draw from the same

 private:
  Data data_;
};

inline SpaceEntry::SpaceEntry(Entries list) : data_(std::make_shared<const Entries>(std::move(list))) {}
inline SpaceEntry::SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested)
    : data_(std::make_shared<const Space>(nested)) {}
inline SpaceEntry::SpaceEntry(Space nested) : data_(std::make_shared<const Space>(std::move(nested))) {}

/// Returns a domain of real numbers from `lower` to below `upper`, each equally likely: see Uniform. Neither this
/// function nor those below check their arguments: the Tuner reports every error with its key. Names and meaning are
/// those of Ray Tune's search spaces, with the differences that docs/from-ray-tune.md lists.
inline Domain uniform(double lower, double upper) { return Uniform{lower, upper}; }
/// Returns a domain of multiples of `q`, above 0, from `lower` to `upper`, each equally likely: see Uniform.
inline Domain quniform(double lower, double upper, double q) { return Uniform{lower, upper, q}; }
/// Returns a domain of real numbers from `lower`, above 0, to below `upper`, with a uniform logarithm: see LogUniform.
inline Domain loguniform(double lower, double upper) { return LogUniform{lower, upper}; }
/// Returns a domain of multiples of `q`, above 0, from `lower`, above 0, to `upper`, with a uniform logarithm: see
/// LogUniform.
inline Domain qloguniform(double lower, double upper, double q) { return LogUniform{lower, upper, q}; }
/// Returns a domain of normally distributed real numbers with standard deviation `sd`, above 0: see Normal.
inline Domain randn(double mean = 0, double sd = 1) { return Normal{mean, sd}; }
/// Returns a domain of normally distributed numbers, rounded to multiples of `q`, above 0: see Normal.
inline Domain qrandn(double mean, double sd, double q) { return Normal{mean, sd, q}; }
/// Returns a domain of integers from `lower` to `upper` - 1, each equally likely: see RandInt.
inline Domain randint(std::int64_t lower, std::int64_t upper) { return RandInt{lower, upper}; }
/// Returns a domain of multiples of `q`, at least 1, from `lower` to `upper`, both included, each equally likely: see
/// RandInt.
inline Domain qrandint(std::int64_t lower, std::int64_t upper, std::int64_t q = 1) { return RandInt{lower, upper, q}; }
/// Returns a domain of integers from `lower`, above 0, to `upper` - 1, with a uniform logarithm: see LogRandInt.
inline Domain lograndint(std::int64_t lower, std::int64_t upper) { return LogRandInt{lower, upper}; }
/// Returns a domain of multiples of `q`, at least 1, from `lower`, above 0, to `upper`, both included, with a uniform
/// logarithm: see LogRandInt.
inline Domain qlograndint(std::int64_t lower, std::int64_t upper, std::int64_t q) {
  return LogRandInt{lower, upper, q};
}
/// Returns a domain of options, at least one: see Choice.
inline Domain choice(Entries options) { return Choice{std::make_shared<const Entries>(std::move(options))}; }
/// Returns a domain of the options in braces: choice({16, 32, uniform(0, 1)}).
inline Domain choice(std::initializer_list<SpaceEntry> options) { return choice(Entries(options)); }
/// Returns a domain of the values of a list.
inline Domain choice(const List& options) { return choice(Entries(options.begin(), options.end())); }
/// Returns a domain of values in a meaningful order, at least one: see Ordinal.
inline Domain ordinal(List options) { return Ordinal{std::move(options)}; }
/// Returns a domain of the values in braces: ordinal({"small", "medium", "large"}).
inline Domain ordinal(std::initializer_list<Value> options) { return Ordinal{List(options)}; }
/// Returns a grid of options, at least one: see GridSearch.
inline GridSearch grid_search(Entries options) { return {std::make_shared<const Entries>(std::move(options))}; }
/// Returns a grid of the options in braces: grid_search({16, 32}).
inline GridSearch grid_search(std::initializer_list<SpaceEntry> options) { return grid_search(Entries(options)); }
/// Returns a grid of the values of a list.
inline GridSearch grid_search(const List& options) { return grid_search(Entries(options.begin(), options.end())); }

using cadre::list;
/// Makes a list whose items are entries: list(randint(1, 9), randint(1, 9), 3).
template <class... T>
  requires((std::convertible_to<T &&, SpaceEntry> && ...) && !(std::constructible_from<Value, T &&> && ...))
SpaceEntry list(T&&... items) {
  return SpaceEntry(Entries{SpaceEntry(std::forward<T>(items))...});
}

/// Returns an entry of a search space whose key is a member's name: field<&Hyperparameters::lr>(uniform(0, 1)), for a
/// function that takes such a struct (cadre/typed_config.h).
template <auto Member>
  requires std::is_member_object_pointer_v<decltype(Member)>
std::pair<std::string, SpaceEntry> field(SpaceEntry entry) {
  return {std::string(cadre::detail::member_pointer_name<Member>()), std::move(entry)};
}

}  // namespace cadre::tune
