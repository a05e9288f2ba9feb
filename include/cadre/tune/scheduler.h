/// \file
/// The interface of schedulers, which decide which trials continue, wait, stop, or continue from another trial's
/// checkpoint. Cadre's own (cadre/tune/schedulers.h) and a program's implement it alike:
///
///     // Options, which the experiment stores: public members, no constructor.
///     struct StopTheSlow {
///       double least_per_second = 1;
///       std::unique_ptr<tune::Scheduler> make(const tune::SchedulerSetting&) const;
///     };
///     class StopTheSlowScheduler : public tune::Scheduler { ... };
///
///     .tune_config = {.scheduler = StopTheSlow{.least_per_second = 2}}
///
/// A scheduler is a deterministic function of its calls: no clock, no input or output, no random numbers but those
/// keyed by the setting's seed. A restore makes it anew, with the state that save() returned or by the same calls, and
/// it must then decide as before. All calls are made in the thread of Tuner::fit. An exception ends the experiment,
/// which can be restored.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/resources.h"
#include "cadre/tune/options_of.h"
#include "cadre/tune/result.h"
#include "cadre/value.h"

namespace cadre::checkpoint {
class CheckpointRegistry;
}

namespace cadre::tune {

struct Trial;

/// The number of a trial, from 0, in the order in which trials are made.
using TrialIndex = std::uint32_t;

/// A trial's checkpoint as a scheduler sees it. Valid during the call in which it was made.
struct CheckpointView {
  TrialIndex owner = 0;        ///< the trial that wrote it: another one after an exploit
  std::string_view name = {};  ///< "checkpoint_000004"
  const Metrics& metrics;      ///< the result that it was reported with
};

/// A trial as a scheduler sees it. Valid during the call that it was passed to.
class TrialView {
 public:
  /// Shows a trial; called by Cadre only.
  TrialView(const Trial& trial, const checkpoint::CheckpointRegistry& checkpoints)
      : trial_(&trial), checkpoints_(&checkpoints) {}

  TrialIndex index() const;            ///< returns its number
  const std::string& id() const;       ///< returns its name in messages: "00003"
  TrialStatus status() const;          ///< returns its status
  const Config& config() const;        ///< returns its present config
  const Metrics& last_result() const;  ///< returns its last result that counts; empty: none
  /// Returns the number of results that led to its present state, with those of trials that it has continued from.
  std::int64_t num_results() const;
  std::optional<CheckpointView> checkpoint() const;  ///< returns its latest checkpoint; empty: none
  const Resources& base_resources() const;           ///< returns what with_resources() gives it
  /// Returns the resources that it has or, while it waits for them, is to get. If a change is under way, the larger
  /// amount of each.
  Resources resources() const;

 private:
  const Trial* trial_;
  const checkpoint::CheckpointRegistry* checkpoints_;
};

/// The trials of an experiment as a scheduler sees them.
class Population {
 public:
  virtual ~Population() = default;
  virtual TrialView trial(TrialIndex index) const = 0;          ///< returns a trial that has been made
  virtual const std::set<TrialIndex>& live_trials() const = 0;  ///< returns the trials that have not ended
  virtual std::int64_t trials_to_come() const = 0;  ///< returns the number of trials that are still to be made
  /// Returns true if a trial is pending or paused and could run, or is still to be made.
  virtual bool anyone_waits() const = 0;
  /// Returns true if a trial that has just reported, sent no checkpoint with it and can be asked for one:
  /// Decision::Kind::save.
  virtual bool can_save(TrialIndex trial) const = 0;
  virtual const Resources& machine() const = 0;  ///< returns the resources that there are, in use or free
  /// Returns the trials that have resources: they run, or their processes have not ended yet.
  virtual const std::set<TrialIndex>& trials_with_resources() const = 0;
  /// Returns the number of trials that have resources, wait to begin or could be made now, at most
  /// TuneConfig::max_concurrent_trials. Paused trials do not count.
  virtual std::int64_t contenders() const = 0;
};

/// The trials that could run now, in the order of their index: pending and paused ones that there is room for. Valid
/// during the call that it was passed to.
class Candidates {
 public:
  /// Goes through them.
  class Iterator {
   public:
    using value_type = TrialIndex;           ///< a trial's index
    using difference_type = std::ptrdiff_t;  ///< of two iterators
    Iterator() = default;                    ///< makes one that may only be assigned
    /// Begins with the first of the candidates.
    explicit Iterator(const Candidates& candidates) : candidates_(&candidates), trial_(candidates.next(0)) {}
    TrialIndex operator*() const { return *trial_; }  ///< returns the candidate
    /// Goes to the next one.
    Iterator& operator++() {
      trial_ = candidates_->next(*trial_ + 1);
      return *this;
    }
    void operator++(int) { ++*this; }                                   ///< goes to the next one
    bool operator==(std::default_sentinel_t) const { return !trial_; }  ///< returns true at the end

