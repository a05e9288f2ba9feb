// Changes of a running experiment, and of one that goes on: extensions, and requests of the user.
#include <fmt/format.h>

#include <utility>

#include "cadre/stored.h"
#include "tune/experiment.h"
#include "tune/new_parts.h"
#include "tune/options/extend.h"
#include "tune/stoppers/threshold_stopper.h"

namespace cadre::tune {

// ---- Extensions

// Goes on with other options: makes anew what is made from them, and continues trials that only the former stop
// criteria, or the former scheduler's limit, had ended.
void Experiment::extend(const Extension& extension) {
  const std::int64_t samples = samples_made();
  tune::extend(options_, extension);
  state_.extension = extension_between(first_options_, options_);
  if (extension.param_space) state_.variants = {.trial = std::ssize(trials_), .sample = samples};
  variants_ = VariantGenerator(options_.param_space, options_.tune_config, state_.variants, state_.queued);
  if (extension.stop) stoppers_ = new_stoppers(options_);
  if (extension.stop || extension.time_budget) {
    if (state_.phase == Phase::stopping) state_.phase = Phase::running;
  } else if (state_.phase == Phase::stopping) {
    actions_->push_back(
        Say{"Warning: all trials were stopped, and an extension without `stop` and `time_budget` makes none go on"});
  }
  std::vector<TrialIndex> continued;
  for (const Trial& trial : trials_) {
    if (is_extended(trial, extension)) continued.push_back(trial.index);
  }
  for (const TrialIndex index : continued) {
    Trial& trial = trials_[index];
    record(DecisionKind::extend, trial);
    trial.ended_by = EndedBy::itself;
    live_.insert(index);
    if (trial.attempt == 0) {
      begin_waiting(trial, TrialStatus::pending);
      actions_->push_back(state_of(trial));
    } else {
      trial.status = TrialStatus::running;  // as before its end
    }
    if (!extension.scheduler) scheduler_->on_trial_add(view_of(trial));
  }
  // A searcher cannot unlearn the end of a trial that goes on.
  if (extension.searcher || extension.param_space || !continued.empty()) make_searcher();
  if (extension.scheduler) make_scheduler();
  actions_->push_back(Say{fmt::format("The experiment goes on with other options: {}{}", to_json(to_stored(extension)),
                                      continued.empty() ? ""
                                                        : fmt::format("; {} {} that had ended {}", continued.size(),
                                                                      continued.size() == 1 ? "trial" : "trials",
                                                                      continued.size() == 1 ? "goes on" : "go on"))});
}

// Makes an experiment without trials as it is after extensions, and with the configs that were enqueued.
void Experiment::restore_options(const State& saved) {
  tune::extend(options_, saved.extension);
  variants_ = VariantGenerator(options_.param_space, options_.tune_config, saved.variants, saved.queued);
  if (!saved.extension.is_set()) return;
  searcher_ = AskedSearcher(new_searcher(options_));
  scheduler_ = new_scheduler(options_);
  stoppers_ = new_stoppers(options_);
}

// Returns true if the trial ended only because of stop criteria, or a limit of its scheduler, that the extension
// replaces.
bool Experiment::is_extended(const Trial& trial, const Extension& extension) const {
  if (trial.status != TrialStatus::terminated) return false;
  const auto is_replaced = [&] {
    switch (trial.ended_by) {
      case EndedBy::its_stop:
        return extension.stop.has_value();
      case EndedBy::all_stop:
        return extension.stop || extension.time_budget;
      case EndedBy::limit:
        return extension.scheduler && state_.phase == Phase::running;
      case EndedBy::itself:
      case EndedBy::early_stop:
        return false;
    }
    return false;
  };
  return is_replaced() && !reaches(trial.last_result, options_.run_config.stop.thresholds) && !is_at_limit(trial);
}

// Returns true if the scheduler would finish the trial with its last result.
bool Experiment::is_at_limit(const Trial& trial) const {
  const auto limit = options_.tune_config.scheduler.held().traits().limit;
  return limit && trial.last_result.number(limit->first).value_or(0) >= limit->second;
}

// Makes a searcher that is told of all trials, as when an experiment is restored.
void Experiment::make_searcher() {
  searcher_ = AskedSearcher(new_searcher(options_));
  for (const Trial& trial : trials_) searcher_.on_trial_add(trial.index, trial.config_at_first());
  for (const Trial& trial : trials_) {
    if (trial.ended()) searcher_.on_trial_end(trial.index, trial.status, trial.last_result);
  }
}

// Makes a scheduler to which all trials are new.
void Experiment::make_scheduler() {
  scheduler_ = new_scheduler(options_);
  for (const Trial& trial : trials_) scheduler_->on_trial_add(view_of(trial));
  for (const Trial& trial : trials_) {
    if (trial.ended()) follow(scheduler_->on_trial_end(view_of(trial), *this));
  }
}

// ---- Requests

void Experiment::on(const TrialStopRequested& event) {
  Trial& trial = trials_.at(event.trial);
  if (trial.ended() || trial.stop_requested) return;
  actions_->push_back(Say{fmt::format("Trial {} is to stop, as was asked for", trial.id)});
  trial.stop_requested = true;
  if (waiting_.contains(trial.index) || trial.worker == WorkerState::saving) {
    stop_early(trial);
  } else {
    actions_->push_back(state_of(trial));
  }
  if (!runs_user_code(trial.worker)) return;
  actions_->push_back(
      StartTimer{{Timer::Kind::stopping, trial.index, trial.attempt}, options_.run_config.stop_grace_period.count()});
}

void Experiment::stop_by_request(Trial& trial) {
  trial.ended_by = EndedBy::early_stop;
  end(trial, TrialStatus::terminated);
}

void Experiment::on(const StopRequested&) {
  if (state_.phase != Phase::running) return;
  actions_->push_back(Say{"All trials stop, as was asked for"});
  stop_all();
}

// Frees everything that workers hold, as an interruption does.
void Experiment::on(const PauseRequested&) {
  if (state_.interrupted) return;
  state_.paused = true;
  actions_->push_back(Say{"The experiment pauses, as was asked for: trials stop at their next report"});
  interrupt_all();
}

void Experiment::on(const ResumeRequested& event) {
  if (!state_.paused) return;
  state_.paused = state_.interrupted = false;
  actions_->push_back(Say{"The experiment goes on, as was asked for"});
  follow(scheduler_->on_controller_start(*this));
  start_budget(event.running_time_s);
}

void Experiment::on(const ConfigEnqueued& event) {
  if (state_.phase != Phase::running) return;
  actions_->push_back(Say{"The next trial has a config that was enqueued: " + to_json(event.values.dict())});
  state_.queue.push_back(event.values);
}

}  // namespace cadre::tune
