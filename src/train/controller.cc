#include "train/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/overload.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"
#include "run/resource_ledger.h"
#include "train/assignment.h"
#include "train/capacity.h"
#include "train/journal.h"
#include "train/part_check.h"
#include "train/recovery.h"
#include "train/validator.h"
#include "train/worker_ids.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

constexpr run::CheckpointId kNoCheckpoint = 0;

// Moves the entries of `other` that `directory` lacks, and removes `other`. Safe to repeat after an interruption.
void merge_into(const fs::path& directory, const fs::path& other) {
  std::error_code unreadable;
  if (!fs::is_directory(other, unreadable)) return;
  for (const std::string& name : base::list_directory(other)) {
    const fs::file_status there = fs::symlink_status(directory / name, unreadable);
    if (!fs::exists(there)) {
      base::rename(other / name, directory / name);
    } else if (fs::is_directory(there) && fs::is_directory(fs::symlink_status(other / name, unreadable))) {
      merge_into(directory / name, other / name);
    }
  }
  base::remove_tree(other);
}

}  // namespace

Controller::Controller(const Description& description, fs::path directory, Run& run, store::ExperimentStore& store,
                       engine::Engine& engine, run::ParentRun* parent, std::optional<publish::Publication> publication)
    : description_(description),
      directory_(std::move(directory)),
      run_(run),
      store_(store),
      engine_(engine),
      clock_(engine),
      parent_(parent),
      interrupts_(engine),
      files_(directory_, description.options),
      console_(directory_, description.options.run_config, engine.now()),
      callbacks_(description.options.run_config.callbacks),
      file_worker_(directory_, [&engine] { engine.wake(); }),
      uploader_([&engine] { engine.wake(); }),
      publishing_({.directory = directory_,
                   .config = description.options.run_config.publish_config,
                   .publication = std::move(publication),
                   .wake = [&engine] { engine.wake(); },
                   .say = [this](const std::string& text) { console_.say(text); }}) {}

void Controller::recover() {
  // The result files are rewritten completely from the store.
  Recovered recovered =
      train::recover(store_, run_, directory_,
                     [this](const Event& event, const Actions& actions, double time) { log(event, actions, time); });
  last_event_ = recovered.last_event;
  beginning_.lost_checkpoints = std::move(recovered.lost_checkpoints);
  beginning_.lost_uploads = std::move(recovered.lost_uploads);
  for (auto& [id, directory] : recovered.unsealed_checkpoints) file_worker_.seal(id, std::move(directory));
  for (const std::string& note : recovered.notes) console_.say(note);
}

