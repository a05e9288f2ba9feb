/// \file
/// Other options for an experiment that is continued: more samples, another stop, a longer budget.
#pragma once

#include <cstdint>
#include <optional>

#include "cadre/stored.h"
#include "cadre/tune/scheduler.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/searcher.h"
#include "cadre/tune/stop.h"

namespace cadre::tune {

/// Options that an experiment has from a restore on, instead of those before: RestoreOptions::extend. An empty member
/// changes nothing. Each is the new value, not what is added, so that a restore that is repeated changes nothing more.
///
///     tune::Tuner::restore("results/mine", {.extend = {.num_samples = 32, .stop = tune::Stop{{"training_iteration",
///     100}}}}).fit();
///
/// Objects (cadre::put) that configs refer to are removed at the end of an experiment: a program that extends it must
/// hold equal ones, in the options that it passes to Tuner::restore.
///
/// The store records an extension as an event, and later restores go on with it. Everything that a Tuner refuses is
/// refused here, too, before anything is changed.
struct Extension {
  /// TuneConfig::num_samples in all, with those that have trials already; at least as many as these.
  std::optional<std::int64_t> num_samples = {};
  /// TuneConfig::max_concurrent_trials.
  std::optional<std::int64_t> max_concurrent_trials = {};
  /// TuneConfig::time_budget, over all sessions together. Trials that ended because the budget was used up go on.
  std::optional<Seconds> time_budget = {};
  /// RunConfig::stop. Trials that ended only because of the former one go on from their latest checkpoints, unless
  /// their last result reaches a threshold of the new one; those whose function returned, that reported `done`, or that
  /// a scheduler has ended do not. Stoppers begin anew: they have not seen earlier results.
  std::optional<Stop> stop = {};
  /// TunerOptions::param_space of trials that are made from here on, such as a narrower one. If the former one has
  /// grids, a sample that has some of its trials counts as made.
  std::optional<Space> param_space = {};
  /// TuneConfig::searcher. It is told of all trials, as it is if trials go on or the space changes: it learns from
  /// their last results, if their configs are of the space.
  std::optional<AnySearcher> searcher = {};
  /// TuneConfig::scheduler. It begins with the results that come from here on; trials that the former one had paused
  /// are its to choose from. Trials that had come to the former one's limit, such as max_t, go on, unless their last
  /// result reaches that of this one; those that it had stopped early do not.
  std::optional<AnyScheduler> scheduler = {};

  /// Returns true if a member is not empty.
  bool is_set() const;
};

/// \cond forms for cadre/stored.h
Value stored_form(const Extension& extension);
void read_stored(Extension& extension, const cadre::Stored& stored);
/// \endcond

}  // namespace cadre::tune
