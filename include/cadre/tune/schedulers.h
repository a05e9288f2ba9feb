/// \file
/// Schedulers: who goes on, who waits, who is stopped, who continues from another trial's checkpoint. A scheduler here
/// is a description; the controller makes the one that works from it.
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

/// Trials run in the order in which they were made, each to its end.
struct FIFO {};

class Mutation;
/// Keys of the search space and how each is explored, in this order. Keys are there once.
using Mutations = std::vector<std::pair<std::string, Mutation>>;

/// How one hyper-parameter is explored: from a domain, along a list of values, by a function, or, for a nested config,
/// by key. A function (sample_from) gives new values and gets the donor's config; otherwise it is like a domain without
/// bounds.
class Mutation {
 public:
  /// A domain, list, function or nested mutations.
  using Data = std::variant<Domain, List, SampleFrom, std::shared_ptr<const Mutations>>;

  /// From a domain; the options of a choice are plain values.
  Mutation(Domain domain) : data_(std::move(domain)) {}
  /// By a function.
  Mutation(SampleFrom function) : data_(std::move(function)) {}
  /// Along the values in braces, of which there is at least one.
  Mutation(std::initializer_list<Value> values) : data_(List(values)) {}
  /// Along a list of values, at least one.
  Mutation(List values) : data_(std::move(values)) {}
  /// \cond a mistake, which does not compile
  template <class T>
    requires(!std::convertible_to<const T&, Domain> && !std::convertible_to<const T&, SampleFrom> &&
             !std::convertible_to<const T&, List> && !std::same_as<T, Mutation> && !std::same_as<T, Mutations>)
  CADRE_MISTAKE("a mutation is a domain, as tune::uniform(0, 1), values in braces, as {0.1, 0.2}, or sample_from<f>()")
  Mutation(const T& value);
  /// \endcond
  /// Keys of a nested space, in braces.
  Mutation(std::initializer_list<std::pair<std::string, Mutation>> nested);
  /// Keys of a nested space.
  Mutation(Mutations nested);

  /// For std::visit.
  const Data& data() const { return data_; }

 private:
  Data data_;
};

inline Mutation::Mutation(std::initializer_list<std::pair<std::string, Mutation>> nested)
    : data_(std::make_shared<const Mutations>(nested)) {}
inline Mutation::Mutation(Mutations nested) : data_(std::make_shared<const Mutations>(std::move(nested))) {}

/// Where an explored number goes that has left its domain.
enum class Bounds {
  clip,       ///< to the nearest bound
  reflect,    ///< back inside by as much as it is outside; in the logarithm for logarithmic domains
  unbounded,  ///< nowhere: it stays outside
};

