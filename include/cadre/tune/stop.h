/// \file
/// When trials, or all of them, are done. Stoppers here are descriptions, which are stored with the experiment; the
/// controller makes the working ones, and a restore goes on with what they have seen.
///
/// Whatever ends a trial, it ends the same way: a trainable class is asked for its last checkpoint, result files are
/// closed, callbacks and the scheduler are told.
///
/// Source: Ray Tune's stoppers (ray.tune.stopper).
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/detail/function_name.h"
#include "cadre/value.h"

namespace cadre::tune {

/// A time; std::chrono::seconds(30) and the like convert.
using Seconds = std::chrono::duration<double>;

/// A value of a metric that ends a trial.
struct Threshold {
  /// 0, from below.
  Threshold() = default;
  /// A plain number. Its direction is that of the TuneConfig's metric, {"loss", 0.1} with minimize("loss") is
  /// at_most(0.1); a counter that Cadre adds to results, as "training_iteration" or "time_total_s", is to be at least
  /// that. For any other metric the Tuner refuses it: say at_least() or at_most().
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Threshold(Number number) : value(static_cast<double>(number)) {}
  /// \cond a mistake, which does not compile
  template <class T>
    requires(!std::is_arithmetic_v<T> && !std::same_as<T, Threshold>)
  CADRE_MISTAKE("a stop threshold is a number, tune::at_least(number) or tune::at_most(number)")
  Threshold(const T& text);
  /// \endcond
  /// With a direction; at_least() and at_most() read better.
  Threshold(double number, Mode direction) : value(number), mode(direction) {}

  double value = 0;                                   ///< not NaN
  std::optional<Mode> mode = {};                      ///< max: reached by what is >= value; min: by what is <= value
  bool operator==(const Threshold&) const = default;  ///< the same value and direction
};

/// Reached by values >= `value`.
inline Threshold at_least(double value) { return {value, Mode::max}; }
/// Reached by values <= `value`: of a loss.
inline Threshold at_most(double value) { return {value, Mode::min}; }

/// Metrics, by name or path ("eval/loss"), and the values that end a trial.
using Thresholds = std::vector<std::pair<std::string, Threshold>>;

/// A trial is done after so many results of its own, wherever it continued from.
struct MaximumIterationStopper {
  std::int64_t max_iter = 0;                                        ///< at least 1
  bool operator==(const MaximumIterationStopper&) const = default;  ///< the same number
};

/// A trial is done when its metric does not move any more: the standard deviation (of the population) of its last
/// `num_results` values is below `std`. Results without a finite number do not count.
struct TrialPlateauStopper {
  Objective metric = {};                        ///< by name or path; default: the TuneConfig's
  double std = 0.01;                            ///< above 0
  std::int64_t num_results = 4;                 ///< at least 1
  std::int64_t grace_period = 4;                ///< results before it can end, 0 or more
  std::optional<double> metric_threshold = {};  ///< no plateau before the metric has come so far; needs a mode
  /// min: so far down; max: so far up. Default: the direction of `metric`, or of the TuneConfig's if it is the same
  /// one.
  std::optional<Mode> mode = {};
  bool operator==(const TrialPlateauStopper&) const = default;  ///< the same settings
};

/// All trials are done when the best results of all do not get better any more: when the standard deviation (of the
/// population) of the `top` best values has been at most `std` for `patience` results (at least one). Results without a
/// finite number do not count.
struct ExperimentPlateauStopper {
  Objective metric = {};  ///< by name or path; default: the TuneConfig's
  double std = 0.001;     ///< 0 or more
  std::int64_t top = 10;  ///< at least 2
  /// Says which values are the best. Must be set unless `metric` says it, or is the TuneConfig's.
  std::optional<Mode> mode = {};
  std::int64_t patience = 0;                                         ///< 0 or more
  bool operator==(const ExperimentPlateauStopper&) const = default;  ///< the same settings
};

/// All trials are done when the experiment has run for so long: the same as TuneConfig::time_budget.
struct TimeoutStopper {
  Seconds timeout = {};                                    ///< above 0; running time of all sessions together
  bool operator==(const TimeoutStopper&) const = default;  ///< the same time
};

/// A trial is done when a function of the program says so; made by stop_function<f>().
struct FunctionStopper {
  std::string function = {};                                ///< its name
  bool operator==(const FunctionStopper&) const = default;  ///< the same function
};

namespace detail {
using StopPointer = bool (*)(const std::string& trial_id, const Metrics& result);
bool register_stop_function(std::string_view name, StopPointer function);

template <auto F>
struct StopRegistration {
  static inline const bool done = register_stop_function(cadre::detail::function_name<F>(), F);
};
}  // namespace detail

/// The function F as a stopper: bool f(const std::string& trial_id, const Metrics& result). It is called in the process
/// of the Tuner with every result that counts, and must depend on nothing but its arguments. When it throws, that trial
/// fails. It is found by its name; two functions of one name are refused by the Tuner.
template <auto F>
  requires std::convertible_to<decltype(F), detail::StopPointer>
FunctionStopper stop_function() {
  return {cadre::detail::registered_name<F, detail::StopRegistration<F>>()};
}

/// \cond a mistake, which does not compile
template <auto F>
  requires(!std::convertible_to<decltype(F), detail::StopPointer>)
CADRE_MISTAKE("a stop function is bool f(const std::string& trial_id, const Metrics& result)")
FunctionStopper stop_function();
/// \endcond

/// A stopper of Cadre's, with its settings.
using Stopper = std::variant<MaximumIterationStopper, TrialPlateauStopper, ExperimentPlateauStopper, TimeoutStopper,
                             FunctionStopper>;

/// When a trial is done: as soon as one of the thresholds is reached or one of the stoppers says so. All of them see
/// every result that counts.
struct Stop {
  /// Never, but for what else ends a trial.
  Stop() = default;
  /// By thresholds: {{"mean_accuracy", at_least(0.96)}, {"training_iteration", 50}}.
  Stop(std::initializer_list<std::pair<std::string, Threshold>> some) : thresholds(some) {}
  /// By one stopper.
  template <class One>
    requires std::constructible_from<Stopper, One>
  Stop(One stopper) : stoppers{Stopper(std::move(stopper))} {}
  /// \cond mistakes, which do not compile
  template <class F>
    requires cadre::detail::FunctionLike<std::remove_cvref_t<F>>
  CADRE_MISTAKE("a function that stops trials is given by its name: write tune::stop_function<f>()")
  Stop(F&& function);
  /// \endcond

  Thresholds thresholds = {};                    ///< in any order; a metric may be there twice
  std::vector<Stopper> stoppers = {};            ///< in any order
  bool operator==(const Stop&) const = default;  ///< the same in the same order
};

/// As soon as any of them says so (Ray Tune's CombinedStopper): any_of(Stop{{"loss", at_most(0.1)}},
/// MaximumIterationStopper{100}).
template <class... Some>
  requires(std::constructible_from<Stop, const Some&> && ...)
Stop any_of(const Some&... some) {
  Stop all;
  const auto add = [&all](const Stop& one) {
    all.thresholds.insert(all.thresholds.end(), one.thresholds.begin(), one.thresholds.end());
    all.stoppers.insert(all.stoppers.end(), one.stoppers.begin(), one.stoppers.end());
  };
  (add(Stop(some)), ...);
  return all;
}

}  // namespace cadre::tune
