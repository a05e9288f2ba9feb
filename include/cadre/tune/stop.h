/// \file
/// Stop criteria of trials and of the whole experiment: thresholds, and stoppers (cadre/tune/stopper.h).
///
/// A trial always ends in the same way, regardless of the reason: a trainable class is asked for its last checkpoint,
/// result files are closed, callbacks and the scheduler are notified.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/function.h"
#include "cadre/tune/stopper.h"
#include "cadre/tune/stoppers.h"
#include "cadre/value.h"

namespace cadre::tune {

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

/// The stop criteria of trials: a trial ends as soon as one of the thresholds is reached or one of the stoppers ends
/// it. All of them get every result that counts.
struct Stop {
  /// Makes a Stop without criteria.
  Stop() = default;
  /// Stops by thresholds: {{"mean_accuracy", at_least(0.96)}, {"training_iteration", 50}}.
  Stop(std::initializer_list<std::pair<std::string, Threshold>> some) : thresholds(some) {}
  /// Stops by one stopper.
  template <class One>
    requires detail::MakesA<One, Stopper, StopperSetting> || std::same_as<One, AnyStopper>
  Stop(One stopper) : stoppers{AnyStopper(std::move(stopper))} {}
  /// Stops by a function: see FunctionStopper.
  template <auto F>
    requires detail::StopFunction<decltype(F)>
  Stop(Function<F> function) : Stop(FunctionStopper(function)) {}
  /// \cond mistakes, which do not compile
  template <auto F>
    requires(!detail::StopFunction<decltype(F)>)
  CADRE_NO_STOP_FUNCTION Stop(Function<F>);
  template <class F>
    requires cadre::detail::FunctionLike<std::remove_cvref_t<F>>
  CADRE_MISTAKE("a function that stops trials is given by its name: write fn<f>")
  Stop(F&& function);
  /// \endcond

  Thresholds thresholds = {};                    ///< in any order; a metric may occur twice
  std::vector<AnyStopper> stoppers = {};         ///< in any order
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
