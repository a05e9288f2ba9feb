// The machinery of Population Based Training, which its variants share: intervals, barriers, checkpoints, exploits. The
// variants differ in the trials that they replace (Selection) and in the configs of their successors (Explorer).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cadre/faults.h"
#include "cadre/tune/scheduler.h"
#include "tune/schedulers/explore.h"

namespace cadre::tune {

// Options that all variants have; PopulationBasedTraining documents them.
struct PbtSettings {
  std::string name = {};  // of the variant, for messages
  std::string time_attr = {};
  std::string metric = {};
  Mode mode = Mode::max;
  double perturbation_interval = 0;
  double burn_in_period = 0;
  double quantile_fraction = 0;
  bool require_attrs = true;
  bool synch = false;
  double synch_deadline = 0;
};

// Returns these options of a variant.
template <class Options>
PbtSettings pbt_settings(const Options& options, std::string name) {
  return {.name = std::move(name),
          .time_attr = options.time_attr,
          .metric = options.metric.name,
          .mode = options.mode.value_or(Mode::max),
          .perturbation_interval = options.perturbation_interval,
          .burn_in_period = options.burn_in_period,
          .quantile_fraction = options.quantile_fraction,
          .require_attrs = options.require_attrs,
          .synch = options.synch,
          .synch_deadline = options.synch_deadline};
}
// Adds their faults.
void check_pbt_settings(const PbtSettings& settings, Faults& faults);

// ---- The trials that are replaced

// A trial and its score, which is no NaN; larger is better.
using Ranked = std::pair<double, TrialIndex>;

// A trial that is to continue from the checkpoint of another one, if that has a better score.
struct Replacement {
  TrialIndex target = 0;
  TrialIndex donor = 0;
  // The trial whose config the target takes unchanged; empty: it explores that of the donor.
  std::optional<TrialIndex> config_of = {};
};

// The trials that are compared, and what is needed to decide.
struct Comparison {
  const std::vector<Ranked>& ranked;            // worst first
  std::span<const TrialIndex> may_be_replaced;  // the others are compared with only
  // Returns the number of a trial's comparisons so far, without this one.
  std::function<std::int64_t(TrialIndex)> comparisons_of;
  // Draws a number below n for a target.
  std::function<std::size_t(TrialIndex target, std::size_t n)> draw;
};

// Chooses the trials that are replaced. Without state.
class Selection {
 public:
  virtual ~Selection() = default;

  virtual std::vector<Replacement> replacements(const Comparison& comparison) const = 0;
  // Returns true if others may continue from the trial before its next comparison, as ranked now.
  virtual bool may_become_donor(TrialIndex trial, const std::vector<Ranked>& ranked) const = 0;
};

// Returns the number of the best, and of the worst, of `count` trials: `fraction` of them, rounded up, at most a half.
std::size_t quantile_size(std::size_t count, double fraction);

// Replaces the lower quantile, each by a random trial of the upper one.
class QuantileSelection final : public Selection {
 public:
  explicit QuantileSelection(double fraction) : fraction_(fraction) {}

  std::vector<Replacement> replacements(const Comparison& comparison) const override;
  bool may_become_donor(TrialIndex trial, const std::vector<Ranked>& ranked) const override;

 private:
  double fraction_;
};

// ---- The configs of their successors

// The training state that a target continues from.
struct Origin {
  TrialIndex target = 0;
  const Config& config;  // the donor's
  double time = 0;       // of the checkpoint's result; of the donor's last comparison if that has no time or score
  double score = 0;      // of the same; larger is better
};

// Chooses the configs of trials that continue from a donor. Its state goes into snapshots.
class Explorer {
 public:
  virtual ~Explorer() = default;

  // Handles a trial's result at an interval.
  virtual void on_interval(const TrialView& trial, double time, double score);
  // Handles the end of a trial, or its beginning anew without a checkpoint.
  virtual void on_discontinued(TrialIndex trial);
  // Returns the target's new config. Exceptions of user functions are passed on; the state is then unchanged.
  virtual Explored explore(const Origin& origin, base::RandomStream& random) = 0;
  virtual Value save() const { return {}; }
  virtual void load(const Value& state);
};

// Returns an explorer that changes the donor's config by these options' mutations.
std::unique_ptr<Explorer> mutation_explorer(PopulationBasedTraining options);

std::unique_ptr<Scheduler> make_pbt_scheduler(PbtSettings settings, std::uint64_t seed,
                                              std::unique_ptr<const Selection> selection,
                                              std::unique_ptr<Explorer> explorer);

}  // namespace cadre::tune
