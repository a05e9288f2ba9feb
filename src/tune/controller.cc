#include "tune/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <ranges>
#include <set>

#include "base/directory.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/overload.h"
#include "base/random.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"
#include "run/gpus.h"
#include "run/memory_usage.h"
#include "run/object_uses.h"
#include "tune/journal.h"
#include "tune/recovery.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr auto kMemoryPeriod = std::chrono::seconds(1);
// Results are in the store when report() returns. Their lines in the result files may come later.
constexpr auto kFilesDelay = std::chrono::milliseconds(100);
constexpr std::size_t kMostWaitingBytes = std::size_t{4} << 20;

// Returns the worker's id in the engine.
engine::WorkerId worker_id(TrialIndex trial, std::int64_t attempt) {
  return std::uint64_t{trial} << 32 | static_cast<std::uint32_t>(attempt);
}

// Rejects a message that only a member of a worker group may send; returns true if `event` is one.
bool turn_away(engine::Engine& engine, const engine::Event& event) {
  const auto* received = std::get_if<engine::Received>(&event);
  if (received == nullptr) return false;
  const std::string error = "a trial is no member of a worker group";
  if (std::holds_alternative<channel::StoreRequest>(received->message)) {
    engine.reply(received->worker, channel::StoreReply{.error = error});
  } else if (std::holds_alternative<channel::Request>(received->message)) {
    engine.reply(received->worker, channel::Reply{.error = error});
  } else {
    return std::holds_alternative<channel::Notice>(received->message);
  }
  return true;
}

Event to_event(engine::Event&& event) {
  const auto trial_of = [](engine::WorkerId worker) { return static_cast<TrialIndex>(worker >> 32); };
  const auto attempt_of = [](engine::WorkerId worker) { return static_cast<std::int64_t>(worker & 0xffffffffu); };
  if (auto* exited = std::get_if<engine::Exited>(&event))
    return WorkerEnded{trial_of(exited->worker), attempt_of(exited->worker), std::move(exited->exit)};
  auto& [worker, message] = std::get<engine::Received>(event);
  const TrialIndex trial = trial_of(worker);
  const std::int64_t attempt = attempt_of(worker);
  return std::visit(
      base::Overload{
          [&](channel::Report& report) -> Event { return ResultReported{trial, attempt, std::move(report)}; },
          [&](channel::Finished&) -> Event { return FunctionReturned{trial, attempt}; },
          [&](channel::Declined&) -> Event { return WorkerDeclined{trial, attempt}; },
          [&](channel::Failed& failed) -> Event { return FunctionThrew{trial, attempt, std::move(failed.message)}; },
          [](auto&) -> Event { throw std::logic_error("what only a worker group says was not turned away"); }},
      message);
}

// Calls `act` at the end of a scope, also when it is left by an exception.
template <class Act>
class AtTheEnd {
 public:
  explicit AtTheEnd(Act act) : act_(std::move(act)) {}
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { act_(); }

 private:
  Act act_;
};

// Returns true if a loss of power must not undo the action once a worker has been answered.
bool must_be_synced(const Action& action) {
  if (std::holds_alternative<LogExploit>(action)) return true;
  const auto* answer = std::get_if<AnswerReport>(&action);
  return answer != nullptr && answer->verdict == channel::Verdict::stop;
}

}  // namespace

Controller::Controller(Setting setting, Experiment& experiment, RunningTime& running_time,
                       store::ExperimentStore& store, engine::Engine& engine, Console& console)
    : setting_(std::move(setting)),
      experiment_(experiment),
      running_time_(running_time),
      store_(store),
      engine_(engine),
      clock_(engine),
      console_(console),
      interrupts_(engine),
      files_(setting_.directory, experiment, logs_exploits(setting_.options.tune_config.scheduler),
             setting_.options.run_config.loggers),
      callbacks_(setting_.options.run_config.callbacks, experiment, setting_.directory, setting_.trainable.name),
      snapshots_(store),
      file_worker_(setting_.directory, [&engine] { engine.wake(); }),
      publishing_({.directory = setting_.directory,
                   .config = setting_.options.run_config.publish_config,
                   .publication = setting_.publication,
                   .wake = [&engine] { engine.wake(); },
                   .say = [&console](const std::string& text) { console.say(text); }}) {}