   private:
    const Candidates* candidates_ = nullptr;
    std::optional<TrialIndex> trial_ = {};
  };

  virtual ~Candidates() = default;
  virtual bool contains(TrialIndex trial) const = 0;  ///< returns true if the trial, which exists, is one
  /// Returns the first one whose index is `from` or above; empty: there is none.
  virtual std::optional<TrialIndex> next(TrialIndex from) const = 0;

  std::optional<TrialIndex> first() const { return next(0); }  ///< returns the first one; empty: there is none
  Iterator begin() const { return Iterator(*this); }           ///< returns the first one
  static std::default_sentinel_t end() { return {}; }          ///< returns the end
};

/// An exploit: a trial continues from the latest checkpoint of another trial, or of its own, with a new config.
struct Exploit {
  TrialIndex target = 0;              ///< the trial that continues; it must not have ended
  TrialIndex donor = 0;               ///< the trial whose latest checkpoint it continues from; it must have one
  std::int64_t target_iteration = 0;  ///< training_iteration of the result that the target was compared by
  Config config = {};                 ///< the target's new config
  /// How each key of the config was changed, by path, for the record: {"lr", "* 1.2"}.
  std::vector<std::pair<std::string, std::string>> operations = {};
};

/// Other resources for a trial that goes on.
struct ResourceChange {
  /// Instead of those that it has, and at least its base resources. It keeps what it has if they are not free.
  Resources resources = {};
  /// The trial continues from its checkpoint in a new process. False: its process is told with the answer to its
  /// report: TuneContext::get_trial_resources(), and numerical libraries use as many threads as it has CPUs. A trial
  /// whose number of GPUs changes, or that starts workers, always gets a new process. A trial that needs one and has no
  /// checkpoint of its last result keeps its resources.
  bool restart = false;
};

/// A request to call Scheduler::on_deadline() later.
struct Deadline {
  std::int64_t number = 0;  ///< the scheduler's own
  double seconds = 0;       ///< from now, above 0
};

/// A scheduler's decision.
struct Decision {
  /// The consequence for the trial that reported: it ...
  enum class Kind {
    go_on,   ///< trains on
    pause,   ///< waits until choose() returns it; its process is kept, if the limits of TuneConfig::parking allow
    finish,  ///< ends successfully, as by a stop criterion
    stop,    ///< ends early, with TrialStatus::stopped
    fail,    ///< ends with an error, and is not tried again
    save,    ///< is asked for a checkpoint; on_result() is called again with the same result when it has arrived
  };
  Kind kind = Kind::go_on;               ///< for the trial that reported, unless it exploits
  std::string reason = {};               ///< of a failure, for the user
  std::vector<TrialIndex> stopped = {};  ///< paused and pending trials that end early
  std::vector<Exploit> exploits = {};    ///< carried out after `stopped`, in order
  /// For the trial that reported, if it goes on and does not exploit. It has them until it waits or fails: then it
  /// continues with TrialView::base_resources().
  std::optional<ResourceChange> resources = {};
  std::vector<std::string> messages = {};  ///< shown to the user
  std::optional<Deadline> deadline = {};   ///< replaces an earlier one; empty: that stays
};

/// The interface of schedulers.
class Scheduler {
 public:
  /// Properties of a scheduler's options that the Tuner needs to know.
  struct Traits {
    bool exploits = false;                  ///< trials continue from checkpoints, also of others: trainables must save
    bool pauses = false;                    ///< trials wait for others, and may have to wait for trials not yet made
    bool logs_exploits = false;             ///< writes pbt_global.txt and pbt_policy_<trial id>.txt
    std::vector<std::string> mutated = {};  ///< paths of config keys that change, which tables show
    std::vector<std::string> metrics = {};  ///< names or paths that it reads: a warning says if results lack one
    /// It finishes trials whose result has at least this value of a metric, as {"training_iteration", 81}; empty: there
    /// is no such limit.
    std::optional<std::pair<std::string, double>> limit = {};
  };