void Controller::run() {
  const auto resumable = [this](const Error& error) {
    return fmt::format("the training run is interrupted: {}. Continue it with Trainer::restore from {}", error.what(),
                       directory_.string());
  };
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

void Controller::take_turns() {
  patiently([&] { files_.write_params(); });
  callbacks_.on_start(context());
  say_callback_warnings();
  std::vector<Event> first;
  look_at_resources(first);
  beginning_.machine = engine_.resources();
  beginning_.hostname = base::host_name();
  first.emplace_back(beginning_);
  take_turn(std::move(first));
  publishing_.begin(false);
  while (!run_.finished()) {
    take_turn(next_events());
    take_turn(due_timers());
    reply_about_checkpoints();
    if (const auto due = store_.sync_due(); due && engine_.now() >= *due) sync();
    const auto now = engine_.now();
    if (const auto& due = files_.due(); due && now >= *due) write_result_files();
    if (const auto& due = console_.worker_output_due(); due && now >= *due) console_.show_worker_output(false, now);
    for (const std::string& error : file_worker_.take_errors()) console_.say("Warning: " + error);
    publishing_.tick([this] { return checkpoints_to_keep(); });
  }
  file_worker_.finish_sealing();
  std::vector<Event> last;
  take_sealed(last);
  take_turn(std::move(last));
  write_result_files();
  console_.show_worker_output(true, engine_.now());
  if (run_.status() == RunStatus::finished) patiently([&] { store_.finish(); });
  sync();
  remove_leftovers();
  callbacks_.on_end(context());
  say_callback_warnings();
  const int signal = interrupts_.signal();
  publishing_.finish([&] { return interrupts_.signal() != signal; }, checkpoints_to_keep());
}

// ---- Events

std::vector<Event> Controller::next_events() {
  std::vector<Event> events = std::exchange(forwarded_, {});
  std::vector<engine::Event> arrived = clock_.wait(events.empty() ? time_to_wait() : std::chrono::nanoseconds(0));
  take_interrupt(events);  // first, so that failures caused by the signal are not blamed on a rank
  for (engine::Event& event : signalled_ends_.pass(std::move(arrived), told_of_interrupt_, engine_.now()))
    std::visit([&](auto& content) { take(std::move(content), events); }, event);
  take_sealed(events);
  take_uploads(events);
  look_at_resources(events);
  reply(key_values_.expire(clock_.looked()));
  return events;
}

// Returns the timers that are due. Called after the messages that arrived in time were handled, because they stop or
// restart timers.
std::vector<Event> Controller::due_timers() {
  std::vector<Event> events;
  if (signalled_ends_.due()) return events;
  const auto looked = clock_.looked();
  if (auto broke = barrier_.expire(looked)) events.push_back(*std::move(broke));
  for (auto it = timers_.begin(); it != timers_.end();) {
    const auto [due, timer] = it->second;
    if (due > looked && run_.awaits(timer)) {
      ++it;
      continue;
    }
    if (run_.awaits(timer)) events.emplace_back(TimerFired{timer});
    it = timers_.erase(it);
  }
  return events;
}

void Controller::take_interrupt(std::vector<Event>& events) {
  if (interrupts_.signal() == 0 || std::exchange(told_of_interrupt_, true)) return;
  console_.say(
      fmt::format("Interrupted by SIG{}: workers stop at their next report. Once more ends them at once; what was "
                  "reported is saved either way.",
                  ::sigabbrev_np(interrupts_.signal())));
  events.emplace_back(RunInterrupted{});
}

void Controller::take(engine::Received received, std::vector<Event>& events) {
  if (is_validator(received.worker)) return take_from_validator(received.worker, std::move(received.message), events);
  const Rank rank = rank_of(received.worker);
  const std::int64_t attempt = attempt_of(received.worker);
  const auto add = [&](std::optional<Event> event) {
    if (event) events.push_back(*std::move(event));
  };
  std::visit(
      base::Overload{
          [&](channel::Report& report) { take(std::move(report), rank, attempt, events); },
          [&](channel::Finished& finished) {
            add(FunctionReturned{rank, attempt, std::move(finished.value)});
            if (run_.is_present(attempt)) add(barrier_.returned(rank));
          },
          [&](channel::Failed& failed) { add(FunctionThrew{rank, attempt, std::move(failed.message)}); },
          [&](channel::Declined&) { add(FunctionThrew{rank, attempt, "the worker has declined"}); },
          [&](channel::StoreRequest& request) { reply(key_values_.handle(received.worker, request, clock_.now())); },
          [&](channel::Request& request) {
            try {
              questions_.ask(received.worker, to_checkpoint_question(request.content), clock_.now());
            } catch (const Error& error) {
              engine_.reply(received.worker, channel::Reply{.error = error.what()});
            }
          },
          [&](channel::Notice& notice) { take(notice, rank, attempt, events); }},
      received.message);
}

void Controller::take(engine::Exited exited, std::vector<Event>& events) {
  if (exited.exit.kind == engine::Exit::Kind::lost) {
    // Not a rank's fault, and no rank is recorded as failed: a restore continues from the present state of the store.
    take_turn(std::move(events));
    throw EngineError("a worker " + engine::to_string(exited.exit));
  }
  if (is_validator(exited.worker)) {
    events.emplace_back(
        ValidatorEnded{checkpoint_of(exited.worker), validator_attempt_of(exited.worker), std::move(exited.exit)});
    return;
  }
  events.emplace_back(WorkerEnded{rank_of(exited.worker), attempt_of(exited.worker), std::move(exited.exit)});
}

std::optional<ValidatorLacksWorkers> Controller::lacks_workers(const channel::Message& message) {
  const auto* notice = std::get_if<channel::Notice>(&message);
  if (notice == nullptr) return std::nullopt;
  try {
    const Notice said = to_notice(notice->content);
    const auto* lacks = std::get_if<ValidatorLacksWorkers>(&said);
    return lacks == nullptr ? std::nullopt : std::optional(*lacks);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void Controller::take_from_validator(engine::WorkerId worker, channel::Message message, std::vector<Event>& events) {
  const run::CheckpointId checkpoint = checkpoint_of(worker);
  const std::int64_t attempt = validator_attempt_of(worker);
  if (auto* finished = std::get_if<channel::Finished>(&message)) {
    try {
      events.emplace_back(ValidatorReturned{checkpoint, attempt, Metrics(finished->value)});
    } catch (const Error& error) {
      events.emplace_back(ValidatorThrew{checkpoint, attempt, error.what()});
    }
  } else if (auto* failed = std::get_if<channel::Failed>(&message)) {
    events.emplace_back(ValidatorThrew{checkpoint, attempt, std::move(failed->message)});
  } else if (auto lacks = lacks_workers(message)) {
    events.emplace_back(ValidatorThrew{checkpoint, attempt, std::move(lacks->error), /*is_hopeless=*/true});
  } else {
    engine_.kill(worker);
    events.emplace_back(ValidatorThrew{checkpoint, attempt, "it has sent what no validator sends"});
  }
}

void Controller::look_at_resources(std::vector<Event>& events) {
  const ScalingConfig& scaling = description_.options.scaling_config;
  const auto now = engine_.now();
  if (!scaling.num_workers.is_elastic() || (next_look_ && now < *next_look_)) return;
  Seconds pause = scaling.elastic_resize_monitor_interval;
  if (run_.status() == RunStatus::starved) pause = std::min<Seconds>(pause, std::chrono::seconds(1));
  next_look_ = now + std::chrono::duration_cast<std::chrono::nanoseconds>(pause);
  const std::int64_t workers = capacity(engine_.resources(), scaling);
  if (std::exchange(capacity_, workers) != workers) events.emplace_back(ResourcesSeen{workers, engine_.resources()});
}

// Returns why the ranks' parts cannot become a checkpoint. Checked once all have reported, so that the result does not
// depend on their order.
std::optional<std::string> Controller::fault_of_group(const GroupCheckpoint& checkpoint) const {
  try {
    check_together(checkpoint, directory_, run_.checkpoints());
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

// Fails a rank whose report cannot be a checkpoint, before the core receives it.
void Controller::take(channel::Report report, Rank rank, std::int64_t attempt, std::vector<Event>& events) {
  const engine::WorkerId worker = worker_id(rank, attempt);
  if (!run_.is_present(attempt)) {  // its group is being stopped
    if (run::is_reporting_name(report.checkpoint)) file_worker_.remove(report.checkpoint);
    return engine_.answer(worker, {.verdict = channel::Verdict::stop});
  }
  try {
    PartReport said = part_in(report, rank);
    if (said.part) check_part(*said.part, directory_);
    auto event = barrier_.reported(rank, {report.step, std::move(report.metrics), std::move(said)}, clock_.now());
    if (!event) return;
    if (auto* joined = std::get_if<GroupReported>(&*event)) {
      const auto is_borrowed = [](const CheckpointPart& part) { return part.kind == CheckpointPart::Kind::borrowed; };
      GroupCheckpoint& checkpoint = joined->checkpoint;
      checkpoint.waits |= parent_ != nullptr;  // a parent receives result and checkpoint together
      checkpoint.upload = std::ranges::any_of(checkpoint.parts, is_borrowed);
      if (auto fault = fault_of_group(checkpoint)) event = GroupBroke{attempt, *std::move(fault)};
    }
    events.push_back(*std::move(event));
  } catch (const Error& error) {
    engine_.kill(worker);
    events.emplace_back(FunctionThrew{rank, attempt, error.what()});
  }
}

void Controller::take(const channel::Notice& notice, Rank rank, std::int64_t attempt, std::vector<Event>& events) {
  const auto end_promise = [&](PromiseEnd end) {
    try {
      if (end.error.empty()) {
        const CheckpointPart part{.kind = CheckpointPart::Kind::in_place, .path = end.path};
        check_part(part, directory_);
        check_together({.parts = {part}}, directory_, run_.checkpoints());
      }
    } catch (const Error& error) {
      end.error = error.what();
    }
    events.emplace_back(PromiseEnded{rank, attempt, std::move(end)});
  };
  try {
    const Notice said = to_notice(notice.content);
    if (const auto* end = std::get_if<PromiseEnd>(&said)) {
      end_promise(*end);
    } else if (std::holds_alternative<FunctionBegins>(said) && std::exchange(begun_attempt_, attempt) != attempt) {
      events.emplace_back(GroupBegan{attempt});
    }
  } catch (const Error& error) {
    engine_.kill(worker_id(rank, attempt));
    events.emplace_back(FunctionThrew{rank, attempt, error.what()});
  }
}

void Controller::take_uploads(std::vector<Event>& events) {
  for (run::Uploader::Outcome& outcome : uploader_.take_outcomes()) {
    if (outcome.error.empty()) {
      events.emplace_back(CheckpointUploaded{outcome.number});
    } else {
      events.emplace_back(UploadFailed{outcome.number, std::move(outcome.error), outcome.again});
    }
  }
}

void Controller::take_sealed(std::vector<Event>& events) {
  CheckpointsSynced synced;
  for (auto& [id, files] : file_worker_.take_sealed()) {
    synced.checkpoints.push_back(id);
    sealed_[id] = std::move(files);
  }
  if (!synced.checkpoints.empty()) events.emplace_back(std::move(synced));
}

std::optional<std::chrono::nanoseconds> Controller::time_to_wait() const {
  std::optional<engine::Engine::Clock::time_point> until = store_.sync_due();
  const auto see = [&](std::optional<engine::Engine::Clock::time_point> due) {
    if (due && (!until || *due < *until)) until = due;
  };
  const auto see_awake = [&](std::optional<run::AwakeClock::TimePoint> due) {
    if (due) see(clock_.on_engine(*due));
  };
  see_awake(barrier_.deadline());
  see_awake(key_values_.next_deadline());
  see_awake(questions_.next_deadline());
  see(next_look_);
  see(files_.due());
  see(console_.worker_output_due());
  see(signalled_ends_.due());
  for (const auto& [kind, timer] : timers_) see_awake(timer.first);
  if (!until) return std::nullopt;
  return std::max(std::chrono::nanoseconds(*until - engine_.now()), std::chrono::nanoseconds(0));
}

// ---- A turn

void Controller::take_turn(std::vector<Event> events) {
  if (events.empty()) return;
  std::vector<Step> turn;
  for (Event& event : events) {
    const auto* report = std::get_if<GroupReported>(&event);
    const bool repeated = report != nullptr && !run_.counts(*report);
    Step& step = turn.emplace_back(Step{std::move(event), engine_.wall_seconds(), repeated});
    run_.handle(step.event, step.actions);
  }
  patiently([&] { write(turn); });
  sealed_.clear();
  const auto actions = turn | std::views::transform(&Step::actions) | std::views::join;
  const auto stops = [](const Action& action) {
    const auto* answer = std::get_if<AnswerGroup>(&action);
    return answer != nullptr && answer->stop;
  };
  if (std::ranges::any_of(actions, stops)) sync();
  for (const Action& action : actions) {
    if (const auto* group = std::get_if<AnswerGroup>(&action)) answer(*group);  // workers continue now
  }
  for (const Step& step : turn) log(step.event, step.actions, step.time);
  for (const Action& action : actions) perform(action);
  for (const Action& action : actions) tell_callbacks(action);
  say_callback_warnings();
}

// Retries while the disk is full, until interrupted. `act` must be repeatable after OutOfSpace.
template <class Act>
void Controller::patiently(Act act) {
  for (bool told = false;; told = true) {
    try {
      act();
      if (told) console_.say("There is space again; the run goes on.");
      return;
    } catch (const OutOfSpace& error) {
      if (interrupts_.signal() != 0) throw;
      if (!told)
        console_.say(fmt::format("The disk is full: {}. Workers wait in report() until there is space.", error.what()));
      run::Interrupts::sleep(std::chrono::seconds(1));
    }
  }
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

void Controller::write(const std::vector<Step>& turn) {
  try {
    for (const Step& step : turn) {
      last_event_ = record(store_, step.event, step.time, step.repeated);
      for (const Action& action : step.actions) prepare(action, last_event_);
    }
    store_.commit();
  } catch (...) {
    store_.roll_back();  // a failed rename of a directory also ends here
    throw;
  }
}

void Controller::prepare(const Action& action, std::int64_t cause) {
  std::visit(
      base::Overload{
          [&](const RecordDecision& decision) { store_.add(to_row(decision, cause)); },
          [&](const SaveRun&) { store_.put(to_row(run_, description_.options.train_loop_config)); },
          [&](const CommitCheckpoint& checkpoint) { commit(checkpoint); },
          [&](const MarkSynced& mark) { store_.set_checkpoint_synced(mark.id, base::to_json(sealed_.at(mark.id))); },
          [&](const DeleteCheckpoint& checkpoint) { store_.remove_checkpoint(checkpoint.id); }, [](const auto&) {}},
      action);
}

// Merges the ranks' parts into one directory: moves the files of the others into the lowest rank's. Part of this may
// be done already if the transaction is retried or another controller repeats it.
void Controller::commit(const CommitCheckpoint& checkpoint) {
  const fs::path first = directory_ / checkpoint.from.front();
  const fs::path committed = directory_ / checkpoint.directory;
  run::CheckpointMetadata metadata{
      .trial_id = "run", .training_iteration = checkpoint.step, .timestamp = std::llround(engine_.wall_seconds())};
  std::error_code unreadable;
  if (first == committed) {
    run::write_metadata(first, metadata);
  } else if (!fs::is_directory(committed, unreadable)) {
    for (const std::string& other : checkpoint.from | std::views::drop(1)) merge_into(first, directory_ / other);
    if (!run::is_name_of_checkpoint(checkpoint.directory)) metadata.directory = checkpoint.directory;
    run::write_metadata(first, metadata);
    run::commit_directory(directory_, checkpoint.from.front(), checkpoint.directory);
  }
  store_.add(store::CheckpointRow{checkpoint.id, 0, checkpoint.step, checkpoint.directory});
}

// ---- Result files, written from committed data

void Controller::log(const Event& event, const Actions& actions, double time) {
  const auto now = engine_.now();
  files_.see(event, actions, time, now);
  if (const auto& due = files_.due(); due && now >= *due) write_result_files();
  if (const auto warning = files_.take_warning()) console_.say("Warning: " + *warning);
}

void Controller::write_result_files() {
  patiently([&] { files_.write(); });
}

// ---- Actions after the commit

void Controller::perform(const Action& action) {
  std::visit(
      base::Overload{
          [&](const CommitCheckpoint& checkpoint) { file_worker_.seal(checkpoint.id, checkpoint.directory); },
          [&](const DeleteCheckpoint& checkpoint) { to_delete_.emplace_back(checkpoint.id, checkpoint.directory); },
          [&](const UploadCheckpoint& checkpoint) { upload(checkpoint); },
          [&](const ForwardResult& result) { forward(result); },
          [&](const RemoveDirectory& left) { to_delete_.emplace_back(kNoCheckpoint, left.path); },
          [&](const ShowResult& result) { console_.show(result, engine_.now()); },
          [&](const TellOfFailure&) {
            console_.show_worker_output(true, engine_.now());
          },  // show the workers' output before the failure
          [&](const Say& what) { console_.say(what); }, [&](const LaunchGroup& group) { launch(group); },
          [&](const KillWorker& kill) { engine_.kill(worker_id(kill.rank, kill.attempt)); },
          [&](const StartValidator& validator) { start(validator); },
          [&](const KillValidator& kill) { engine_.kill(validator_id(kill.id, kill.attempt)); },
          [&](const ShowValidation& validation) { console_.show(validation, engine_.now()); },
          [&](const StartTimer& start) {
            const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(start.seconds));
            timers_[{start.timer.kind, start.timer.is_of_checkpoint() ? start.timer.attempt : 0}] = {
                clock_.now() + time, start.timer};
          },
          [](const auto&) {}},
      action);
}

void Controller::upload(const UploadCheckpoint& checkpoint) {
  run::Uploader::Upload upload{.number = checkpoint.number};
  for (const CheckpointPart& part : checkpoint.parts) {
    const bool borrowed = part.kind == CheckpointPart::Kind::borrowed;
    upload.parts.push_back({.directory = directory_ / part.path,  // an absolute path stays unchanged
                            .copy = borrowed ? directory_ / run::copy_name(checkpoint.number, part.rank) : fs::path()});
  }
  uploader_.begin(std::move(upload));
}

// Blocks until the experiment has answered: ranks are waiting in report(), so nothing else of this run can happen
// meanwhile.
void Controller::forward(const ForwardResult& result) {
  write_result_files();
  const fs::path checkpoint = result.checkpoint.empty() ? fs::path() : directory_ / result.checkpoint;
  forwarded_.emplace_back(ResultForwarded{result.attempt, parent_->forward(result.metrics, checkpoint)});
}

// Removes directories left by dead ranks. Syncs the store first, because directories to be deleted wait for that.
void Controller::remove_leftovers() {
  sync();
  for (std::string& left : leftovers(run_, directory_)) file_worker_.remove(std::move(left));
}

void Controller::launch(const LaunchGroup& group) {
  if (group.attempt > 1) remove_leftovers();
  std::string checkpoint;
  if (!group.checkpoint.empty()) {
    checkpoint = (directory_ / group.checkpoint).string();
  } else if (const auto beginning = parent_ != nullptr ? parent_->checkpoint() : std::nullopt) {
    checkpoint = beginning->path().string();
  }
  const TrainerOptions& options = description_.options;
  const std::int64_t world_size = group.workers;
  const Resources resources = options.scaling_config.worker_resources();
  barrier_.begin(group.attempt, world_size,
                 std::chrono::duration_cast<std::chrono::nanoseconds>(options.run_config.collective_timeout));
  key_values_.clear();
  questions_.clear();
  console_.watch_workers(world_size, engine_.now());
  for (Rank rank = 0; rank < world_size; ++rank) {
    const run::Gpus& gpus = group.gpus.at(static_cast<std::size_t>(rank));
    const fs::path directory = directory_ / directory_of_rank(rank);
    base::make_own_directory(directory);
    const RankAssignment assignment{
        .run_name = directory_.filename(),
        .run_directory = directory_.string(),
        .place = {.world_rank = static_cast<int>(rank),
                  .world_size = static_cast<int>(world_size),
                  .local_rank = static_cast<int>(rank),
                  .local_world_size = static_cast<int>(world_size)},
        .attempt = group.attempt,
        .config = options.train_loop_config,
        .checkpoint = checkpoint,
        .step = group.step,
        .resources = resources,
        .collective_timeout_ms = std::llround(options.run_config.collective_timeout.count() * 1e3),
        .backend = description_.backend,
        .backend_options = description_.backend_options,
        .visible_devices = engine_.resources().gpus > 0 ? std::optional(run::visible_devices(gpus)) : std::nullopt,
        .has_validator = !options.validation.function.name.empty(),
        .datasets = Config(options.datasets),
        .runs_in_directory = options.run_config.chdir_to_rank_dir};
    engine_.start(
        worker_id(rank, group.attempt),
        {.assignment = {description_.loop.name, to_value(assignment)}, .directory = directory, .cpus = resources.cpus});
  }
}

void Controller::start(const StartValidator& validator) {
  const ValidationConfig& config = description_.options.validation;
  const fs::path directory = directory_of_validator(directory_, validator.checkpoint);
  base::make_own_directory(directory.parent_path());
  base::make_own_directory(directory);
  const bool starts_workers = !config.workers.bundles.empty();
  const ValidatorAssignment assignment{
      .run_name = directory_.filename(),
      .run_directory = directory_.string(),
      .directory = directory.string(),
      .checkpoint = (directory_ / validator.checkpoint).string(),
      .config = validator.wanted.config,
      .resources = config.resources,
      .worker_resources = starts_workers ? std::optional(config.workers.required_resources()) : std::nullopt,
      .visible_devices =
          engine_.resources().gpus > 0 ? std::optional(run::visible_devices(validator.gpus)) : std::nullopt};
  engine_.start(validator_id(validator.id, validator.attempt),
                {.assignment = {validator.wanted.function, to_value(assignment)},
                 .directory = directory,
                 .cpus = config.resources.cpus,
                 .starts_workers = starts_workers});
}

void Controller::answer(const AnswerGroup& answer) {
  const channel::Answer message{
      .verdict = answer.stop ? channel::Verdict::stop : channel::Verdict::go_on,
      .checkpoint = answer.checkpoint.empty() ? "" : (directory_ / answer.checkpoint).string()};
  for (const Rank rank : barrier_.take_waiting()) engine_.answer(worker_id(rank, answer.attempt), message);
}

void Controller::reply(const std::vector<run::KeyValues::Reply>& replies) {
  for (const auto& [worker, message] : replies) engine_.reply(worker, message);
}

void Controller::reply_about_checkpoints() {
  if (questions_.empty()) return;
  for (const auto& [worker, message] :
       questions_.take_replies(run_.checkpoints(), run_.validations(), run_.lack_of_validations(), clock_.looked())) {
    try {
      engine_.reply(worker, message);
    } catch (const InvalidArgument& error) {  // the metrics of all checkpoints exceed a message's limit
      engine_.reply(worker, channel::Reply{.error = error.what()});
    }
  }
}

// Returns the checkpoints that must stay on the local disk: the latest, and those still to be validated. All others
// are only there to be read.
std::set<std::string> Controller::checkpoints_to_keep() const {
  std::set<std::string> directories;
  const run::CheckpointRegistry& registry = run_.checkpoints().registry();
  if (const auto& latest = run_.checkpoints().latest()) directories.insert(registry.get(*latest).directory);
  for (const run::CheckpointId id : registry.all()) {
    if (run_.validations().is_pending(id)) directories.insert(registry.get(id).directory);
  }
  return directories;
}

// ---- Callbacks

RunContext Controller::context() const {
  return {.name = directory_.filename(),
          .path = directory_,
          .train_loop_config = description_.options.train_loop_config,
          .scaling_config = description_.options.scaling_config,
          .attempt = run_.attempt(),
          .world_size = run_.world_size()};
}

void Controller::tell_callbacks(const Action& action) {
  if (callbacks_.empty()) return;
  const auto checkpoint = [this](const std::string& name) { return Checkpoint::from_directory(directory_ / name); };
  if (const auto* result = std::get_if<ShowResult>(&action)) {
    callbacks_.after_report(context(), result->metrics,
                            result->checkpoint.empty() ? std::nullopt : std::optional(checkpoint(result->checkpoint)));
  } else if (const auto* committed = std::get_if<CommitCheckpoint>(&action)) {
    callbacks_.on_checkpoint(context(), checkpoint(committed->directory));
  } else if (const auto* validated = std::get_if<ShowValidation>(&action)) {
    callbacks_.after_validation(context(), {.checkpoint = checkpoint(validated->checkpoint),
                                            .metrics = validated->metrics,
                                            .status = validated->status,
                                            .reported_metrics = validated->reported,
                                            .validation_metrics = validated->validated,
                                            .validation_error = validated->error});
  } else if (const auto* failed = std::get_if<TellOfFailure>(&action)) {
    RunContext of_group = context();  // the next group may have been started already
    of_group.attempt = failed->attempt;
    of_group.world_size = failed->workers;
    callbacks_.after_exception(of_group, failed->causes);
  }
}

void Controller::say_callback_warnings() {
  for (const std::string& warning : callbacks_.take_warnings()) fmt::print(stderr, "Warning: {}\n", warning);
}

}  // namespace cadre::train
