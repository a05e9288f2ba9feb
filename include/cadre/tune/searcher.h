/// \file
/// The interface of searchers, which choose the configs of trials. Cadre's own (cadre/tune/searchers.h) and a program's
/// implement it alike:
///
///     // Options, which the experiment stores: public members, no constructor.
///     struct HillClimbing {
///       double step = 0.1;
///       std::unique_ptr<tune::Searcher> make(const tune::SearcherSetting&) const;
///     };
///     class HillClimber : public tune::Searcher { ... };
///
///     .tune_config = {.searcher = HillClimbing{.step = 0.2}}
///
/// A searcher needs no Tuner: a program may make one and call it itself, in any thread, one call at a time.
///
/// The state of a searcher is what it was told: on_trial_add(), on_result() and on_trial_end() change it, suggest()
/// does not. A suggestion depends on that state and on random numbers keyed by the setting's seed and the trial, and on
/// nothing else: no clock, no input or output. A restore tells a new searcher the same; suggestions that were used are
/// taken from the store, not asked for again. An exception ends the experiment, which can be restored.
///
/// A Tuner calls suggest() in a thread of its own, so that no report waits for it; meanwhile it calls nothing but
/// save() and debug_string(), and tells what has happened when the suggestion has come. All other calls are made in the
/// thread of Tuner::fit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/checkpoint_config.h"
#include "cadre/tune/options_of.h"
#include "cadre/tune/parameters.h"
#include "cadre/tune/result.h"
#include "cadre/tune/scheduler.h"
#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::tune {

/// The interface of searchers.
class Searcher {
 public:
  /// Properties of a searcher's options that the Tuner needs to know.
  struct Traits {
    bool chooses = true;      ///< suggests values: the space must be one of Parameters, so without grids
    bool learns = true;       ///< needs results: TuneConfig::metric must be set, and no scheduler may change configs
    bool may_wait = false;    ///< may have no suggestion: no scheduler may need all trials at the beginning
    bool quick = false;       ///< suggest() takes microseconds: it is called in the thread of Tuner::fit
    bool any_values = false;  ///< values need not be in the space, and may be of keys that the space lacks
  };

  virtual ~Searcher() = default;

  /// Returns values of the config of `trial`, the next that on_trial_add() will add, by key or path ("model/width") as
  /// in TuneConfig::points_to_evaluate; keys that it omits are drawn from the space, and functions are called after
  /// that. Empty: not before another trial has ended, of which there must be one.
  virtual std::optional<Config> suggest(TrialIndex trial) const = 0;
  /// Returns true if no further trial shall be made, although there are fewer than num_samples. Asked when suggest()
  /// has returned nothing, in the same thread. Default: false.
  virtual bool is_finished() const { return false; }
  /// Makes suggest(), which another thread is in, throw soon instead of going on: the experiment ends, and calls
  /// nothing else any more. Default: nothing; the suggestion is waited for.
  virtual void cancel() const {}
  /// Adds a trial with its first config: suggested, given by the user or read from a store. Also called for a trial
  /// that had ended with an error and runs again. A config may be of another space, which the experiment had before
  /// (Extension::param_space).
  virtual void on_trial_add(TrialIndex trial, const Config& config) = 0;
  /// Handles a result that counts, in the order of the trial's results.
  virtual void on_result(TrialIndex trial, const Metrics& result);
  /// Handles the end of a trial of any kind. `last_result` is its last one that counts; empty: it has none.
  virtual void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) = 0;
  /// Returns what the state has beyond the calls of on_trial_add() for all trials and on_trial_end() for those that
  /// have ended, each in the order of trials: those are made before load() is called on a new searcher with the same
  /// options. Default: nothing.
  virtual Value save() const { return {}; }
  /// Restores the state that save() returned. Throws InvalidArgument if it is none.
  virtual void load(const Value& state);
  /// Returns one line about the searcher's state for the console; empty: none.
  virtual std::string debug_string() const { return {}; }
};

/// The values that a searcher is made with, besides its options.
struct SearcherSetting {
  std::uint64_t seed = 0;        ///< TuneConfig::seed
  Space space = {};              ///< TunerOptions::param_space
  Objective metric = {};         ///< TuneConfig::metric, with its direction; no name if the searcher does not learn
  std::int64_t num_samples = 1;  ///< TuneConfig::num_samples
};

/// The options of a searcher, of Cadre's or of the program's: TuneConfig::searcher. What is said of AnyScheduler holds
/// for T, with tune::Searcher and tune::SearcherSetting in the place of the scheduler's.
using AnySearcher = OptionsOf<Searcher, SearcherSetting>;

}  // namespace cadre::tune
