// The interface of schedulers. A scheduler is a deterministic function of its calls: no clock, no I/O, random numbers
// only from its seed. It decides; the Experiment carries out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cadre/tune/schedulers.h"
#include "checkpoint/checkpoint_registry.h"
#include "tune/explore.h"
#include "tune/trial.h"

namespace cadre::tune {

// The scheduler's view of the experiment.
class Population {
 public:
  virtual ~Population() = default;
  virtual const Trial& trial(TrialIndex index) const = 0;
  virtual const std::set<TrialIndex>& live_trials() const = 0;  // made and not ended
  virtual bool anyone_waits() const = 0;                        // a trial is pending or paused, or still to be made
  // Returns true if a trial that has just reported sent no checkpoint with it and can be asked for one: Decision::save.
  virtual bool can_save(const Trial& trial) const = 0;
  virtual const checkpoint::CheckpointRegistry& checkpoints() const = 0;
};

// An exploit: the target continues from the donor's latest checkpoint with a config made from the donor's.
struct Exploit {
  TrialIndex target = 0;
  TrialIndex donor = 0;
  checkpoint::CheckpointId checkpoint = 0;
  std::int64_t target_iteration = 0;  // training_iteration of the result that the target was compared by
  Config donor_config;
  Explored explored;
};

// A request to call on_deadline() later.
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
    save,  // asks for a checkpoint of the result; on_result() is called again with the same result when it has arrived
  };
  Kind kind = Kind::go_on;  // for the trial that reported, unless it exploits
  std::string reason = {};  // of a failure
  std::vector<Exploit> exploits = {};
  std::vector<std::string> messages = {};  // for the user
  std::optional<Deadline> deadline = {};   // replaces an earlier one
};

class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  // Returns true if all trials are to be made at the beginning, not as slots become free.
  virtual bool needs_whole_population() const { return false; }
  // Returns true if a trial that begins anew starts with its first config, not with its last one.
  virtual bool begins_with_first_config() const { return false; }
  // Adds a new trial, or a failed one that runs again.
  virtual void on_trial_add(const Trial&) {}
  // Handles a result that counts. Its checkpoint, if it has one, is the trial's latest already; the other fields of
  // `trial` do not contain the result yet.
  virtual Decision on_result(const Trial& trial, const Metrics& result, Population& population) = 0;
  // Handles a trial's end of any kind. The decision is about other trials: its kind is ignored.
  virtual Decision on_trial_end(const Trial&, Population&) { return {}; }
  // Handles the deadline of an earlier decision, or the start of another controller, which restarts deadlines.
  // Decisions as above.
  virtual Decision on_deadline(std::int64_t, Population&) { return {}; }
  virtual Decision on_controller_start(Population&) { return {}; }
  // Returns the trial to run next, of those that could (pending and paused ones, in the order of their index).
  virtual std::optional<TrialIndex> choose(std::span<const TrialIndex> candidates, const Population& population) = 0;
  // Returns the state, for a new scheduler of the same description that has had the same on_trial_add() calls.
  virtual Value save() const { return {}; }
  virtual void load(const Value&) {}
  // Returns one line about the scheduler's state.
  virtual std::string debug_string() const = 0;
};

std::unique_ptr<TrialScheduler> make_scheduler(const Scheduler& description, std::uint64_t seed);

}  // namespace cadre::tune