/// A function of the program that changes explored configs; see explore_function(). Empty: none.
struct ExploreFunction {
  std::string function = {};                                ///< its name
  bool operator==(const ExploreFunction&) const = default;  ///< the same function
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

/// The function F for PopulationBasedTraining::custom_explore_fn: Config f(Config) or Config f(Config, Random&). It is
/// called in the process of the Tuner with the config after exploring it, and returns the one to go on with. It must
/// depend on nothing but its arguments. When it throws, the exploit does not take place, and a message says so. It is
/// found by its name; two functions of one name are refused by the Tuner.
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
/// lower quantile exploits: it continues from the checkpoint of a random trial of the upper quantile, with that trial's
/// config after exploring it, unless that trial's score is no better than its own. A trial in the upper quantile
/// becomes a donor with its latest committed checkpoint, which is kept as long as anybody may need it, whatever
/// `num_to_keep` says. All others simply go on. A trial that comes to its first interval without having reported a
/// checkpoint fails, because nobody could exploit it; a class, and a writer given to report(), are asked for one then.
///
/// Exploring changes each key of `hyperparam_mutations`, in order: with `resample_probability` it is drawn anew;
/// otherwise a number is multiplied by one of `perturbation_factors` (an integer moves by at least 1, a multiple of a q
/// by at least that) and kept inside its domain as `bounds` says, and a value of a list, a choice or an ordinal moves
/// to a neighbour. A key that the donor's config does not have, in a conditional space, is passed over.
struct PopulationBasedTraining {
  std::string time_attr = {};        ///< must be set: "training_iteration", "time_total_s", or a metric that only grows
  Objective metric = {};             ///< default: the TuneConfig's, which it must be the same as
  std::optional<Mode> mode = {};     ///< which scores are good; default: as `metric` or the TuneConfig says
  double perturbation_interval = 0;  ///< in units of time_attr; must be set, above 0
  double burn_in_period = 0;         ///< no comparison before this time_attr; 0 or more
  Mutations hyperparam_mutations = {};     ///< may be empty where there is a custom_explore_fn
  ExploreFunction custom_explore_fn = {};  ///< called after the mutations: explore_function<f>()
  Bounds bounds = Bounds::clip;            ///< where an explored number goes that has left its domain
  double quantile_fraction = 0.25;         ///< size of the lower and of the upper quantile, 0 to 0.5
  double resample_probability = 0.25;      ///< that a key is drawn anew instead of changed, 0 to 1
  std::pair<double, double> perturbation_factors = {1.2, 0.8};  ///< one of which a number is multiplied by; above 0
  bool log_config = true;                                       ///< write pbt_global.txt and pbt_policy_<trial id>.txt
  bool require_attrs = true;  ///< a result without time_attr or metric fails its trial; otherwise it is passed over
  bool synch = false;         ///< all live trials wait for each other at every interval, and are then compared at once
  /// With synch: how long the first one to arrive waits, in seconds; then those that are there are compared without the
  /// others, which take part the next time. 0 or more; 0: for ever, so that the outcome does not depend on the
  /// machine's load.
  double synch_deadline = 0;
};

/// The configs of one trial over its life: the first one, and every later one with the training_iteration from which on
/// it counts, in the order in which they follow each other.
struct PolicySchedule {
  /// A config that follows another one.
  struct Change {
    std::int64_t change_at = 0;                      ///< the training_iteration that it follows
    Config config = {};                              ///< the whole new one
    bool operator==(const Change&) const = default;  ///< the same config at the same iteration
  };

  Config initial_config = {};                              ///< what the trial begins with
  std::vector<Change> changes = {};                        ///< in order
  bool operator==(const PolicySchedule&) const = default;  ///< the same configs at the same iterations
};

/// Trains one trial with the schedule of configs that led to a trial of an earlier experiment with Population Based
/// Training, as its pbt_policy_<trial id>.txt has it. Reads files of Cadre and of Ray Tune, with the behaviour of Ray
/// Tune's scheduler of the same name; docs/from-ray-tune.md lists the differences.
///
/// The trial begins with the file's first config. At its first result whose training_iteration has reached `change_at`,
/// it starts again from its newest checkpoint with the next config; one change for each result. Where that result
/// carries a checkpoint, as in a replay of the same training function, nothing is lost. Otherwise the iterations since
/// the newest checkpoint are trained again, with the new config: Ray Tune's files name an iteration that may be later
/// than the checkpoint which its trial went on from. A trial that has no checkpoint by then fails, and its error says
/// so. Results without training_iteration change nothing. When a restore finds a checkpoint lost, the trial goes on
/// from an older one with the config that it had.
///
/// param_space must make exactly one trial: num_samples 1, no grids, no points_to_evaluate. Its keys that the file's
/// first config does not have stay as drawn throughout; for all others the file counts, and a warning names them.
struct PopulationBasedTrainingReplay {
  std::filesystem::path policy_file = {};  ///< a leading ~ is the home directory
  /// What the file holds. Default: read from it when the Tuner is made, which throws InvalidArgument that names the
  /// line where it is none. It becomes part of the experiment, which a restore continues without the file.
  std::optional<PolicySchedule> schedule = {};
};

/// A scheduler of Cadre's, with its options.
using Scheduler = std::variant<FIFO, PopulationBasedTraining, PopulationBasedTrainingReplay>;

}  // namespace cadre::tune
