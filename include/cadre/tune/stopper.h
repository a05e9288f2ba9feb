/// \file
/// The interface of stoppers, which end trials, or the whole experiment, by the results. Cadre's own
/// (cadre/tune/stoppers.h) and a program's implement it alike:
///
///     // Options, which the experiment stores: public members, no constructor.
///     struct StopBelow {
///       double loss = 0.1;
///       std::unique_ptr<tune::Stopper> make(const tune::StopperSetting&) const;
///     };
///     class BelowStopper : public tune::Stopper { ... };
///
///     .run_config = {.stop = StopBelow{.loss = 0.2}}
///
/// A stopper is a deterministic function of its calls: no clock, no input or output, no random numbers but those keyed
/// by the setting's seed. A restore makes it anew, with the state that save() returned or by the same calls. All calls
/// are made in the thread of Tuner::fit. An exception ends the experiment, which can be restored.
///
/// Source: Ray Tune's stoppers (ray.tune.stopper).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/options_of.h"
#include "cadre/tune/scheduler.h"
#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::tune {

/// A duration in seconds; std::chrono::seconds(30) and the like convert.
using Seconds = std::chrono::duration<double>;

/// The interface of stoppers.
class Stopper {
 public:
  /// Properties of a stopper's options that the Tuner needs to know.
  struct Traits {
    std::vector<std::string> metrics = {};  ///< names or paths that it reads: a warning says if results lack one
    std::optional<Seconds> timeout = {};    ///< running time over all sessions after which all trials stop; above 0
    /// True: on_result() depends on more than its calls, such as a clock, a file or a function of the program. Its
    /// answers are stored, and a restore takes them instead of calling it; so it must not change the state. If it
    /// throws, that trial fails.
    bool recorded = false;
  };

  virtual ~Stopper() = default;

  /// Returns true if the trial ends with this result, which counts; `trial` does not contain it yet. A trial ends in
  /// the same way regardless of the reason: with its last checkpoint, and TrialStatus::terminated. Default: false.
  virtual bool on_result(const TrialView& trial, const Metrics& result);
  /// Handles the end of a trial of any kind. A trial that had failed may run and end again. Default: nothing.
  virtual void on_trial_end(const TrialView& trial);
  /// Returns why the whole experiment ends: the end of "All trials stop: ". Empty: it does not, as by default. Asked
  /// after each result that counts and after each end of a trial, and depends on the state only; a restore takes the
  /// answers from the store. Running trials end with their next report, all others at once.
  virtual std::optional<std::string> stop_all() const;
  /// Returns the state, for load() on a new stopper with the same options. to_stored() of cadre/stored.h writes a
  /// struct. Default: nothing.
  virtual Value save() const { return {}; }
  /// Restores the state that save() returned. Throws InvalidArgument if it is none.
  virtual void load(const Value& state);
};

/// The values that a stopper is made with, besides its options.
struct StopperSetting {
  std::uint64_t seed = 0;  ///< TuneConfig::seed
  Space space = {};        ///< TunerOptions::param_space
};

/// \cond completes the metric of options, but not the TuneConfig's
template <>
inline constexpr bool detail::kMayHaveAnotherMetric<Stopper> = true;
/// \endcond

/// The options of a stopper, of Cadre's or of the program's: RunConfig::stop. The rules for T are those of
/// AnyScheduler, with tune::Stopper and tune::StopperSetting in the place of the scheduler's; but members `metric` and
/// `mode` may be another metric than the TuneConfig's, and only T's check() says whether they are needed.
using AnyStopper = OptionsOf<Stopper, StopperSetting>;

}  // namespace cadre::tune
