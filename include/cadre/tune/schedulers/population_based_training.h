/// \file
/// Population Based Training.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/function.h"
#include "cadre/tune/scheduler.h"
#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::tune {

using cadre::Mode;

class Mutation;
/// Keys of the search space and how each is explored, in this order. Each key occurs once.
using Mutations = std::vector<std::pair<std::string, Mutation>>;

/// The way to explore one hyper-parameter: by a domain, a list of values, a function, or, for a nested config, by key.
/// A function returns new values and gets the donor's config; otherwise it is treated like a domain without bounds.
class Mutation {
 public:
  /// A domain, list, function or nested mutations.
  using Data = std::variant<Domain, List, SampleFrom, std::shared_ptr<const Mutations>>;

  /// Explores by a domain; the options of a choice are plain values.
  Mutation(Domain domain) : data_(std::move(domain)) {}
  /// Explores by a function.
  Mutation(SampleFrom function) : data_(std::move(function)) {}
  /// Explores by a function: see SampleFrom.
  template <auto F>
    requires detail::SampleFunction<decltype(F)>
  Mutation(Function<F> function) : data_(SampleFrom(function)) {}
  /// Explores along the values in braces; at least one.
  Mutation(std::initializer_list<Value> values) : data_(List(values)) {}
  /// Explores along a list of values; at least one.
  Mutation(List values) : data_(std::move(values)) {}
  /// \cond mistakes, which do not compile
  template <auto F>
    requires(!detail::SampleFunction<decltype(F)>)
  CADRE_NO_SAMPLE_FUNCTION Mutation(Function<F>);
  template <class T>
    requires(!std::convertible_to<const T&, Domain> && !std::convertible_to<const T&, SampleFrom> &&
             !std::convertible_to<const T&, List> && !std::same_as<T, Mutation> && !std::same_as<T, Mutations> &&
             cadre::detail::NotFn<T>)
  CADRE_MISTAKE("a mutation is a domain, as tune::uniform(0, 1), values in braces, as {0.1, 0.2}, or fn<f>")
  Mutation(const T& value);
  /// \endcond
  /// Explores the keys of a nested space, in braces.
  Mutation(std::initializer_list<std::pair<std::string, Mutation>> nested);
  /// Explores the keys of a nested space.
  Mutation(Mutations nested);

  /// Returns the alternatives, for std::visit.
  const Data& data() const { return data_; }

 private:
  Data data_;
};

inline Mutation::Mutation(std::initializer_list<std::pair<std::string, Mutation>> nested)
    : data_(std::make_shared<const Mutations>(nested)) {}
inline Mutation::Mutation(Mutations nested) : data_(std::make_shared<const Mutations>(std::move(nested))) {}

/// \cond forms for cadre/stored.h
Value stored_form(const Mutations& mutations);
void read_stored(Mutations& mutations, const Stored& stored);
/// \endcond

/// The treatment of an explored number that has left its domain.
enum class Bounds {
  clip,       ///< moved to the nearest bound
  reflect,    ///< moved back inside by as much as it is outside; in the logarithm for logarithmic domains
  unbounded,  ///< kept, although it is outside
};

namespace detail {
using ExplorePointer = Config (*)(Config, Random&);
bool register_explore_function(std::string_view name, ExplorePointer function);

template <class F>
concept FunctionThatExplores =
    std::is_invocable_r_v<Config, F, Config> || std::is_invocable_r_v<Config, F, Config, Random&>;

template <auto F>
struct ExploreRegistration {
  static Config call(Config config, Random& random) {
    if constexpr (std::invocable<decltype(F), Config, Random&>) {
      return F(std::move(config), random);
    } else {
      return F(std::move(config));
    }
  }
  static inline const bool done = register_explore_function(cadre::detail::function_name<F>(), &call);
};
}  // namespace detail

