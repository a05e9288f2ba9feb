/// \file
/// Stop criteria of trials and of the whole experiment. Stoppers here are descriptions, which are stored with the
/// experiment; the controller makes the working stoppers, and a restore continues with their state.
///
/// A trial always ends in the same way, regardless of the reason: a trainable class is asked for its last checkpoint,
/// result files are closed, callbacks and the scheduler are notified.
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

/// A duration in seconds; std::chrono::seconds(30) and the like convert.
using Seconds = std::chrono::duration<double>;

/// A value of a metric that ends a trial.
struct Threshold {
  /// Makes a threshold of 0 without a direction.
  Threshold() = default;
  /// Makes a threshold from a plain number. Its direction is that of the TuneConfig's metric, so {"loss", 0.1} with
  /// minimize("loss") is at_most(0.1); for a counter that Cadre adds to results, such as "training_iteration" or
  /// "time_total_s", it is at_least. For any other metric the Tuner refuses a plain number: use at_least() or
  /// at_most().
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Threshold(Number number) : value(static_cast<double>(number)) {}
  /// \cond a mistake, which does not compile
  template <class T>
    requires(!std::is_arithmetic_v<T> && !std::same_as<T, Threshold>)
  CADRE_MISTAKE("a stop threshold is a number, tune::at_least(number) or tune::at_most(number)")
  Threshold(const T& text);
  /// \endcond
  /// Makes a threshold with a direction; at_least() and at_most() read better.
  Threshold(double number, Mode direction) : value(number), mode(direction) {}

  double value = 0;                                   ///< not NaN
  std::optional<Mode> mode = {};                      ///< max: reached by values >= `value`; min: by values <= `value`
  bool operator==(const Threshold&) const = default;  ///< compares value and direction
};

/// Returns a threshold that values >= `value` reach.
inline Threshold at_least(double value) { return {value, Mode::max}; }
/// Returns a threshold that values <= `value` reach, for example for a loss.
inline Threshold at_most(double value) { return {value, Mode::min}; }

/// Metrics, by name or path ("eval/loss"), and the values that end a trial.
using Thresholds = std::vector<std::pair<std::string, Threshold>>;

/// Ends a trial after this many results of its own, regardless of the trial from which it continued.
struct MaximumIterationStopper {
  std::int64_t max_iter = 0;                                        ///< at least 1
  bool operator==(const MaximumIterationStopper&) const = default;  ///< compares the number
};

/// Ends a trial when its metric has stopped changing: when the standard deviation (of the population) of its last
/// `num_results` values is below `std`. Results without a finite number do not count.
struct TrialPlateauStopper {
  Objective metric = {};                        ///< by name or path; default: the TuneConfig's
  double std = 0.01;                            ///< above 0
  std::int64_t num_results = 4;                 ///< at least 1
  std::int64_t grace_period = 4;                ///< results before the stopper can end the trial, 0 or more
  std::optional<double> metric_threshold = {};  ///< value that the metric must reach first; needs a mode
  /// min: the metric must have fallen to metric_threshold; max: it must have risen to it. Default: the direction of
  /// `metric`, or of the TuneConfig's metric if it is the same one.
  std::optional<Mode> mode = {};
  bool operator==(const TrialPlateauStopper&) const = default;  ///< compares all settings
};

/// Ends all trials when their best results have stopped improving: when the standard deviation (of the population) of
/// the `top` best values has been at most `std` for `patience` results (at least one). Results without a finite number
/// do not count.
struct ExperimentPlateauStopper {
  Objective metric = {};  ///< by name or path; default: the TuneConfig's
  double std = 0.001;     ///< 0 or more
  std::int64_t top = 10;  ///< at least 2
  /// Direction of the best values. Must be set unless `metric` has one or is the TuneConfig's metric.
  std::optional<Mode> mode = {};
  std::int64_t patience = 0;                                         ///< 0 or more
  bool operator==(const ExperimentPlateauStopper&) const = default;  ///< compares all settings
};

/// Ends all trials when the experiment has run for this time: the same as TuneConfig::time_budget.
struct TimeoutStopper {
  Seconds timeout = {};                                    ///< above 0; running time over all sessions
  bool operator==(const TimeoutStopper&) const = default;  ///< compares the time
};

/// Ends a trial when a function of the program returns true; made by stop_function<f>().
struct FunctionStopper {
  std::string function = {};                                ///< its name
  bool operator==(const FunctionStopper&) const = default;  ///< compares the function
};

namespace detail {
using StopPointer = bool (*)(const std::string& trial_id, const Metrics& result);
bool register_stop_function(std::string_view name, StopPointer function);

template <auto F>
struct StopRegistration {
  static inline const bool done = register_stop_function(cadre::detail::function_name<F>(), F);
};
}  // namespace detail

/// Returns the function F as a stopper: bool f(const std::string& trial_id, const Metrics& result). F is called in the
/// process of the Tuner with every result that counts; a restore takes its answers from the store. If it throws, that
/// trial fails. F is found by its name; the Tuner refuses two functions of one name.
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

/// One of Cadre's stoppers, with its settings.
using Stopper = std::variant<MaximumIterationStopper, TrialPlateauStopper, ExperimentPlateauStopper, TimeoutStopper,
                             FunctionStopper>;

/// The stop criteria of trials: a trial ends as soon as one of the thresholds is reached or one of the stoppers ends
/// it. All of them get every result that counts.
struct Stop {
  /// Makes a Stop without criteria.
  Stop() = default;
  /// Stops by thresholds: {{"mean_accuracy", at_least(0.96)}, {"training_iteration", 50}}.
  Stop(std::initializer_list<std::pair<std::string, Threshold>> some) : thresholds(some) {}
  /// Stops by one stopper.
  template <class One>
    requires std::constructible_from<Stopper, One>
  Stop(One stopper) : stoppers{Stopper(std::move(stopper))} {}
  /// \cond mistakes, which do not compile
  template <class F>
    requires cadre::detail::FunctionLike<std::remove_cvref_t<F>>
  CADRE_MISTAKE("a function that stops trials is given by its name: write tune::stop_function<f>()")
  Stop(F&& function);
  /// \endcond

  Thresholds thresholds = {};                    ///< in any order; a metric may occur twice
  std::vector<Stopper> stoppers = {};            ///< in any order
  bool operator==(const Stop&) const = default;  ///< compares thresholds and stoppers, in order
};

/// Returns a Stop with all of these criteria, any of which ends a trial (Ray Tune's CombinedStopper):
/// any_of(Stop{{"loss", at_most(0.1)}}, MaximumIterationStopper{100}).
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
