#include "cadre/tune/schedulers/population_based_training_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "tune/result_keys.h"
#include "tune/schedulers/explore.h"
#include "tune/schedulers/policy_file.h"
#include "tune/searchers/variant_generator.h"
#include "tune/trial.h"

namespace cadre::tune {
namespace {

// The scheduler for tune::PopulationBasedTrainingReplay, which documents its behaviour: its one trial exploits itself
// at every change of its schedule. Source: Ray Tune's PopulationBasedTrainingReplay; docs/from-ray-tune.md lists the
// differences.
class PbtReplayScheduler final : public Scheduler {
 public:
  explicit PbtReplayScheduler(PolicySchedule schedule) : schedule_(std::move(schedule)) {}

  bool begins_with_first_config() const override { return true; }
  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  PolicySchedule schedule_;
  struct State {
    std::int64_t made = 0;  // number of changes made
    Value step = 0;         // training_iteration of the last result that was compared with a change
  };
  State state_;
};

void PbtReplayScheduler::on_trial_add(const TrialView& trial) {
  if (trial.num_results() > 0) return;
  state_ = {};
}

Decision PbtReplayScheduler::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  Decision decision;
  const Value* iteration = result.find("training_iteration");
  const auto next = static_cast<std::size_t>(state_.made);
  if (next == schedule_.changes.size() || iteration == nullptr || !iteration->is_number()) return decision;
  state_.step = *iteration;
  const PolicySchedule::Change& change = schedule_.changes[next];
  const bool reached = iteration->get<double>() >= static_cast<double>(change.change_at);
  if (!reached) return decision;
  if (population.can_save(trial.index())) {
    decision.kind = Decision::Kind::save;
    return decision;
  }
  if (!trial.checkpoint()) {
    decision.kind = Decision::Kind::fail;
    decision.reason = fmt::format(
        "the config changes at training_iteration {}, and the trial has reported no checkpoint to continue from with "
        "the new one. Report one with that result, or before",
        change.change_at);
    return decision;
  }
  Config config = changed_config(trial.config(), schedule_, change);
  std::string message =
      fmt::format("[PopulationBasedTrainingReplay] Replay is now at step {}. Configuration will be changed to {}.",
                  to_json(state_.step), to_json(config.dict()));
  const std::int64_t saved = training_iteration(trial.checkpoint()->metrics);
  if (saved < training_iteration(result))
    message += fmt::format(" It continues from step {}, its newest checkpoint.", saved);
  decision.messages.push_back(std::move(message));
  decision.exploits.push_back(Exploit{.target = trial.index(),
                                      .donor = trial.index(),
                                      .target_iteration = training_iteration(result),
                                      .operations = operations_of(changes(trial.config(), config, "replay"))});
  decision.exploits.back().config = std::move(config);
  ++state_.made;
  return decision;
}

Value PbtReplayScheduler::save() const { return cadre::to_stored(state_); }

void PbtReplayScheduler::load(const Value& saved) { state_ = cadre::from_value<State>(saved); }

std::string PbtReplayScheduler::debug_string() const {
  return fmt::format("PopulationBasedTraining replay: Step {}, perturb {}", to_json(state_.step), state_.made);
}

// Returns the space a replay begins with: an entry with a value in `config` has that as its only value. Keys that only
// `config` has are constants. `complete`: entries without a value in `config` are left out.
Space settled_by(const Space& space, const Config& config, bool complete) {
  Space settled;
  for (const auto& [key, entry] : space) {
    const Value* value = config.find(key);
    if (value == nullptr) {
      if (!complete) settled.emplace_back(key, entry);
    } else if (std::holds_alternative<Value>(entry.data())) {
      settled.emplace_back(key, *value);
    } else if (const auto* nested = std::get_if<std::shared_ptr<const Space>>(&entry.data());
               nested != nullptr && value->is_dict()) {
      settled.emplace_back(key, settled_by(**nested, Config(value->dict()), true));
    } else {
      settled.emplace_back(key, choice(cadre::List{*value}));
    }
  }
  for (const auto& [key, value] : config) {
    if (std::ranges::find(space, key, &Space::value_type::first) == space.end()) settled.emplace_back(key, value);
  }
  return settled;
}

// Returns the keys of param_space whose values the schedule replaces.
std::vector<std::string> overruled_keys(const Space& space, const Config& initial) {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : space) {
    const Value* value = initial.find(key);
    const auto* constant = std::get_if<Value>(&entry.data());
    if (value != nullptr && (constant == nullptr || *constant != *value)) keys.push_back(key);
  }
  return keys;
}

}  // namespace

std::unique_ptr<Scheduler> PopulationBasedTrainingReplay::make(const SchedulerSetting&) const {
  return std::make_unique<PbtReplayScheduler>(*schedule);
}

void PopulationBasedTrainingReplay::check(const TunerOptions& options, Faults& faults) const {
  if (!schedule)
    return faults.add("policy_file", "name the file to replay, pbt_policy_<trial id>.txt of an experiment");
  const TuneConfig& tune = options.tune_config;
  faults.unless(tune.num_samples == 1, "num_samples",
                fmt::format("it is {}; a replay trains 1 trial", tune.num_samples));
  faults.unless(count_combinations(options.param_space, {}, 2) < 2, "param_space",
                "it has grids, and a replay trains 1 trial");
  faults.unless(tune.points_to_evaluate.empty(), "points_to_evaluate",
                "a replay begins with the first config of its schedule");
  faults.unless(!schedule->initial_config.empty() || !options.param_space.empty(), "policy_file",
                "it is empty, and so is param_space: there is no config to train with");
}

void PopulationBasedTrainingReplay::complete(TunerOptions& options, std::vector<std::string>& notes) {
  if (!schedule && !policy_file.empty()) {
    try {
      schedule = read_policy_file(policy_file);
    } catch (const InvalidArgument& error) {
      Faults faults;
      faults.add("scheduler (PopulationBasedTrainingReplay) policy_file", error.what());
      faults.throw_if_any("the experiment");
    }
    const std::vector<std::string> keys = overruled_keys(options.param_space, schedule->initial_config);
    if (!keys.empty())
      notes.push_back(fmt::format("param_space {}: what is replayed has values of its own, which count instead",
                                  fmt::join(keys, ", ")));
  }
  if (schedule) options.param_space = settled_by(options.param_space, schedule->initial_config, false);
}

std::vector<std::pair<std::string, Config>> PopulationBasedTrainingReplay::later_configs(const Config& first) const {
  std::vector<std::pair<std::string, Config>> configs;
  for (const PolicySchedule::Change& change : schedule->changes)
    configs.emplace_back(fmt::format("iteration {}'s", change.change_at), changed_config(first, *schedule, change));
  return configs;
}

Scheduler::Traits PopulationBasedTrainingReplay::traits() const { return {.exploits = true}; }

void PopulationBasedTrainingReplay::take_over(const PopulationBasedTrainingReplay& stored) {
  if (!schedule && policy_file == stored.policy_file) schedule = stored.schedule;
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, PopulationBasedTrainingReplay>;

}  // namespace cadre::tune