void Controller::run() {
  const auto resumable = [this](const Error& error) {
    return fmt::format("the experiment is interrupted: {}. Continue it with Tuner::restore from {}", error.what(),
                       setting_.directory.string());
  };
  const AtTheEnd end_callbacks([this] {
    callbacks_.end();
    say_callback_warnings();
  });
  try {
    take_turns();
  } catch (const EngineError& error) {
    throw EngineError(resumable(error));
  } catch (const OutOfSpace& error) {
    throw OutOfSpace(resumable(error));
  } catch (const StorageError& error) {
    throw StorageError(resumable(error));
  } catch (const fs::filesystem_error& error) {
    throw StorageError(resumable(StorageError(error.what())));
  }
}

void Controller::recover() {
  Recovered recovered = tune::recover(store_, snapshots_, {experiment_, files_, running_time_}, setting_.directory,
                                      setting_.allow_divergence);
  last_event_ = recovered.last_event;
  callbacks_.load_state(store_.callback_states());
  lost_checkpoints_ = std::move(recovered.lost_checkpoints);
  for (auto& [id, directory] : recovered.unsealed_checkpoints) file_worker_.seal(id, std::move(directory));
  for (const std::string& note : recovered.notes) console_.say(note);
  diverged_ = recovered.diverged;
}

void Controller::take_turns() {
  const double before = running_time_.seconds();
  running_time_.begin_session(engine_.wall_seconds());
  callbacks_.setup(info());
  take_turn({ControllerStarted{.resources = engine_.resources(),
                               .errored = setting_.errored,
                               .lost_checkpoints = lost_checkpoints_,
                               .running_time_s = before}});
  publishing_.begin(diverged_);  // a trial that has ended by now cannot change any more
  while (!experiment_.finished()) {
    take_turn(next_events());
    take_turn(due_timers());
    const auto now = engine_.now();
    if (const auto due = store_.sync_due(); due && now >= *due) sync();
    if (files_due_ && now >= *files_due_) write_result_files();
    console_.tick(now);
    for (const std::string& error : file_worker_.take_errors()) console_.say("Warning: " + error);
    for (const std::string& warning : files_.take_warnings()) console_.say("Warning: " + warning);
    say_callback_warnings();
    publishing_.tick([this] { return checkpoints_to_keep(); });
  }
  file_worker_.finish_sealing();
  std::vector<Event> last;
  take_sealed(last);
  take_turn(std::move(last));
  write_result_files();
  patiently([&] { take_snapshot(); });
  if (!experiment_.interrupted()) patiently([&] { store_.finish(); });
  sync();
  const int signal = interrupts_.signal();
  publishing_.finish([&] { return interrupts_.signal() != signal; }, checkpoints_to_keep());
}

std::vector<Event> Controller::next_events() {
  std::vector<engine::Event> arrived = clock_.wait(time_to_wait());
  std::vector<Event> events;
  if (const double seconds = clock_.take_lost_seconds(); seconds != 0) events.emplace_back(TimeLost{seconds});
  take_interrupt(events);  // first: failures around an interrupt do not count
  for (engine::Event& event : signalled_ends_.pass(std::move(arrived), told_of_interrupt_, engine_.now())) {
    if (turn_away(engine_, event)) continue;
    const auto* exited = std::get_if<engine::Exited>(&event);
    if (exited != nullptr && exited->exit.kind == engine::Exit::Kind::lost) {
      // The trial has not failed, and no failure is recorded: a restore continues from the store.
      take_turn(std::move(events));
      throw EngineError("a worker " + engine::to_string(exited->exit));
    }
    events.push_back(checked(to_event(std::move(event))));
  }
  take_sealed(events);
  if (watches_memory()) watch_memory(events);
  return events;
}

// Called after the events that had arrived were handled: a report that came in time has restarted its trial's timer.
std::vector<Event> Controller::due_timers() {
  std::vector<Event> events;
  if (signalled_ends_.due()) return events;
  for (const Timer& timer : timers_.take_due(clock_.looked())) {
    if (experiment_.awaits(timer)) events.emplace_back(TimerFired{timer});
  }
  return events;
}

void Controller::take_interrupt(std::vector<Event>& events) {
  if (interrupts_.signal() == 0 || std::exchange(told_of_interrupt_, true)) return;
  console_.say(
      fmt::format("Interrupted by SIG{}: trials stop at their next report. Once more ends them at once; "
                  "what they have reported is saved either way.",
                  ::sigabbrev_np(interrupts_.signal())));
  events.emplace_back(ExperimentInterrupted{});
}

