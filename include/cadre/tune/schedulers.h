/// \file
/// Schedulers: which trials continue, wait, stop, or continue from another trial's checkpoint. A scheduler here is a
/// description; the controller makes the working scheduler from it.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
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
#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::tune {

using cadre::Mode;

/// A scheduler without decisions: trials start in the order in which they were made and run to their end.
struct FIFO {};

class Mutation;
/// Keys of the search space and how each is explored, in this order. Each key occurs once.
using Mutations = std::vector<std::pair<std::string, Mutation>>;

/// The way to explore one hyper-parameter: by a domain, a list of values, a function, or, for a nested config, by key.
/// A function (sample_from) returns new values and gets the donor's config; otherwise it is treated like a domain
/// without bounds.
class Mutation {
 public:
  /// A domain, list, function or nested mutations.
  using Data = std::variant<Domain, List, SampleFrom, std::shared_ptr<const Mutations>>;

  /// Explores by a domain; the options of a choice are plain values.
  Mutation(Domain domain) : data_(std::move(domain)) {}
  /// Explores by a function.
  Mutation(SampleFrom function) : data_(std::move(function)) {}
  /// Explores along the values in braces; at least one.
  Mutation(std::initializer_list<Value> values) : data_(List(values)) {}
  /// Explores along a list of values; at least one.
  Mutation(List values) : data_(std::move(values)) {}
  /// \cond a mistake, which does not compile
  template <class T>
    requires(!std::convertible_to<const T&, Domain> && !std::convertible_to<const T&, SampleFrom> &&
             !std::convertible_to<const T&, List> && !std::same_as<T, Mutation> && !std::same_as<T, Mutations>)
  CADRE_MISTAKE("a mutation is a domain, as tune::uniform(0, 1), values in braces, as {0.1, 0.2}, or sample_from<f>()")
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

/// The treatment of an explored number that has left its domain.
enum class Bounds {
  clip,       ///< moved to the nearest bound
  reflect,    ///< moved back inside by as much as it is outside; in the logarithm for logarithmic domains
  unbounded,  ///< kept, although it is outside
};

/// A function of the program that changes explored configs, made by explore_function(). Empty: none.
struct ExploreFunction {
  std::string function = {};                                ///< its name
  bool operator==(const ExploreFunction&) const = default;  ///< compares the function
};

namespace detail {
using ExplorePointer = Config (*)(Config, Random&);
bool register_explore_function(std::string_view name, ExplorePointer function);

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

/// Returns the function F for PopulationBasedTraining::custom_explore_fn: Config f(Config) or Config f(Config,
/// Random&). F is called in the process of the Tuner with the explored config, and returns the config to use. It must
/// depend on nothing but its arguments. If it throws, the exploit does not take place, and a message says so. It is
/// found by its name; the Tuner refuses two functions of one name.
template <auto F>
  requires std::is_invocable_r_v<Config, decltype(F), Config> ||
           std::is_invocable_r_v<Config, decltype(F), Config, Random&>
ExploreFunction explore_function() {
  return {cadre::detail::registered_name<F, detail::ExploreRegistration<F>>()};
}

/// \cond a mistake, which does not compile
template <auto F>
  requires(!std::is_invocable_r_v<Config, decltype(F), Config> &&
           !std::is_invocable_r_v<Config, decltype(F), Config, Random&>)
CADRE_MISTAKE("an explore function is Config f(Config) or Config f(Config, Random&)")
ExploreFunction explore_function();
/// \endcond

/// Population Based Training (Jaderberg et al., 2017, https://arxiv.org/abs/1711.09846), with the behaviour of Ray
/// Tune's scheduler of the same name where it is sound; docs/from-ray-tune.md lists the differences.
///
/// Every `perturbation_interval` of `time_attr`, a trial is compared with the last scores of the others. A trial in the
/// lower quantile exploits: it continues from the checkpoint of a random trial of the upper quantile, with an explored
/// copy of that trial's config, unless that trial's score is no better than its own. A trial in the upper quantile
/// becomes a donor with its latest committed checkpoint, which is kept as long as another trial may need it, regardless
/// of `num_to_keep`. All other trials simply continue. A trial that reaches its first interval without having reported
/// a checkpoint fails, because no trial could exploit it; a trainable class, and a writer given to report(), are asked
/// for a checkpoint then.
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
  ExploreFunction custom_explore_fn = {};  ///< called after the mutations; made by explore_function<f>()
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
};

/// The configs of one trial over its life: the first one, and every later one with the training_iteration after which
/// it applies, in order.
struct PolicySchedule {
  /// A change to another config.
  struct Change {
    std::int64_t change_at = 0;                      ///< training_iteration after which it applies
    Config config = {};                              ///< the whole new config
    bool operator==(const Change&) const = default;  ///< compares iteration and config
  };

  Config initial_config = {};                              ///< the trial's first config
  std::vector<Change> changes = {};                        ///< in order
  bool operator==(const PolicySchedule&) const = default;  ///< compares configs and iterations
};

/// Trains one trial with the schedule of configs that led to a trial of an earlier experiment with Population Based
/// Training, as recorded in its pbt_policy_<trial id>.txt. Reads files of Cadre and of Ray Tune, with the behaviour of
/// Ray Tune's scheduler of the same name; docs/from-ray-tune.md lists the differences.
///
/// The trial begins with the file's first config. At its first result whose training_iteration has reached `change_at`,
/// it starts again from its newest checkpoint with the next config; each result makes at most one change. If that
/// result carries a checkpoint, as in a replay of the same training function, no iteration is lost. Otherwise the
/// iterations since the newest checkpoint are trained again, with the new config: Ray Tune's files name an iteration
/// that may be later than the checkpoint from which the trial continued. A trial that has no checkpoint by then fails,
/// and its error says so. Results without training_iteration change nothing. If a restore finds a checkpoint missing,
/// the trial continues from an older one with the config that it had.
///
/// param_space must make exactly one trial: num_samples 1, no grids, no points_to_evaluate. Keys of it that the file's
/// first config does not have keep their drawn values throughout; for all other keys the file takes precedence, and a
/// warning names them.
struct PopulationBasedTrainingReplay {
  std::filesystem::path policy_file = {};  ///< a leading ~ is the home directory
  /// The content of the file. Default: read from it when the Tuner is made, which throws InvalidArgument that names the
  /// line if it is not such a file. It becomes part of the experiment, which a restore continues without the file.
  std::optional<PolicySchedule> schedule = {};
};

/// One of Cadre's schedulers, with its options.
using Scheduler = std::variant<FIFO, PopulationBasedTraining, PopulationBasedTrainingReplay>;

}  // namespace cadre::tune