/// A function of the program that changes explored configs. Empty: none.
struct ExploreFunction {
  ExploreFunction() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit ExploreFunction(std::string name) : function(std::move(name)) {}
  /// Names a function: Config f(Config) or Config f(Config, Random&). It is called in the process of the Tuner with the
  /// explored config, and returns the config to use. It may return something else each time: a restore takes the config
  /// from the store. If it throws, the exploit does not take place, and a message says so; whether it throws must
  /// depend on nothing but its arguments.
  template <auto F>
    requires detail::FunctionThatExplores<decltype(F)>
  ExploreFunction(Function<F>) : function(cadre::detail::registered_name<F, detail::ExploreRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::FunctionThatExplores<decltype(F)>)
  CADRE_MISTAKE("an explore function is Config f(Config) or Config f(Config, Random&)")
  ExploreFunction(Function<F>);
  static constexpr std::size_t kMembers = 2;  // stored by their names: cadre/detail/member_names.h
  /// \endcond

  std::string function = {};        ///< its name
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const ExploreFunction&) const = default;  ///< compares the members
};

/// Population Based Training (Jaderberg et al., 2017, https://arxiv.org/abs/1711.09846), with the behaviour of Ray
/// Tune's scheduler of the same name where it is sound; docs/from-ray-tune.md lists the differences.
///
/// Every `perturbation_interval` of `time_attr`, a trial is compared with the last scores of the others. A trial in the
/// lower quantile exploits: it continues from the checkpoint of a random trial of the upper quantile, with an explored
/// copy of that trial's config, unless that trial's score is no better than its own. A trial in the upper quantile
/// becomes a donor with its latest committed checkpoint, which is kept as long as another trial may need it, regardless
/// of `num_to_keep`. All other trials simply continue. A trial that reaches its first interval without having reported
/// a checkpoint fails, because no trial could exploit it; a trainable class, and a writer given to report(), are asked
/// for a checkpoint then. A trial whose last score is NaN is compared with no other, as in Ray Tune: it is neither
/// replaced nor a donor, and goes on.
///
/// Exploring changes each key of `hyperparam_mutations`, in order: with `resample_probability` it is drawn anew;
/// otherwise a number is multiplied by one of `perturbation_factors` (an integer moves by at least 1, a multiple of a q
/// by at least q) and kept inside its domain as `bounds` says, and a value of a list, a choice or an ordinal moves to a
/// neighbour. A key that the donor's config does not have, in a conditional space, is skipped.
struct PopulationBasedTraining {
  std::string time_attr = {};        ///< must be set: "training_iteration", "time_total_s", or a metric that only grows
  Objective metric = {};             ///< default: the TuneConfig's; if set, it must be the same
  std::optional<Mode> mode = {};     ///< direction of good scores; default: from `metric` or the TuneConfig
  double perturbation_interval = 0;  ///< in units of time_attr; must be set, above 0
  double burn_in_period = 0;         ///< no comparison before this time_attr; 0 or more
  Mutations hyperparam_mutations = {};     ///< may be empty if custom_explore_fn is set
  ExploreFunction custom_explore_fn = {};  ///< called after the mutations
  Bounds bounds = Bounds::clip;            ///< treatment of an explored number that has left its domain
  double quantile_fraction = 0.25;         ///< size of the lower and of the upper quantile, 0 to 0.5
  double resample_probability = 0.25;      ///< probability to draw a key anew instead of changing it, 0 to 1
  std::pair<double, double> perturbation_factors = {1.2, 0.8};  ///< a number is multiplied by one of them; above 0
  bool log_config = true;                                       ///< writes pbt_global.txt and pbt_policy_<trial id>.txt
  bool require_attrs = true;  ///< a result without time_attr or metric fails its trial; otherwise it is ignored
  bool synch = false;         ///< all live trials wait for each other at every interval, and are then compared at once
  /// With synch: time that the first trial to arrive waits, in seconds; then the trials that have arrived are compared
  /// without the others, which take part the next time. 0 or more; 0: no limit, so that the outcome does not depend on
  /// the machine's load.
  double synch_deadline = 0;

  std::unique_ptr<Scheduler> make(const SchedulerSetting& setting) const;       ///< returns the scheduler
  void check(const TunerOptions& options, Faults& faults) const;                ///< finds what is wrong
  void complete(const TunerOptions& options, std::vector<std::string>& notes);  ///< puts bounds in order
  Scheduler::Traits traits() const;                                             ///< it exploits
};

namespace detail {
extern template class HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTraining>;
inline const bool knows_population_based_training =
    HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTraining>::known();
}  // namespace detail

}  // namespace cadre::tune