// Only parked workers can give memory back.
bool Controller::watches_memory() const {
  return experiment_.parked_workers() > 0 && setting_.options.tune_config.parking.min_free_memory > 0;
}

void Controller::watch_memory(std::vector<Event>& events) {
  if (engine_.now() < next_look_at_memory_) return;
  next_look_at_memory_ = engine_.now() + kMemoryPeriod;
  if (run::free_memory() < setting_.options.tune_config.parking.min_free_memory) events.emplace_back(MemoryRunsShort{});
}

void Controller::take_sealed(std::vector<Event>& events) {
  CheckpointsSynced synced;
  for (auto& [id, files] : file_worker_.take_sealed()) {
    synced.checkpoints.push_back(id);
    sealed_[id] = std::move(files);
  }
  if (!synced.checkpoints.empty()) events.emplace_back(std::move(synced));
}

// Replaces a report whose checkpoint is not a directory of its own by a failure of the trial, before anything relies on
// it.
Event Controller::checked(Event event) {
  const auto* result = std::get_if<ResultReported>(&event);
  if (result == nullptr || result->report.checkpoint.empty()) return event;
  const std::string& name = result->report.checkpoint;
  const fs::path directory = setting_.directory / experiment_.trials().at(result->trial).directory;
  std::error_code unusable;  // a name may be too long for any file
  if (run::is_reporting_name(name) && fs::is_directory(fs::symlink_status(directory / name, unusable))) return event;
  engine_.kill(worker_id(result->trial, result->attempt));
  return FunctionThrew{
      result->trial, result->attempt,
      "the directory \"" + name + "\" that was reported as a checkpoint is none in " + directory.string()};
}

void Controller::take_turn(std::vector<Event> events) {
  if (events.empty()) return;
  callbacks_.step_begins();
  std::vector<Step> turn;
  for (Event& event : events) {
    auto* result = std::get_if<ResultReported>(&event);
    const bool repeated = result != nullptr && experiment_.is_repeated(*result);
    if (result != nullptr && experiment_.counts(*result)) callbacks_.see(*result);
    if (repeated && experiment_.is_saved_result(*result))  // as changed by callbacks
      result->report.metrics = experiment_.trials().at(result->trial).last_result;
    Step& step = turn.emplace_back(Step{std::move(event), engine_.wall_seconds(), repeated});
    experiment_.handle(step.event, step.actions);
    running_time_.see(step.time);
    if (const auto* lost = std::get_if<TimeLost>(&step.event)) running_time_.leave_out(lost->seconds);
  }
  console_.changed();
  const std::optional<std::string> callback_states = callbacks_.changed_state();
  patiently([&] { write(turn, callback_states); });
  sealed_.clear();
  const auto actions = turn | std::views::transform(&Step::actions) | std::views::join;
  if (std::ranges::any_of(actions, must_be_synced)) sync();
  for (const Action& action : actions) {
    if (const auto* report = std::get_if<AnswerReport>(&action)) answer(*report);  // workers go on meanwhile
  }
  for (const Step& step : turn) {
    for (const Action& action : step.actions) patiently([&] { files_.log(action, step.time); });
  }
  patiently([&] { files_.flush_urgent(); });
  if (files_.waiting_bytes() > kMostWaitingBytes) write_result_files();
  if (!files_due_) files_due_ = engine_.now() + kFilesDelay;
  for (const Action& action : actions) {
    perform(action);
    callbacks_.see(action);
  }
  for (const Step& step : turn) {
    if (const auto* ended = std::get_if<WorkerEnded>(&step.event)) {
      console_.worker_ended(ended->trial);
      discard_half_checkpoints(*ended);
    }
  }
  for (const Step& step : turn) snapshots_.see(step.event, step.actions);
  if (snapshots_.due(experiment_)) patiently([&] { take_snapshot(); });
  callbacks_.step_ends();
}

template <class Act>
void Controller::patiently(Act act) {
  for (bool told = false;; told = true) {
    try {
      act();
      if (told) console_.say("There is space again; the experiment goes on.");
      return;
    } catch (const OutOfSpace& error) {
      if (interrupts_.signal() != 0) throw;
      if (!told)
        console_.say_now(
            fmt::format("The disk is full: {}. Trials wait in report() until there is space.", error.what()));
      run::Interrupts::sleep(std::chrono::seconds(1));
    }
  }
}

