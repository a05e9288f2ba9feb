// What every scheduler does. A scheduler is a deterministic function of the calls it gets: no clock, no I/O, random
// numbers only from its seed. It decides; the Experiment carries out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cadre/tune/schedulers.h"
#include "run/checkpoint_registry.h"
#include "tune/explore.h"
#include "tune/trial.h"

namespace cadre::tune {

// What a scheduler sees of the experiment.
class Population {
 public:
  virtual ~Population() = default;
  virtual const Trial& trial(TrialIndex index) const = 0;
  virtual const std::set<TrialIndex>& live_trials() const = 0;  // made and not ended
  virtual bool anyone_waits() const = 0;                        // a trial is pending or paused, or still to be made
  // Whether a trial that has just reported has sent no checkpoint with it, and can be asked for one: Decision::save.
  virtual bool can_save(const Trial& trial) const = 0;
  virtual const run::CheckpointRegistry& checkpoints() const = 0;
};

// The target continues from the donor's latest checkpoint with a config made from the donor's.
struct Exploit {
  TrialIndex target = 0;
  TrialIndex donor = 0;
  run::CheckpointId checkpoint = 0;
  std::int64_t target_iteration = 0;  // training_iteration of the result that the target was compared by
  Config donor_config;
  Explored explored;
};

// To be called back when a time has passed.
struct Deadline {
  std::int64_t number = 0;  // the scheduler's own
  double seconds = 0;
};

struct Decision {
  enum class Kind {
    go_on,
    pause,
    stop,
    fail,
    save,  // on_result() is called again with the same result when the trial has sent a checkpoint of it
  };
  Kind kind = Kind::go_on;  // for the trial that reported, unless it exploits
  std::string reason = {};  // why it fails
  std::vector<Exploit> exploits = {};
  std::vector<std::string> messages = {};  // for the person who watches
  std::optional<Deadline> deadline = {};   // replaces an earlier one
};

class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  // Whether all trials belong together, so that they are made at the beginning and not as slots become free.
  virtual bool needs_whole_population() const { return false; }
  // Whether a trial that begins anew takes the config again that it was made with, and not the one that it had last.
  virtual bool begins_with_first_config() const { return false; }
  // A new trial, or one that had failed and is taken up again.
  virtual void on_trial_add(const Trial&) {}
  // A result that counts. Its checkpoint, if it has one, is the trial's latest already; the rest of `trial` is as
  // before.
  virtual Decision on_result(const Trial& trial, const Metrics& result, Population& population) = 0;
  // The trial ended, whatever way. The decision is about others: its kind is ignored.
  virtual Decision on_trial_end(const Trial&, Population&) { return {}; }
  // A deadline of an earlier decision has passed, or another controller has begun, which restarts deadlines. Decisions
  // as above.
  virtual Decision on_deadline(std::int64_t, Population&) { return {}; }
  virtual Decision on_controller_start(Population&) { return {}; }
  // Who runs next, of the trials that could (pending and paused ones, in the order of their index).
  virtual std::optional<TrialIndex> choose(std::span<const TrialIndex> candidates, const Population& population) = 0;
  // Its state as a value, for a new scheduler of the same description that was told of the same trials.
  virtual Value save() const { return {}; }
  virtual void load(const Value&) {}
  // One line about the scheduler's state.
  virtual std::string debug_string() const = 0;
};

std::unique_ptr<TrialScheduler> make_scheduler(const Scheduler& description, std::uint64_t seed);

}  // namespace cadre::tune
