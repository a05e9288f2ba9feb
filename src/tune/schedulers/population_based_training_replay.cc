#include "tune/schedulers/population_based_training_replay.h"

#include <fmt/format.h>

#include "base/stored.h"
#include "tune/schedulers/policy_file.h"

namespace cadre::tune {

void PbtReplayScheduler::on_trial_add(const Trial& trial) {
  if (trial.step > 0) return;
  state_ = {};
}

Decision PbtReplayScheduler::on_result(const Trial& trial, const Metrics& result, Population& population) {
  Decision decision;
  const Value* iteration = result.find("training_iteration");
  const auto next = static_cast<std::size_t>(state_.made);
  if (next == schedule_.changes.size() || iteration == nullptr || !iteration->is_number()) return decision;
  state_.step = *iteration;
  const PolicySchedule::Change& change = schedule_.changes[next];
  const bool reached = iteration->get<double>() >= static_cast<double>(change.change_at);
  if (!reached) return decision;
  if (population.can_save(trial)) {
    decision.kind = Decision::Kind::save;
    return decision;
  }
  if (!trial.latest_checkpoint) {
    decision.kind = Decision::Kind::fail;
    decision.reason = fmt::format(
        "the config changes at training_iteration {}, and the trial has reported no checkpoint to continue from with "
        "the new one. Report one with that result, or before",
        change.change_at);
    return decision;
  }
  Config config = changed_config(trial.config, schedule_, change);
  std::string message =
      fmt::format("[PopulationBasedTrainingReplay] Replay is now at step {}. Configuration will be changed to {}.",
                  to_json(state_.step), to_json(config.dict()));
  const std::int64_t saved = training_iteration(population.checkpoints().get(*trial.latest_checkpoint).metrics);
  if (saved < training_iteration(result))
    message += fmt::format(" It continues from step {}, its newest checkpoint.", saved);
  decision.messages.push_back(std::move(message));
  std::vector<Perturbation> changed = changes(trial.config, config, "replay");
  decision.exploits.push_back(Exploit{.target = trial.index,
                                      .donor = trial.index,
                                      .checkpoint = *trial.latest_checkpoint,
                                      .target_iteration = training_iteration(result),
                                      .donor_config = trial.config,
                                      .explored = {std::move(config), std::move(changed)}});
  ++state_.made;
  return decision;
}

std::optional<TrialIndex> PbtReplayScheduler::choose(std::span<const TrialIndex> candidates, const Population&) {
  return candidates.empty() ? std::nullopt : std::optional(candidates.front());
}

Value PbtReplayScheduler::save() const { return base::to_stored(state_); }

void PbtReplayScheduler::load(const Value& saved) { state_ = base::from_value<State>(saved); }

std::string PbtReplayScheduler::debug_string() const {
  return fmt::format("PopulationBasedTraining replay: Step {}, perturb {}", to_json(state_.step), state_.made);
}

}  // namespace cadre::tune