std::optional<std::chrono::nanoseconds> Controller::time_to_wait() const {
  std::optional<engine::Engine::Clock::time_point> until = console_.next_tick();
  if (const auto due = store_.sync_due(); due && (!until || *due < *until)) until = due;
  if (files_due_ && (!until || *files_due_ < *until)) until = files_due_;
  if (const auto due = timers_.next(); due && (!until || clock_.on_engine(*due) < *until))
    until = clock_.on_engine(*due);
  if (watches_memory() && (!until || next_look_at_memory_ < *until)) until = next_look_at_memory_;
  if (const auto due = signalled_ends_.due(); due && (!until || *due < *until)) until = due;
  if (!until) return std::nullopt;
  return std::max(std::chrono::nanoseconds(*until - engine_.now()), std::chrono::nanoseconds(0));
}

void Controller::sync() {
  patiently([&] { store_.sync(); });
  for (auto& [id, directory] : std::exchange(to_delete_, {})) {
    if (publishing_.takes_over_removal(directory)) {
      file_worker_.forget(id);
    } else {
      file_worker_.remove(id, std::move(directory));
    }
  }
}

// ---- The transaction

void Controller::write(const std::vector<Step>& turn, const std::optional<std::string>& callback_states) {
  try {
    if (callback_states) store_.put_callback_states(*callback_states);
    for (const Step& step : turn) {
      last_event_ = record(store_, step.event, step.time, step.repeated);
      for (const Action& action : step.actions) prepare(action, last_event_);
    }
    store_.commit();
  } catch (...) {
    store_.roll_back();  // the failure may have been a directory that could not be renamed
    throw;
  }
}

void Controller::prepare(const Action& action, std::int64_t cause) {
  std::visit(
      base::Overload{
          [&](const RecordDecision& decision) {
            store_.add(store::DecisionRow{cause, std::string(to_string(decision.kind)), decision.trial,
                                          base::to_json(decision.data)});
          },
          [&](const SaveTrial& save) {
            const Trial& trial = experiment_.trials().at(save.trial);
            run::write_objects(setting_.directory,
                               run::held_objects(run::object_uses(trial.config.value())));  // drawn or explored values
            store_.put(to_row(trial));
          },
          [&](const CommitCheckpoint& checkpoint) {
            run::commit_directory(setting_.directory, checkpoint.from, checkpoint.directory);
            store_.add(store::CheckpointRow{checkpoint.id, checkpoint.trial, checkpoint.step, checkpoint.directory});
          },
          [&](const MarkSynced& mark) { store_.set_checkpoint_synced(mark.id, base::to_json(sealed_.at(mark.id))); },
          [&](const DeleteCheckpoint& checkpoint) { store_.remove_checkpoint(checkpoint.id); }, [](const auto&) {}},
      action);
}

// ---- After the commit

void Controller::perform(const Action& action) {
  console_.show(action);
  std::visit(
      base::Overload{
          [&](const Launch& what) { launch(what); }, [&](const TakeOver& what) { take_over(what); },
          [&](const CommitCheckpoint& checkpoint) { file_worker_.seal(checkpoint.id, checkpoint.directory); },
          [&](const DeleteCheckpoint& checkpoint) { to_delete_.emplace_back(checkpoint.id, checkpoint.directory); },
          [&](const DiscardDirectory& discard) { file_worker_.remove(discard.directory); },
          [&](const KillWorker& kill) { engine_.kill(worker_id(kill.trial, kill.attempt)); },
          [&](const StartTimer& start) {
            const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(start.seconds));
            timers_.start(start.timer, clock_.now() + time);
          },
          [](const auto&) {}},
      action);
}

void Controller::answer(const AnswerReport& answer) {
  const fs::path checkpoint = answer.checkpoint.empty() ? fs::path() : setting_.directory / answer.checkpoint;
  engine_.answer(worker_id(answer.trial, answer.attempt), {answer.verdict, checkpoint.string(), {}});
}

