#include "tune/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/cut_text.h"
#include "base/retry_delay.h"
#include "cadre/detail/enum_names.h"
#include "checkpoint/checkpoint_files.h"
#include "tune/experiment_directory.h"
#include "tune/new_parts.h"
#include "tune/result_keys.h"
#include "tune/trial_places.h"

namespace cadre::tune {
namespace {

// When stoppers are asked whether all trials stop: keys of the decision.
constexpr std::string_view kAfterResult = "after_result";
constexpr std::string_view kAfterEnd = "after_end";

// Suffix for "the worker exited ...", depending on how it exited.
const char* when(engine::Exit::Kind kind) {
  if (kind == engine::Exit::Kind::code) return " before its training function returned";
  return kind == engine::Exit::Kind::signal ? " while its training function ran" : "";
}

Failure ran_too_long(Seconds limit) {
  return {fmt::format("the trial has run for its limit of {:g} s", limit.count()), false};
}

// Counts a failure of the trial's present worker. Returns true if the trial is to be tried again.
bool count_failure(Trial& trial, const FailureConfig& config) {
  ++trial.futile_attempts;
  if (trial.restoring && trial.restore_failures < config.max_restore_failures) {
    ++trial.restore_failures;
    return true;
  }
  ++trial.failures;
  return config.max_failures < 0 || trial.failures <= config.max_failures;
}

}  // namespace

Experiment::Experiment(Trainable trainable, TunerOptions options)
    : trainable_(std::move(trainable)),
      first_options_(std::move(options)),
      options_(first_options_),
      variants_(options_.param_space, options_.tune_config),
      needs_(trainable_),
      searcher_(new_searcher(options_)),
      scheduler_(new_scheduler(options_)),
      stoppers_(new_stoppers(options_)),
      checkpoints_(options_.run_config.checkpoint_config) {}

void Experiment::handle(const Event& event, Actions& actions, const RecordedAnswers* recorded) {
  actions_ = &actions;
  recorded_ = recorded;
  std::visit([this](const auto& content) { on(content); }, event);
  if (ended_) ask_to_stop_all(trials_[*std::exchange(ended_, std::nullopt)], kAfterEnd);
  schedule();
  say_why_trials_wait();
  delete_unneeded_checkpoints();
  actions_ = nullptr;
  recorded_ = nullptr;
}

bool Experiment::finished() const {
  return state_.workers == 0 && (interrupted() || (live_.empty() && trials_to_come() == 0));
}

bool Experiment::awaits(const Timer& timer) const {
  if (timer.kind == Timer::Kind::barrier) return !live_.empty() && !state_.interrupted;
  if (timer.kind == Timer::Kind::budget) return !finished() && state_.phase == Phase::running && !state_.paused;
  if (timer.kind == Timer::Kind::retry) {
    const Trial& trial = trials_.at(timer.trial);
    return trial.backs_off && trial.attempt == timer.number;
  }
  const Trial* trial = present(timer.trial, timer.number);
  if (trial == nullptr) return false;
  const bool runs = runs_user_code(trial->worker);
  if (timer.kind == Timer::Kind::running) return runs;
  return trial->worker == WorkerState::stopping ||
         (runs && (state_.interrupted || state_.phase == Phase::stopping || trial->stop_requested));
}

bool Experiment::counts(const ResultReported& event) const {
  const Trial* trial = present(event.trial, event.attempt);
  return trial != nullptr && runs_user_code(trial->worker) && !is_repeated(event);
}

bool Experiment::is_saved_result(const ResultReported& event) const {
  const Trial& trial = trials_.at(event.trial);
  return trial.after_save && event.report.step == trial.step;
}

bool Experiment::is_repeated(const ResultReported& event) const {
  return event.report.step <= trials_.at(event.trial).step;
}

std::int64_t Experiment::trials_to_come() const {
  if (state_.phase != Phase::running) return 0;
  const std::int64_t others = searcher_.is_finished() ? 0 : variants_.size() - std::ssize(trials_);
  return std::ssize(state_.queue) + std::max<std::int64_t>(0, others);
}

std::int64_t Experiment::contenders() const {
  const auto leaving = std::ranges::count_if(holders_, [this](TrialIndex index) { return pending_.contains(index); });
  const std::int64_t to_come = searcher_.has_none() ? 0 : trials_to_come();
  const std::int64_t all = std::ssize(holders_) + std::ssize(pending_) - leaving + to_come;
  const std::int64_t limit = options_.tune_config.max_concurrent_trials;
  return limit == 0 ? all : std::min(all, limit);
}

bool Experiment::anyone_waits() const {
  if (trials_to_come() > 0) return true;
  for (const TrialIndex index : waiting_) {
    const Trial& trial = trials_[index];
    const bool ready = trial.worker == WorkerState::none || trial.worker == WorkerState::parked;
    if (ready && !trial.backs_off) return true;  // others are about to start again
  }
  return false;
}

const Trial* Experiment::present(TrialIndex index, std::int64_t attempt) const {
  const Trial& trial = trials_.at(index);
  return trial.attempt == attempt && trial.worker != WorkerState::none ? &trial : nullptr;
}

Trial* Experiment::present(TrialIndex index, std::int64_t attempt) {
  return const_cast<Trial*>(std::as_const(*this).present(index, attempt));
}

void Experiment::record(DecisionKind kind, const Trial& trial, Dict data) {
  actions_->push_back(RecordDecision{kind, trial.index, std::move(data)});
}

// ---- Events

void Experiment::on(const ControllerStarted& event) {
  const bool is_restored = !trials_.empty();
  searcher_.end_asking();  // the answer to an earlier controller has not come
  cluster_ = event.nodes.is_set() ? resources::Cluster(event.nodes) : resources::Cluster(event.resources);
  state_.resources = event.resources;
  holders_.clear();
  state_.workers = 0;
  state_.interrupted = state_.paused = false;
  // After an interruption no worker is left: trials that had not ended start again from their checkpoints.
  for (Trial& trial : trials_) {
    trial.held.reset();
    trial.backs_off = false;
    if (trial.worker == WorkerState::none) continue;
    worker_is_done(trial);
    if (trial.ended()) actions_->push_back(state_of(trial));  // stored before, while its worker still existed
  }
  for (const checkpoint::CheckpointId checkpoint : event.lost_checkpoints) drop_lost(checkpoint);
  if (event.extension.is_set()) extend(event.extension);
  for (Trial& trial : trials_) {
    if (trial.status == TrialStatus::error && event.errored != ControllerStarted::Errored::leave)
      resume_errored(trial, event.errored == ControllerStarted::Errored::restart);
    if (trial.ended()) continue;
    trial.changed.reset();
    if (trial.status == TrialStatus::running) set_aside(trial);
  }
  for (Trial& trial : trials_) {
    if (trial.stop_requested) stop_early(trial);
  }
  population_is_made();
  follow(scheduler_->on_controller_start(*this));
  start_budget(event.running_time_s);
  if (is_restored) say_if_only_failures_are_left();
}

void Experiment::start_budget(double running_time_s) {
  std::optional<Seconds> budget = stoppers_.timeout();
  if (const auto& limit = options_.tune_config.time_budget) budget = budget ? std::min(*budget, *limit) : *limit;
  const double left = budget ? budget->count() - running_time_s : 0;
  if (state_.phase == Phase::stopping ||
      (budget && left <= 0)) {  // the interruption came while all trials were stopping
    stop_all();
  } else if (budget) {
    actions_->push_back(StartTimer{{Timer::Kind::budget, 0, 0}, left});
  }
}

// A restore that returns at once without a message would look as if it had done its work.
void Experiment::say_if_only_failures_are_left() {
  const auto failed = std::ranges::count(trials_, TrialStatus::error, &Trial::status);
  if (failed == 0 || !live_.empty() || trials_to_come() > 0) return;
  actions_->push_back(
      Say{fmt::format("Nothing is left to run: {} of {} trials have failed. Tuner::restore with "
                      "RestoreOptions::resume_errored continues them from their latest checkpoints, with "
                      "restart_errored from the beginning",
                      failed, trials_.size())});
}

// Marks a checkpoint as lost. Trials that would have continued from it continue from its closest existing ancestor.
void Experiment::drop_lost(checkpoint::CheckpointId checkpoint) {
  if (!checkpoints_.contains(checkpoint)) return;
  checkpoints_.retain(checkpoint);  // keeps its record until no trial refers to it
  const std::optional<checkpoint::CheckpointId> older = checkpoints_.ancestor(checkpoint);
  for (Trial& trial : trials_) {
    if (trial.latest_checkpoint != checkpoint) continue;
    record(DecisionKind::lose, trial, {{"checkpoint", checkpoints_.get(checkpoint).directory}});
    if (older) {
      continue_from(trial, *older);
    } else {
      checkpoints_.release(*std::exchange(trial.latest_checkpoint, std::nullopt));
    }
  }
  checkpoints_.drop(checkpoint);
  checkpoints_.release(checkpoint);
}

// Makes a trial that had failed for good run again, from the beginning if `anew`.
void Experiment::resume_errored(Trial& trial, bool anew) {
  state_.phase = Phase::running;
  trial.error.clear();
  trial.failures = trial.restore_failures = trial.preemption_failures = trial.futile_attempts = 0;
  trial.stop_requested = false;
  if (anew) {
    trial.step = 0;
    trial.after_save.reset();
    trial.last_result = {};
    trial.time_total_s = 0;
    if (trial.first_config && scheduler_->begins_with_first_config()) {
      trial.config = *std::exchange(trial.first_config, std::nullopt);
      update_needs(trial);
    }
    if (trial.latest_checkpoint) checkpoints_.release(*std::exchange(trial.latest_checkpoint, std::nullopt));
  }
  Dict data{{"anew", anew}};
  std::string fault;
  if (trial.attempt == 0) {  // it failed before it could be started: a function of the program threw
    Variant variant = variant_of(trial.index, trial.suggestion.value_or(Config()));
    trial.config = std::move(variant.config);
    fault = variant.fault.empty() ? find_needs(trial) : variant.fault;
    data.emplace_back("config", trial.config.dict());
    if (!fault.empty()) data.emplace_back("fault", fault);
  }
  add_needs(trial, data);
  record(DecisionKind::resume_errored, trial, std::move(data));
  trial.status = TrialStatus::running;  // as before the failure
  live_.insert(trial.index);
  searcher_.on_trial_add(trial.index, trial.config_at_first());
  scheduler_->on_trial_add(view_of(trial));
  if (trial.attempt > 0) return;
  if (fault.empty()) fault = shortage_of(trial);
  if (!fault.empty()) fail(trial, {.cause = fault, .may_retry = false});
}

void Experiment::on(const ResultReported& event) {
  Trial* trial = present(event.trial, event.attempt);
  if (trial == nullptr || !runs_user_code(trial->worker)) {
    // Too late: the worker was replaced, or it was told to stop and reports again.
    if (!event.report.checkpoint.empty())
      actions_->push_back(DiscardDirectory{trials_.at(event.trial).directory + "/" + event.report.checkpoint});
    actions_->push_back(AnswerReport{event.trial, event.attempt, channel::Verdict::stop, {}});
    return;
  }
  const channel::Report& report = event.report;
  const bool repeated = is_repeated(event);
  set_worker(*trial, WorkerState::waiting);
  trial->restoring = false;
  trial->restore_failures = 0;
  trial->time_total_s = report.metrics.number(result_key::time_total_s).value_or(0);
  trial->reported_checkpoint = commit_checkpoint(*trial, report);
  trial->offers_checkpoint = report.offers_checkpoint && report.checkpoint.empty();
  if (repeated) {  // it was logged and counted the first time
    if (is_saved_result(event)) return on_saved(*trial);
    if (trial->stop_requested) return stop_by_request(*trial);
    return state_.phase == Phase::stopping ? end_by_stop(*trial) : resume(*trial);
  }
  trial->after_save.reset();
  trial->futile_attempts = 0;

  searcher_.on_result(trial->index, report.metrics);
  warn_about_missing_metrics(report.metrics);
  warn_about_text(*trial, report.metrics);
  const std::string& checkpoint = trial->reported_checkpoint;
  const Decision decision = decide(*trial, report.metrics);
  trial->step = report.step;
  trial->last_result = report.metrics;
  actions_->push_back(LogResult{trial->index, report.metrics, checkpoint.substr(checkpoint.rfind('/') + 1),
                                decision.kind == Decision::Kind::finish || decision.kind == Decision::Kind::stop,
                                trial->config});
  carry_out(*trial, decision);
}

void Experiment::on(const FunctionReturned& event) {
  Trial* trial = present(event.trial, event.attempt);
  if (trial == nullptr) return;
  on_last_word(*trial, std::nullopt);
}

void Experiment::on(const FunctionThrew& event) {
  Trial* trial = present(event.trial, event.attempt);
  if (trial == nullptr) return;
  on_last_word(*trial, Failure{event.message});
}

// Starts another worker for the trial.
void Experiment::on(const WorkerDeclined& event) {
  Trial* trial = present(event.trial, event.attempt);
  if (trial == nullptr) return;
  if (!runs_user_code(trial->worker)) return on_last_word(*trial, std::nullopt);
  worker_is_done(*trial);
  if (trial->stop_requested) return stop_by_request(*trial);
  if (state_.phase == Phase::stopping) return end_by_stop(*trial);
  make_pending(*trial);
}

void Experiment::on(const WorkerEnded& event) {
  --state_.workers;
  Trial* trial = present(event.trial, event.attempt);
  if (trial == nullptr) return;
  if (event.exit.kind == engine::Exit::Kind::node_lost)
    cluster_.drain(event.elsewhere.value_or(trial->node));  // NodeLeft follows, or has come
  on_last_word(*trial, Failure{.cause = "the worker " + engine::to_string(event.exit) + when(event.exit.kind) +
                                        engine::output_text(event.exit),
                               .is_of_node = event.exit.kind == engine::Exit::Kind::node_lost});
}

void Experiment::on(const TimerFired& event) {
  const Timer& timer = event.timer;
  if (timer.kind == Timer::Kind::barrier) return follow(scheduler_->on_deadline(timer.number, *this));
  if (!awaits(timer)) return;
  if (timer.kind == Timer::Kind::budget) {
    actions_->push_back(Say{"The time of the experiment is used up: trials stop at their next report."});
    return stop_all();
  }
  Trial& trial = trials_.at(timer.trial);
  if (timer.kind == Timer::Kind::retry) {
    trial.backs_off = false;
    return;
  }
  const TrialLimits& limits = options_.run_config.limits;
  if (timer.kind == Timer::Kind::stopping) {
    if (runs_user_code(trial.worker)) {
      kill(trial, std::nullopt);
      if (trial.stop_requested) return stop_by_request(trial);
      return state_.phase == Phase::stopping ? end_by_stop(trial) : set_aside(trial);
    }
    return kill(trial, std::nullopt);
  }
  const std::optional<double> left = time_left(trial);
  if (left && (!limits.time_between_reports || *left <= limits.time_between_reports->count()))
    return kill(trial, ran_too_long(*limits.time));
  kill(trial, Failure{fmt::format("the worker hung: it has not reported for {:g} s, its limit",
                                  limits.time_between_reports->count())});
}

void Experiment::on(const ExperimentInterrupted&) {
  state_.paused = false;
  interrupt_all();
}

void Experiment::interrupt_all() {
  state_.interrupted = true;
  const double grace = options_.run_config.stop_grace_period.count();
  for (Trial& trial : trials_) {
    if (trial.worker == WorkerState::parked) {
      if (can_save(trial)) {
        ask_to_save(trial, AfterSave::pause);  // the trial is set aside after that, or parked again
      } else {
        interrupt(trial);
      }
    }
    if (runs_user_code(trial.worker))
      actions_->push_back(StartTimer{{Timer::Kind::stopping, trial.index, trial.attempt}, grace});
  }
}

void Experiment::on(const CheckpointsSynced& event) {
  for (const checkpoint::CheckpointId checkpoint : event.checkpoints) {
    if (!checkpoints_.contains(checkpoint)) continue;
    checkpoints_.set_synced(checkpoint);
    actions_->push_back(MarkSynced{checkpoint});
  }
}

void Experiment::on(const MemoryRunsShort&) { unpark_the_coldest(); }

void Experiment::on(const Suggested& event) {
  if (searcher_.state().asked != event.for_trial) return;
  if (!event.values) searcher_.set_has_none(event.finished);
  searcher_.end_asking();
  if (state_.interrupted || trials_to_come() == 0) return;
  if (accept(event.for_trial, event.values)) make_trial(event.for_trial, *event.values);
}

void Experiment::on(const NodeJoined& event) {
  cluster_.add(event.node);
  state_.resources = cluster_.total();
}

// Parked workers leave the node at once; those that run leave it with a report that has a checkpoint, or can have one.
void Experiment::on(const NodeDraining& event) {
  cluster_.drain(event.node);
  for (const TrialIndex index : std::set(parked_)) {
    Trial& trial = trials_[index];
    if (!trial.is_on(event.node)) continue;
    if (can_save(trial)) {
      ask_to_save(trial, AfterSave::pause);
    } else {
      record(DecisionKind::unpark, trial);
      tell_to_stop(trial);
    }
  }
}

void Experiment::on(const NodeLeft& event) {
  cluster_.remove(event.node);
  state_.resources = cluster_.total();
}

std::vector<checkpoint::CheckpointId> Experiment::needed_checkpoints(bool of_extended) const {
  std::vector<checkpoint::CheckpointId> needed;
  for (const Trial& trial : trials_) {
    const bool may_go_on =
        trial.status != TrialStatus::terminated || (of_extended && trial.ended_by != EndedBy::itself);
    if (may_go_on && trial.latest_checkpoint) needed.push_back(*trial.latest_checkpoint);
  }
  return needed;
}

// Handles the worker's last message, or its end without one.
void Experiment::on_last_word(Trial& trial, std::optional<Failure> failure) {
  const WorkerState was = trial.worker;
  if (was == WorkerState::killed) failure = std::exchange(trial.killed_for, std::nullopt);
  const bool expected = was == WorkerState::stopping || was == WorkerState::killed;
  if (was == WorkerState::stopping) failure.reset();  // thrown while it unwound: the worker was to stop anyway
  if (!failure && !expected) warn_about_lost_offer(trial);
  worker_is_done(trial);
  if (failure && state_.interrupted && !expected) return postpone(trial, *failure);
  if (failure && failure->is_of_node) return lose_node(trial, std::move(*failure));
  if (failure) return fail(trial, std::move(*failure));
  if (!expected) end(trial, TrialStatus::terminated);
}

// ---- Handling a result

std::string Experiment::commit_checkpoint(Trial& trial, const channel::Report& report) {
  if (report.checkpoint.empty()) return {};
  const std::string directory = trial.directory + "/" + checkpoint::checkpoint_name(trial.checkpoints_made++);
  const checkpoint::CheckpointId id =
      checkpoints_.add(trial.index, report.step, directory, report.metrics, trial.latest_checkpoint);
  continue_from(trial, id);
  actions_->push_back(
      CommitCheckpoint{id, trial.index, report.step, trial.directory + "/" + report.checkpoint, directory});
  return directory;
}

Decision Experiment::decide(Trial& trial, const Metrics& metrics) {
  bool ends = stoppers_.on_result(view_of(trial), metrics);
  try {
    ends = stop_function_ends(trial, metrics) || ends;
  } catch (const std::bad_alloc&) {
    throw;                                 // without memory nothing is decided: a restore decides again
  } catch (const std::exception& error) {  // from a user function
    return {.kind = Decision::Kind::fail, .reason = fmt::format("the stop function failed: {}", error.what())};
  }
  ask_to_stop_all(trial, kAfterResult);
  const bool is_done = is_true(metrics, result_key::done);
  trial.ended_by = is_done                           ? EndedBy::itself
                   : ends                            ? EndedBy::its_stop
                   : state_.phase == Phase::stopping ? EndedBy::all_stop
                                                     : EndedBy::itself;
  if (is_done || trial.ended_by != EndedBy::itself) return {.kind = Decision::Kind::finish};
  if (trial.stop_requested) {
    trial.ended_by = EndedBy::early_stop;
    return {.kind = Decision::Kind::stop};
  }
  const std::optional<Seconds>& limit = options_.run_config.limits.time;
  if (limit && trial.time_total_s >= limit->count())
    return {.kind = Decision::Kind::fail, .reason = ran_too_long(*limit).cause};
  return ask_scheduler(trial, metrics);
}

// Stops all trials if a stopper says so after a result or an end of the trial.
void Experiment::ask_to_stop_all(const Trial& trial, std::string_view after) {
  if (state_.phase != Phase::running || (live_.empty() && trials_to_come() == 0)) return;
  std::optional<std::string> reason;
  if (recorded_ == nullptr) {
    reason = stoppers_.stop_all();
  } else if (const Value* answer = recorded(trial.index, after)) {
    reason = answer->get<std::string>();
  }
  if (!reason) return;
  record(DecisionKind::stop_all, trial, {{std::string(after), *reason}});
  actions_->push_back(Say{fmt::format("All trials stop: {}", *reason)});
  stop_all();
}

// Asks the stoppers whose answers are recorded. Passes on their exceptions.
bool Experiment::stop_function_ends(const Trial& trial, const Metrics& metrics) {
  const auto keep = [&](Dict answer) { record(DecisionKind::stop_function, trial, std::move(answer)); };
  if (recorded_ != nullptr) {
    if (const Value* fault = recorded(trial.index, "threw")) {
      keep({{"threw", *fault}});
      throw InvalidArgument(fault->get<std::string>());
    }
    const bool ends = recorded(trial.index, "ends") != nullptr;
    if (ends) keep({{"ends", true}});
    return ends;
  }
  try {
    const bool ends = stoppers_.on_result_recorded(view_of(trial), metrics);
    if (ends) keep({{"ends", true}});
    return ends;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    keep({{"threw", std::string(error.what())}});
    throw;
  }
}

Decision Experiment::ask_scheduler(Trial& trial, const Metrics& metrics) {
  Decision decision = scheduler_->on_result(view_of(trial), metrics, *this);
  trial.ended_by = decision.kind == Decision::Kind::stop     ? EndedBy::early_stop
                   : decision.kind == Decision::Kind::finish ? EndedBy::limit
                                                             : EndedBy::itself;
  return decision;
}

void Experiment::carry_out(Trial& trial, const Decision& decision) {
  follow(decision);
  if (trial.status != TrialStatus::running) return;  // an exploit paused it
  const bool goes_on = decision.kind == Decision::Kind::go_on && !state_.interrupted;
  const bool is_changed = goes_on && decision.resources && change_resources(trial, *decision.resources);
  const bool moves = goes_on && is_leaving(trial) && (is_saved(trial) || can_save(trial));
  if (is_changed || moves) return is_saved(trial) ? restart(trial) : ask_to_save(trial, AfterSave::restart);
  if (const auto then = what_waits_for_a_checkpoint(trial, decision.kind)) return ask_to_save(trial, *then);
  switch (decision.kind) {
    case Decision::Kind::go_on:
    case Decision::Kind::save:
      return resume(trial);
    case Decision::Kind::pause:
      return pause(trial);
    case Decision::Kind::finish:
    case Decision::Kind::stop:
      return end(trial, TrialStatus::terminated);
    case Decision::Kind::fail:
      return fail(trial, {.cause = decision.reason, .may_retry = false});
  }
}

bool Experiment::can_save(const Trial& trial) const {
  return trial.offers_checkpoint && trial.reported_checkpoint.empty() && !trial.takes_over;
}

// Returns true if the trial's last result has a checkpoint.
bool Experiment::is_saved(const Trial& trial) const {
  return trial.latest_checkpoint && checkpoints_.get(*trial.latest_checkpoint).step == trial.step;
}

bool Experiment::saves_at_end() const {
  return options_.run_config.checkpoint_config.checkpoint_at_end.value_or(false);
}

// Returns the step to take after the worker has sent a checkpoint of its last result; nothing if no checkpoint is
// needed.
std::optional<AfterSave> Experiment::what_waits_for_a_checkpoint(const Trial& trial, Decision::Kind kind) const {
  if (!can_save(trial)) return std::nullopt;
  if (kind == Decision::Kind::save) return AfterSave::decide;
  const bool wanted = state_.interrupted || is_true(trial.last_result, result_key::should_checkpoint);
  const bool ends = kind == Decision::Kind::finish || kind == Decision::Kind::stop;
  if (ends) return wanted || saves_at_end() ? std::optional(AfterSave::stop) : std::nullopt;
  if (kind == Decision::Kind::pause) return wanted || !can_park(trial) ? std::optional(AfterSave::pause) : std::nullopt;
  return kind == Decision::Kind::go_on && wanted ? std::optional(AfterSave::go_on) : std::nullopt;
}

// Asks the trial's waiting worker, which may be parked, for a checkpoint.
void Experiment::ask_to_save(Trial& trial, AfterSave then) {
  record(DecisionKind::save, trial);
  trial.after_save = then;
  actions_->push_back(AnswerReport{trial.index, trial.attempt, channel::Verdict::save, {}});
  set_worker(trial, WorkerState::saving);
  limit_running(trial);
}

// Handles the last result, which counts already, when it arrives again: with its checkpoint, or from a new worker that
// reached the same step after an interruption.
void Experiment::on_saved(Trial& trial) {
  if (can_save(trial)) return ask_to_save(trial, *trial.after_save);
  if (state_.phase == Phase::stopping && trial.after_save != AfterSave::stop) return end_by_stop(trial);
  switch (*std::exchange(trial.after_save, std::nullopt)) {
    case AfterSave::go_on:
      return is_leaving(trial) && is_saved(trial) ? restart(trial) : resume(trial);
    case AfterSave::pause:
      return pause(trial);
    case AfterSave::stop:
      return end(trial, TrialStatus::terminated);
    case AfterSave::restart:
      return restart(trial);
    case AfterSave::decide:
      return carry_out(trial, ask_scheduler(trial, trial.last_result));
  }
}

// A worker whose function has returned cannot be asked for a checkpoint any more.
void Experiment::warn_about_lost_offer(const Trial& trial) {
  if (!trial.offers_checkpoint || is_saved(trial) || !saves_at_end()) return;
  actions_->push_back(
      Say{fmt::format("Warning: trial {} returned after iteration {}, and its checkpoint of that iteration was never "
                      "written: report \"{}\" as true with the last result",
                      trial.id, training_iteration(trial.last_result), result_key::done)});
}

// A name that no result has is most likely misspelt; but some metrics are reported only now and then.
void Experiment::warn_about_missing_metrics(const Metrics& metrics) {
  if (std::exchange(state_.warned, true)) return;
  const auto warn = [&](const std::string& name, const char* use) {
    if (name.empty() || metrics.contains(name)) return;
    actions_->push_back(Say{fmt::format("Warning: the first result has no \"{}\", which is {}. It has: {}", name, use,
                                        fmt::join(std::views::keys(metrics.dict()), ", "))});
  };
  for (const std::string& name : stoppers_.metrics()) warn(name, "a stop criterion");
  warn(options_.tune_config.metric.name, "the metric of the TuneConfig");
  for (const std::string& name : options_.tune_config.scheduler.held().traits().metrics) {
    if (name != options_.tune_config.metric.name) warn(name, "needed by the scheduler");
  }
  warn(options_.run_config.checkpoint_config.checkpoint_score_attribute.value_or(Objective()).name,
       "the checkpoint score attribute");
}

// Text is never compared with anything, even if it reads like a number.
void Experiment::warn_about_text(const Trial& trial, const Metrics& metrics) {
  const auto warn = [&](const std::string& name) {
    const Value* value = name.empty() ? nullptr : metrics.find(name);
    if (value == nullptr || !value->is_string() || !warned_of_text_.insert(name).second) return;
    actions_->push_back(Say{
        fmt::format("Warning: trial {} has reported \"{}\" as text, {}: it counts for nothing. Report it as a number",
                    trial.id, name, to_json(Value(std::string(base::first_bytes(value->get<std::string>(), 40)))))});
  };
  warn(options_.tune_config.metric.name);
  for (const std::string& name : stoppers_.metrics()) warn(name);
}

// Carries out the part of a decision that may concern any trial.
void Experiment::follow(const Decision& decision) {
  if (state_.phase != Phase::running) return;  // all trials are being ended
  for (const std::string& message : decision.messages) actions_->push_back(Say{message});
  if (decision.deadline)
    actions_->push_back(StartTimer{{Timer::Kind::barrier, 0, decision.deadline->number}, decision.deadline->seconds});
  for (const TrialIndex index : decision.stopped) stop_early(trials_.at(index));
  for (const Exploit& one : decision.exploits) carry_out(one);
}

// Gives other resources to a trial whose worker waits for its answer. Returns true if that takes another worker.
bool Experiment::change_resources(Trial& trial, const ResourceChange& change) {
  const Needs needs = with_total(trial.needs, change.resources);
  if (needs == trial.present_needs()) return false;
  const bool restarts = change.restart || trial.needs.of_workers || needs.total.gpus != trial.held->gpus;
  if (restarts && !is_saved(trial) && !can_save(trial)) {
    if (!std::exchange(state_.said_who_cannot_restart, true))
      actions_->push_back(
          Say{fmt::format("Warning: trial {} keeps its resources: others take a new process, and it has "
                          "sent no checkpoint with its result to continue from",
                          trial.id)});
    return false;
  }
  const std::vector<Share> before = shares_of(trial);
  release(cluster_, before);
  const bool is_free = restarts ? tune::has_room(cluster_, needs)
                                : cluster_.is_free(needs.total, resources::Only{trial.node, trial.gpus});
  is_free && !restarts ? cluster_.occupy(needs.total, trial.place()) : occupy(cluster_, before);
  if (!is_free) return false;
  record(DecisionKind::resources, trial, {{"resources", cadre::to_stored(needs.total)}, {"restart", restarts}});
  trial.changed = needs == trial.needs ? std::nullopt : std::optional(needs);
  if (restarts) return true;
  trial.held = needs.total;
  trial.untold = true;
  return false;
}

// Continues the trial from its checkpoint with the resources that it has been given, or on another node, then before
// all others: its scheduler has chosen it already.
void Experiment::restart(Trial& trial) {
  if (state_.interrupted) return interrupt(trial);
  const bool was_parked = !trial.held;
  record(DecisionKind::restart, trial);
  tell_to_stop(trial);
  begin_waiting(trial, TrialStatus::pending);
  if (is_leaving(trial) || was_parked) set_cut_off(trial);
  actions_->push_back(state_of(trial));
}

// Makes a trial continue with the resources that it would have without its scheduler.
void Experiment::take_changes_back(Trial& trial) {
  trial.untold |= trial.changed.has_value();
  trial.changed.reset();
}

// Ends a trial that waits by the scheduler's decision about another one.
void Experiment::stop_early(Trial& trial) {
  if (trial.ended()) return;
  if (trial.worker == WorkerState::saving) {  // it would wait when it is saved
    trial.ended_by = EndedBy::early_stop;
    trial.after_save = AfterSave::stop;
    return;
  }
  if (!waiting_.contains(trial.index))
    throw std::logic_error(fmt::format("the scheduler stops trial {}, which is not paused", trial.id));
  trial.ended_by = EndedBy::early_stop;
  if (trial.worker == WorkerState::parked && saves_at_end() && can_save(trial))
    return ask_to_save(trial, AfterSave::stop);
  end(trial, TrialStatus::terminated);
}

void Experiment::carry_out(const Exploit& exploit) {
  Trial& target = trials_[exploit.target];
  const Trial& donor = trials_.at(exploit.donor);
  if (target.ended() || !donor.latest_checkpoint)
    throw std::logic_error(fmt::format(
        "the scheduler lets trial {}, which has {}, continue from trial {}, which has {}", target.id,
        target.ended() ? "ended" : "not ended", donor.id, donor.latest_checkpoint ? "a checkpoint" : "no checkpoint"));
  const checkpoint::CheckpointRecord& from = checkpoints_.get(*donor.latest_checkpoint);
  // An explore function of the program is not asked again.
  const Value* config = recorded(target.index, "config");
  Config new_config = config == nullptr ? exploit.config : Config(*config);
  Dict operations;
  for (const auto& [key, operation] : exploit.operations) operations.emplace_back(key, operation);
  Dict data{{"donor", exploit.donor}, {"checkpoint", from.directory}, {"config", new_config.dict()}};
  if (const Value* made = recorded(target.index, "operations")) operations = made->dict();
  data.emplace_back("operations", std::move(operations));
  const LogExploit log{exploit.target, exploit.donor, exploit.target_iteration, training_iteration(from.metrics),
                       donor.config,   new_config};
  // The target's new lineage continues with the steps and the results of the donor's checkpoint.
  if (!target.first_config) target.first_config = target.config;
  target.config = std::move(new_config);
  target.step = from.step;
  target.last_result = from.metrics;
  target.futile_attempts = 0;
  target.backs_off = false;
  target.after_save.reset();
  target.ended_by = EndedBy::itself;  // it goes on, whatever the decision says of it
  take_changes_back(target);
  const bool needs_the_same = update_needs(target);
  add_needs(target, data);
  record(DecisionKind::exploit, target, std::move(data));
  actions_->push_back(log);
  continue_from(target, *donor.latest_checkpoint);
  const bool keeps_worker = trainable_.methods.reset_config && is_blocked(target.worker);
  if (keeps_worker && needs_the_same && can_park(target) && !state_.interrupted) {
    target.takes_over = true;
    if (target.worker == WorkerState::waiting) park(target);
  } else {
    tell_to_stop(target);
  }
  begin_waiting(target, TrialStatus::paused);
  actions_->push_back(state_of(target));
}

void Experiment::pause(Trial& trial) {
  if (state_.interrupted) {
    trial.status = TrialStatus::paused;
    return interrupt(trial);
  }
  record(DecisionKind::pause, trial);
  take_changes_back(trial);
  begin_waiting(trial, TrialStatus::paused);
  actions_->push_back(state_of(trial));
  if (would_keep_too_much(trial) || is_leaving(trial)) return tell_to_stop(trial);
  park(trial);
  const Parking& parking = options_.tune_config.parking;
  if (parking.max_workers && parked_workers() > *parking.max_workers) unpark_the_coldest();
}

void Experiment::set_worker(Trial& trial, WorkerState state) {
  if (!may_become(trial.worker, state))
    throw std::logic_error(fmt::format("the worker of trial {} was {}, and cannot be {}", trial.id,
                                       cadre::detail::enum_name(trial.worker), cadre::detail::enum_name(state)));
  if (trial.worker == WorkerState::parked) {
    trial.parked_since = 0;
    parked_.erase(trial.index);
  }
  if (state == WorkerState::parked) {
    trial.parked_since = ++state_.pauses;
    parked_.insert(trial.index);
  }
  trial.worker = state;
}

// Returns true if one more worker may be parked without ending another.
bool Experiment::can_park(const Trial& trial) const {
  const Parking& parking = options_.tune_config.parking;
  return !would_keep_too_much(trial) && !is_leaving(trial) &&
         (!parking.max_workers || parked_workers() < *parking.max_workers);
}

// Returns true if the worker, when parked, would keep GPUs from other trials, or more than it is to have.
bool Experiment::would_keep_too_much(const Trial& trial) const {
  if (!trial.shares.empty() && trial.held && *trial.held != trial.needs.total) return true;
  const double gpus = trial.held ? trial.held->gpus : trial.needs.total.gpus;
  return gpus != trial.needs.total.gpus || (gpus > 0 && !options_.tune_config.parking.with_gpus);
}

// Returns true if a node of the trial drains: nothing goes on there that can go on elsewhere.
bool Experiment::is_leaving(const Trial& trial) const {
  if (trial.worker == WorkerState::none) return false;
  return !cluster_.is_ready(trial.node) ||
         std::ranges::any_of(trial.shares, [this](const Share& share) { return !cluster_.is_ready(share.place.node); });
}

// The worker's process stays blocked in report() until it is answered.
void Experiment::park(Trial& trial) {
  release_resources(trial);
  set_worker(trial, WorkerState::parked);
}

// Ends the parked worker whose trial loses the fewest steps since its latest checkpoint, among equals the one that has
// waited longest. A worker that can still write a checkpoint is asked for it first.
void Experiment::unpark_the_coldest() {
  const auto cost = [this](const Trial& trial) {
    const std::int64_t saved = trial.latest_checkpoint ? checkpoints_.get(*trial.latest_checkpoint).step : 0;
    return std::pair(trial.step - saved, trial.parked_since);
  };
  Trial* coldest = nullptr;
  for (const TrialIndex index : parked_) {
    Trial& trial = trials_[index];
    if (coldest == nullptr || cost(trial) < cost(*coldest)) coldest = &trial;
  }
  if (coldest == nullptr) return;
  if (can_save(*coldest)) return ask_to_save(*coldest, AfterSave::pause);  // it then costs nothing to end it
  record(DecisionKind::unpark, *coldest);
  tell_to_stop(*coldest);
}

void Experiment::fail(Trial& trial, Failure failure) {
  trial.error = std::move(failure.cause);
  actions_->push_back(LogError{trial.index, trial.attempt, training_iteration(trial.last_result), trial.error});
  if (failure.may_retry && trial.stop_requested) {
    trial.error.clear();
    return stop_by_request(trial);
  }
  if (failure.may_retry && state_.phase != Phase::stopping && count_failure(trial, options_.run_config.failure_config))
    return try_again(trial);
  end(trial, TrialStatus::error);
  if (options_.run_config.failure_config.fail_fast && state_.phase != Phase::failed_fast) end_everybody();
}

void Experiment::end(Trial& trial, TrialStatus status) {
  if (status == TrialStatus::terminated && trial.ended_by == EndedBy::early_stop) status = TrialStatus::stopped;
  record(status == TrialStatus::error     ? DecisionKind::fail
         : status == TrialStatus::stopped ? DecisionKind::stop
                                          : DecisionKind::end,
         trial);
  trial.status = status;
  trial.backs_off = false;
  trial.after_save.reset();
  take_changes_back(trial);
  live_.erase(trial.index);
  end_waiting(trial);
  stoppers_.on_trial_end(view_of(trial));
  ended_ = trial.index;
  searcher_.on_trial_end(trial.index, status, trial.last_result);
  actions_->push_back(state_of(trial));
  actions_->push_back(LogEnd{trial.index, trial.status, trial.config, trial.last_result, trial.error});
  tell_to_stop(trial);
  follow(scheduler_->on_trial_end(view_of(trial), *this));
}

void Experiment::end_everybody() {
  state_.phase = Phase::failed_fast;
  for (const TrialIndex index : std::set(live_)) end(trials_[index], TrialStatus::terminated);
}

// Ends every trial without a busy worker. A trial with a busy worker ends at its next report, and the trial whose
// report is being handled is left to the caller.
void Experiment::stop_all() {
  state_.phase = Phase::stopping;
  const double grace = options_.run_config.stop_grace_period.count();
  for (const TrialIndex index : std::set(live_)) {
    Trial& trial = trials_[index];
    if (trial.worker == WorkerState::parked && saves_at_end() && can_save(trial)) {
      trial.ended_by = EndedBy::all_stop;
      ask_to_save(trial, AfterSave::stop);
    }
    if (runs_user_code(trial.worker)) {
      actions_->push_back(StartTimer{{Timer::Kind::stopping, trial.index, trial.attempt}, grace});
    } else if (trial.status != TrialStatus::running) {
      end_by_stop(trial);
    }
  }
}

// Ends a trial that would go on if not all were stopped.
void Experiment::end_by_stop(Trial& trial) {
  trial.ended_by = EndedBy::all_stop;
  end(trial, TrialStatus::terminated);
}

void Experiment::try_again(Trial& trial) {
  record(DecisionKind::retry, trial, {{"failures", trial.failures}, {"restore_failures", trial.restore_failures}});
  const double delay = base::retry_delay_s(trial.futile_attempts);
  actions_->push_back(Say{fmt::format(
      "Trial {} is tried again{} from {}", trial.id, delay > 0 ? fmt::format(" in {:g} s", delay) : "",
      trial.latest_checkpoint ? checkpoints_.get(*trial.latest_checkpoint).directory : std::string("the beginning"))});
  make_pending(trial);
  wait_before_retry(trial, delay);
}

void Experiment::wait_before_retry(Trial& trial, double delay_s) {
  if (delay_s == 0) return;
  trial.backs_off = true;
  actions_->push_back(StartTimer{{Timer::Kind::retry, trial.index, trial.attempt}, delay_s});
}

// Makes a trial go on elsewhere whose worker was lost with its node, before others that wait.
void Experiment::lose_node(Trial& trial, Failure failure) {
  if (state_.phase == Phase::stopping) return end_by_stop(trial);
  if (trial.stop_requested) return stop_by_request(trial);
  ++trial.preemption_failures;
  ++trial.futile_attempts;
  const std::int64_t most = options_.run_config.failure_config.max_preemption_failures;
  if (most >= 0 && trial.preemption_failures > most) {
    failure.may_retry = false;
    return fail(trial, std::move(failure));
  }
  record(DecisionKind::retry, trial,
         {{"failures", trial.failures},
          {"restore_failures", trial.restore_failures},
          {"preemption_failures", trial.preemption_failures}});
  set_aside(trial);
  const double delay = trial.status == TrialStatus::pending ? base::retry_delay_s(trial.futile_attempts) : 0;
  actions_->push_back(Say{fmt::format(
      "Trial {}: {}, which is no failure of the trial. It goes on{} from {}", trial.id, failure.cause,
      delay > 0 ? fmt::format(" in {:g} s", delay) : "",
      trial.latest_checkpoint ? checkpoints_.get(*trial.latest_checkpoint).directory : std::string("the beginning"))});
  wait_before_retry(trial, delay);
}

// Makes the trial start again from its latest checkpoint.
void Experiment::make_pending(Trial& trial) {
  take_changes_back(trial);
  begin_waiting(trial, TrialStatus::pending);
  actions_->push_back(state_of(trial));
}

// Ends the worker of a trial, which waits for its answer, because the experiment is interrupted.
void Experiment::interrupt(Trial& trial) {
  record(DecisionKind::interrupt, trial);
  tell_to_stop(trial);
  set_aside(trial);
}

// Makes a trial wait for another controller. One that ran goes on before all others then, whatever the scheduler
// prefers among those that wait: so it decides as if the experiment had not been interrupted.
void Experiment::set_aside(Trial& trial) {
  const bool pauses = trial.status == TrialStatus::paused || trial.after_save == AfterSave::pause;
  take_changes_back(trial);
  if (trial.after_save == AfterSave::pause || trial.after_save == AfterSave::restart) trial.after_save.reset();
  begin_waiting(trial, pauses ? TrialStatus::paused : TrialStatus::pending);
  if (!pauses) set_cut_off(trial);
  actions_->push_back(state_of(trial));
}

// Makes a trial pending whose worker failed during an interruption, without counting the failure: the interrupt may
// have ended something that the worker needs. Ends one that was to stop anyway.
void Experiment::postpone(Trial& trial, const Failure& failure) {
  const bool ends = trial.stop_requested || state_.phase == Phase::stopping;
  if (!ends) record(DecisionKind::interrupt, trial);
  actions_->push_back(
      Say{fmt::format("Trial {} failed while the experiment was being interrupted, which does not count: {}{}",
                      trial.id, failure.cause, ends ? "" : "\nIt goes on when the experiment is continued")});
  if (trial.stop_requested) return stop_by_request(trial);
  if (ends) return end_by_stop(trial);
  set_aside(trial);
}

// Tells the trial's worker to stop: a waiting worker by its answer, a busy one with its next report, which does not
// count.
void Experiment::tell_to_stop(Trial& trial) {
  if (!may_become(trial.worker, WorkerState::stopping)) return;
  if (is_blocked(trial.worker))
    actions_->push_back(
        AnswerReport{trial.index, trial.attempt, channel::Verdict::stop, std::exchange(trial.reported_checkpoint, {})});
  set_worker(trial, WorkerState::stopping);
  actions_->push_back(
      StartTimer{{Timer::Kind::stopping, trial.index, trial.attempt}, options_.run_config.stop_grace_period.count()});
}

void Experiment::kill(Trial& trial, std::optional<Failure> failure) {
  const std::string reason = failure ? failure->cause : "it has not stopped in time";
  record(DecisionKind::kill, trial, {{"reason", reason}});
  actions_->push_back(Say{fmt::format("Trial {}: its worker is ended by force: {}", trial.id, reason)});
  trial.killed_for = std::move(failure);
  set_worker(trial, WorkerState::killed);
  actions_->push_back(KillWorker{trial.index, trial.attempt});
}

std::optional<double> Experiment::time_left(const Trial& trial) const {
  const std::optional<Seconds>& limit = options_.run_config.limits.time;
  if (!limit) return std::nullopt;
  return std::max(0.0, limit->count() - trial.time_total_s);
}

// Starts the running timer of a worker that goes on.
void Experiment::limit_running(const Trial& trial) {
  const TrialLimits& limits = options_.run_config.limits;
  std::optional<double> seconds;
  if (limits.time_between_reports) seconds = limits.time_between_reports->count();
  if (const std::optional<double> left = time_left(trial)) seconds = std::min(seconds.value_or(*left), *left);
  if (seconds) actions_->push_back(StartTimer{{Timer::Kind::running, trial.index, trial.attempt}, *seconds});
}

void Experiment::worker_is_done(Trial& trial) {
  set_worker(trial, WorkerState::none);
  trial.takes_over = false;
  trial.untold = false;
  trial.killed_for.reset();
  trial.reported_checkpoint.clear();
  trial.offers_checkpoint = false;
  if (trial.started_from) checkpoints_.release(*std::exchange(trial.started_from, std::nullopt));
  release_resources(trial);
}

// Acquires what the trial was given by its scheduler, or what it needs if that is not free any more.
void Experiment::acquire_resources(Trial& trial) {
  if (trial.changed && !has_room(trial, *trial.changed)) take_changes_back(trial);
  const Needs& needs = trial.present_needs();
  trial.held = needs.total;
  holders_.insert(trial.index);
  const std::optional<resources::Only> own = own_place(trial);
  if (own && !trial.shares.empty()) return occupy(cluster_, trial.shares);
  if (own) {
    trial.gpus = cluster_.acquire(needs.total, own)->gpus;
    return;
  }
  std::vector<Share> shares = *acquire(cluster_, needs);
  trial.node = shares.front().place.node;
  trial.gpus = shares.front().place.gpus;
  trial.shares = shares.size() > 1 ? std::move(shares) : std::vector<Share>();
}

void Experiment::release_resources(Trial& trial) {
  if (!trial.held) return;
  release(cluster_, shares_of(trial));
  trial.held.reset();
  holders_.erase(trial.index);
}

void Experiment::continue_from(Trial& trial, checkpoint::CheckpointId checkpoint) {
  checkpoints_.retain(checkpoint);
  if (trial.latest_checkpoint) checkpoints_.release(*trial.latest_checkpoint);
  trial.latest_checkpoint = checkpoint;
}

void Experiment::delete_unneeded_checkpoints() {
  for (checkpoint::CheckpointRecord& record : checkpoints_.take_deletable())
    actions_->push_back(DeleteCheckpoint{record.id, std::move(record.directory)});
}

}  // namespace cadre::tune