  virtual ~Scheduler() = default;

  /// Returns true if all trials are to be made at the beginning, not as slots become free.
  virtual bool needs_whole_population() const { return false; }
  /// Returns true if a trial that begins anew starts with its first config, not with its last one.
  virtual bool begins_with_first_config() const { return false; }
  /// Adds a new trial, or a failed one that runs again.
  virtual void on_trial_add(const TrialView& trial);
  /// Decides on a result that counts. Its checkpoint, if it has one, is the trial's latest already; `trial` does not
  /// contain the result yet.
  virtual Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) = 0;
  /// Handles the end of a trial of any kind, also by this scheduler's decision. The decision is about other trials: its
  /// kind is ignored.
  virtual Decision on_trial_end(const TrialView& trial, const Population& population);
  /// Handles the deadline of an earlier decision. The decision is as above.
  virtual Decision on_deadline(std::int64_t number, const Population& population);
  /// Handles the start of another controller after an interruption, and the end of a pause of the experiment
  /// (`cadre resume`); deadlines of before are gone. The decision is as above.
  virtual Decision on_controller_start(const Population& population);
  /// Returns false for a trial that waits for others, so that choose() would not return it however much room there
  /// were: no node is requested for it. Default: true.
  virtual bool may_run(TrialIndex trial) const;
  /// Returns the trial to run next, one of the candidates. Empty: none of them. Default: the first.
  virtual std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population);
  /// Returns the state, for load() on a new scheduler with the same options that has had the same on_trial_add() calls.
  /// to_stored() of cadre/stored.h writes a struct.
  virtual Value save() const { return {}; }
  /// Restores the state that save() returned. Throws InvalidArgument if it is none.
  virtual void load(const Value& state);
  /// Returns one line about the scheduler's state for the console.
  virtual std::string debug_string() const = 0;
};

/// The values that a scheduler is made with, besides its options.
struct SchedulerSetting {
  std::uint64_t seed = 0;  ///< TuneConfig::seed
};

/// The options of a scheduler, of Cadre's or of the program's: TuneConfig::scheduler.
///
/// T is a struct with public members and without a constructor, which are stored with the experiment (cadre/stored.h),
/// and with some of these functions; only the first must be there:
///
///     std::unique_ptr<tune::Scheduler> make(const tune::SchedulerSetting& setting) const;
///     void check(const tune::TunerOptions& options, Faults& faults) const;      // before anything runs
///     void complete(tune::TunerOptions& options, std::vector<std::string>& notes);  // before check()
///     tune::Scheduler::Traits traits() const;
///     // Configs that trials get after their first one, to be checked, each with words for it: "iteration 5's".
///     std::vector<std::pair<std::string, Config>> later_configs(const Config& first) const;
///     void take_over(const T& stored);  // a restore by a program that gives its options again: from the stored ones
///
/// If it has members `Objective metric` and `std::optional<Mode> mode`, these are completed from the TuneConfig, or the
/// TuneConfig from them, and checked: both must be known.
///
/// An experiment is restored by the name of T, so the program must contain a use of T as a scheduler; `cadre show`
/// shows the options of any.
using AnyScheduler = OptionsOf<Scheduler, SchedulerSetting>;

namespace detail {
// Returns the limit of a scheduler that has a max_t.
template <class Options>
std::optional<std::pair<std::string, double>> limit_of(const Options& options) {
  if (!options.stop_last_trials) return {};
  return std::pair(options.time_attr, static_cast<double>(options.max_t));
}
}  // namespace detail

}  // namespace cadre::tune