TrialAssignment Controller::assignment_of(const Launch& launch) const {
  const Trial& trial = experiment_.trials().at(launch.trial);
  const fs::path directory = setting_.directory / trial.directory;
  const CheckpointConfig& checkpoints = setting_.options.run_config.checkpoint_config;
  return {.experiment_name = setting_.experiment_name,
          .trial = trial.index,
          .trial_id = trial.id,
          .trial_name = setting_.trainable.name + "_" + trial.id,
          .trial_directory = directory.string(),
          .attempt = launch.attempt,
          .config = launch.config,
          .parameters = setting_.trainable.parameters,
          .metric = setting_.options.tune_config.metric.name,
          .checkpoint = launch.checkpoint.empty() ? "" : (setting_.directory / launch.checkpoint).string(),
          .checkpoint_metrics = launch.checkpoint_metrics,
          .step = launch.step,
          .seed = static_cast<std::int64_t>(setting_.options.tune_config.seed),
          .resources = trial.needs.total,
          .worker_resources = trial.needs.of_workers,
          .checkpoint_frequency = checkpoints.checkpoint_frequency.value_or(0),
          .checkpoint_at_end = checkpoints.checkpoint_at_end.value_or(false),
          .runs_in_directory = setting_.options.run_config.chdir_to_trial_dir,
          .visible_devices =
              engine_.resources().gpus > 0 ? std::optional(run::visible_devices(launch.gpus)) : std::nullopt};
}

void Controller::launch(const Launch& launch) {
  const Trial& trial = experiment_.trials().at(launch.trial);
  if (launch.attempt == 1) remove_forgotten_checkpoints(trial);
  engine_.start(worker_id(launch.trial, launch.attempt),
                {.assignment = {setting_.trainable.name, to_value(assignment_of(launch))},
                 .directory = setting_.directory / trial.directory,
                 .cpus = trial.needs.own_cpus,
                 .memory_bytes = setting_.options.run_config.limits.memory_bytes,
                 .starts_workers = trial.needs.of_workers.has_value()});
}

// Removes checkpoint directories of a trial of the same name, whose rows the store lost in a loss of power.
void Controller::remove_forgotten_checkpoints(const Trial& trial) {
  for (const std::string& name : base::list_directory(setting_.directory / trial.directory)) {
    if (!run::is_name_of_checkpoint(name)) continue;
    base::remove_inside(setting_.directory, {trial.directory + "/" + name, "the directory of a trial"});
  }
}

void Controller::take_over(const TakeOver& take_over) {
  const Launch& start = take_over.start;
  engine_.answer(worker_id(start.trial, start.attempt),
                 {channel::Verdict::take_over, "", to_value(assignment_of(start))});
}

// Removes directories that the worker was about to report when it died. A worker that ended by itself has cleaned up
// already.
void Controller::discard_half_checkpoints(const WorkerEnded& ended) {
  if (ended.exit.kind == engine::Exit::Kind::code && ended.exit.value == 0) return;
  const fs::path trial = experiment_.trials().at(ended.trial).directory;
  if (!fs::is_directory(setting_.directory / trial)) return;
  const std::string prefix = run::reporting_prefix(ended.attempt);
  for (const std::string& name : base::list_directory(setting_.directory / trial)) {
    if (name.starts_with(prefix)) file_worker_.remove(trial / name);
  }
}

void Controller::say_callback_warnings() {
  for (const std::string& warning : callbacks_.take_warnings()) console_.say("Warning: " + warning);
}

// Returns the checkpoints that trials may continue from, and the latest one of every trial for the user.
std::set<std::string> Controller::checkpoints_to_keep() const {
  std::vector<run::CheckpointId> needed = experiment_.needed_checkpoints();
  for (const Trial& trial : experiment_.trials()) {
    if (trial.latest_checkpoint) needed.push_back(*trial.latest_checkpoint);
  }
  std::set<std::string> directories;
  const run::CheckpointRegistry& registry = experiment_.checkpoint_registry();
  for (const run::CheckpointId id : needed) {
    if (registry.contains(id)) directories.insert(registry.get(id).directory);
  }
  return directories;
}

ExperimentInfo Controller::info() const {
  const auto& [space, tune, run] = setting_.options;
  return {.name = setting_.experiment_name,
          .path = setting_.directory,
          .stop = run.stop,
          .num_samples = tune.num_samples,
          .total_num_samples = static_cast<std::int64_t>(experiment_.trials().size()) + experiment_.trials_to_come(),
          .time_budget = tune.time_budget};
}

// ---- Result files and snapshots

void Controller::write_result_files() {
  patiently([&] { files_.flush(); });
  files_due_.reset();
}

void Controller::take_snapshot() {
  files_.flush();
  Snapshots::Place place{.event = last_event_};
  for (const auto& [id, directory] : to_delete_) place.deletions.push_back(directory);
  std::ranges::copy(file_worker_.deletions(), std::back_inserter(place.deletions));
  std::ranges::copy(publishing_.removals(), std::back_inserter(place.deletions));
  snapshots_.take({experiment_, files_, running_time_}, place);
}

}  // namespace cadre::tune
