#include "train/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/overload.h"
#include "base/seconds.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "resources/gpu_kinds.h"
#include "resources/gpus.h"
#include "resources/resource_ledger.h"
#include "storage/remote_directory.h"
#include "train/assignment.h"
#include "train/capacity.h"
#include "train/journal.h"
#include "train/part_check.h"
#include "train/recovery.h"
#include "train/session.h"
#include "train/validator.h"
#include "train/worker_ids.h"

namespace cadre {
template class control::Turns<train::Run>;
}

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

constexpr checkpoint::CheckpointId kNoCheckpoint = 0;
// A link to the checkpoint from which a run of a trial begins, where nodes do not see the trial's directory.
constexpr const char* kBeginning = "beginning";

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

// Does the same with parts of which both are here, or both in a storage only.
void merge_part(const fs::path& directory, const fs::path& other) {
  auto merged = storage::remote_files(directory);
  const auto part = storage::remote_files(other);
  if (!merged || !part) return merge_into(directory, other);
  storage::add_files(merged->files, part->files);
  storage::replace_list(directory, *merged);
  base::remove_tree(other);
}

}  // namespace

Controller::Controller(const Description& description, fs::path directory, Run& run, store::ExperimentStore& store,
                       engine::Engine& engine, RunConsole& console, worker::ParentRun* parent,
                       std::optional<publish::Publication> publication)
    : Turns(run,
            {.directory = std::move(directory),
             .tenant = store::training_run_tenant,
             .publish_config = description.options.run_config.publish_config,
             .publication = std::move(publication),
             .print = [&console](const std::string& text, bool) { console.say(text); }},
            store, engine),
      description_(description),
      run_(run),
      parent_(parent),
      files_(this->directory(), description.options),
      console_(console),
      callbacks_(description.options.run_config.callbacks),
      uploader_([&engine] { engine.wake(); }),
      node_files_(this->directory(), engine) {}

void Controller::recover() {
  // The result files are rewritten completely from the store.
  Recovered recovered =
      train::recover(store_, run_, work_place(), [this](const Event& event, const Actions& actions, double time) {
        log({.event = event, .time = time, .actions = actions});
        write_urgent_files();
      });
  continue_from(recovered);
  beginning_.lost_checkpoints = std::move(recovered.lost_checkpoints);
  beginning_.lost_uploads = std::move(recovered.lost_uploads);
}

// ---- Events

std::vector<Event> Controller::begin() {
  patiently([&] { files_.write_params(); });
  callbacks_.on_start(context());
  warn(callbacks_.take_warnings());
  std::vector<Event> first;
  beginning_.machine = engine_.resources();
  beginning_.nodes = resources::node_list(engine_.nodes());
  check_resources(first, /*at_start=*/true);
  beginning_.hostname = base::host_name();
  first.emplace_back(beginning_);
  return first;
}

void Controller::translate(engine::Event event, std::vector<Event>& events) {
  std::visit([&](auto& content) { handle(std::move(content), events); }, event);
}

void Controller::add_other_events(std::vector<Event>& events) {
  add_upload_events(events);
  check_resources(events, /*at_start=*/false);
  reply(key_values_.expire(clock_.last_reading()));
}

void Controller::add_deadline_events(std::vector<Event>& events) {
  if (auto broke = barrier_.expire(clock_.last_reading())) events.push_back(*std::move(broke));
}

void Controller::add_event_deadlines(control::Earliest& earliest) const {
  if (const auto deadline = barrier_.deadline()) earliest.add(clock_.on_engine(*deadline));
}

void Controller::handle(engine::Received received, std::vector<Event>& events) {
  if (is_validator(received.worker)) return handle_from_validator(received.worker, std::move(received.message), events);
  const Rank rank = rank_of(received.worker);
  const std::int64_t attempt = attempt_of(received.worker);
  const auto add = [&](std::optional<Event> event) {
    if (event) events.push_back(*std::move(event));
  };
  std::visit(
      base::Overload{
          [&](channel::Report& report) { handle(std::move(report), rank, attempt, events); },
          [&](channel::Finished& finished) {
            add(FunctionReturned{rank, attempt, std::move(finished.value)});
            if (run_.is_present(attempt)) add(barrier_.returned(rank));
          },
          [&](channel::Failed& failed) { add(FunctionThrew{rank, attempt, std::move(failed.message)}); },
          [&](channel::Declined&) { add(FunctionThrew{rank, attempt, "the worker has declined"}); },
          [&](channel::StoreRequest& request) { reply(key_values_.handle(received.worker, request, clock_.now())); },
          [&](channel::Request& request) {
            try {
              ask({received.worker, request.call}, request.content);
            } catch (const Error& error) {
              engine_.reply(received.worker, channel::Reply{.error = error.what(), .call = request.call});
            }
          },
          [&](channel::Notice& notice) { handle(notice, rank, attempt, events); }},
      received.message);
}

void Controller::handle(engine::Exited exited, std::vector<Event>& events) {
  if (is_validator(exited.worker)) {
    events.emplace_back(
        ValidatorEnded{checkpoint_of(exited.worker), validator_attempt_of(exited.worker), std::move(exited.exit)});
    return;
  }
  events.emplace_back(WorkerEnded{rank_of(exited.worker), attempt_of(exited.worker), std::move(exited.exit)});
}

void Controller::handle(engine::Fetched fetched, std::vector<Event>& events) {
  if (auto event = node_files_.arrived(fetched)) events.push_back(*std::move(event));
}

void Controller::ask(channel::Caller caller, const Value& content) {
  const CheckpointQuestion question = to_checkpoint_question(content);
  if (question.lacks.empty()) return questions_.ask(caller, question, clock_.now());
  const checkpoint::CheckpointRegistry& registry = run_.checkpoints().registry();
  const bool is_there = std::ranges::any_of(
      registry.all(), [&](checkpoint::CheckpointId id) { return registry.get(id).directory == question.lacks; });
  if (!is_there) throw NotFound(fmt::format("the run keeps no checkpoint {} any more", question.lacks));
  engine_.bring(caller.worker, {question.lacks});
  engine_.reply(caller.worker, channel::Reply{.call = caller.call});
}

// Returns the node below whose own directory a rank of the present group makes its checkpoints; empty: it makes them
// where all see them.
std::optional<engine::NodeId> Controller::own_directory_of(Rank rank) const {
  if (!engine_.carries_files() || rank >= std::ssize(nodes_of_ranks_)) return std::nullopt;
  return nodes_of_ranks_.at(static_cast<std::size_t>(rank));
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

void Controller::handle_from_validator(engine::WorkerId worker, channel::Message message, std::vector<Event>& events) {
  const checkpoint::CheckpointId checkpoint = checkpoint_of(worker);
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

// Nodes that come and go tell of it themselves.
void Controller::check_resources(std::vector<Event>& events, bool at_start) {
  const ScalingConfig& scaling = description_.options.scaling_config;
  const auto now = engine_.now();
  if (!scaling.num_workers.is_elastic() || beginning_.nodes.may_change || (next_check_ && now < *next_check_)) return;
  Seconds pause = scaling.elastic_resize_monitor_interval;
  if (run_.status() == RunStatus::starved) pause = std::min<Seconds>(pause, std::chrono::seconds(1));
  next_check_ = now + base::to_nanoseconds(pause);
  const std::int64_t workers = capacity(engine_.resources(), scaling);
  if (std::exchange(capacity_, workers) != workers)
    events.emplace_back(ResourcesSeen{workers, engine_.resources(), at_start});
}

// Returns why the ranks' parts cannot become a checkpoint. Checked once all have reported, so that the result does not
// depend on their order.
std::optional<std::string> Controller::fault_of_group(const GroupCheckpoint& checkpoint) const {
  if (checkpoint.parts.empty()) return std::nullopt;
  try {
    check_together(checkpoint, directory(), run_.checkpoints(), pending_deletions());
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

// Fails a rank whose report cannot be a checkpoint, before the core receives it.
void Controller::handle(channel::Report report, Rank rank, std::int64_t attempt, std::vector<Event>& events) {
  const engine::WorkerId worker = worker_id(rank, attempt);
  if (!run_.is_present(attempt)) {  // its group is being stopped
    if (checkpoint::is_reporting_name(report.checkpoint)) discard(report.checkpoint);
    return engine_.answer(worker, {.verdict = channel::Verdict::stop});
  }
  try {
    PartReport said = part_in(report, rank);
    if (said.part) {
      if (said.part->node != own_directory_of(rank))
        throw InvalidArgument("a checkpoint was reported that lies on another node than its rank");
      check_part(*said.part, work_place().root());
    }
    auto event = barrier_.reported(rank, {report.step, std::move(report.metrics), std::move(said)}, clock_.now());
    if (!event) return;
    if (auto* joined = std::get_if<GroupReported>(&*event)) {
      GroupCheckpoint& checkpoint = joined->checkpoint;
      checkpoint.waits |= parent_ != nullptr;  // a parent receives result and checkpoint together
      checkpoint.upload = std::ranges::any_of(checkpoint.parts, is_copied);
      if (auto fault = fault_of_group(checkpoint)) event = GroupBroke{attempt, *std::move(fault)};
    }
    events.push_back(*std::move(event));
  } catch (const Error& error) {
    engine_.kill(worker);
    events.emplace_back(FunctionThrew{rank, attempt, error.what()});
  }
}

void Controller::handle(const channel::Notice& notice, Rank rank, std::int64_t attempt, std::vector<Event>& events) {
  const auto end_promise = [&](PromiseEnd end) {
    try {
      if (end.error.empty() && !end.path.empty()) {
        const CheckpointPart part{
            .kind = CheckpointPart::Kind::in_place, .path = end.path, .node = own_directory_of(rank)};
        check_part(part, work_place().root());
        check_together({.parts = {part}}, directory(), run_.checkpoints(), pending_deletions());
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

void Controller::add_upload_events(std::vector<Event>& events) {
  for (Event& event : node_files_.look()) events.push_back(std::move(event));
  for (checkpoint::Uploader::Outcome& outcome : uploader_.take_outcomes()) {
    if (outcome.error.empty()) {
      events.emplace_back(CheckpointUploaded{outcome.number});
    } else {
      events.emplace_back(UploadFailed{outcome.number, std::move(outcome.error), outcome.again});
    }
  }
}

bool Controller::receive(Event& event) {
  const auto* report = std::get_if<GroupReported>(&event);
  return report != nullptr && !run_.counts(*report);
}

// ---- The transaction

std::int64_t Controller::record(const Step& step) {
  return train::record(store_, step.event, step.time, step.repeated);
}

void Controller::prepare(const Action& action) {
  if (const auto* save = std::get_if<SaveRun>(&action)) {
    store_.put(to_row(*save, description_.options.train_loop_config));
  } else if (const auto* checkpoint = std::get_if<CommitCheckpoint>(&action)) {
    commit(*checkpoint);
  }
}

// Merges the ranks' parts into one directory: moves the files of the others into the lowest rank's. Part of this may
// be done already if the transaction is retried or another controller repeats it.
void Controller::commit(const CommitCheckpoint& checkpoint) {
  const fs::path first = work_place().reported(checkpoint.from.front());
  checkpoint::CheckpointMetadata metadata{
      .trial_id = "run", .training_iteration = checkpoint.step, .timestamp = std::llround(engine_.wall_seconds())};
  std::error_code unreadable;
  if (checkpoint.from.front() == checkpoint.directory) {
    if (!storage::remote_files(first)) checkpoint::write_metadata(first, metadata);
    work_place().commit_in_place(checkpoint.directory);
  } else {
    if (fs::is_directory(first, unreadable)) {  // otherwise this was done already
      for (const std::string& other : checkpoint.from | std::views::drop(1))
        merge_part(first, work_place().reported(other));
      if (!checkpoint::is_name_of_checkpoint(checkpoint.directory)) metadata.directory = checkpoint.directory;
      if (!storage::remote_files(first)) checkpoint::write_metadata(first, metadata);
    }
    work_place().commit(checkpoint.from.front(), checkpoint.directory);
  }
  store_.add(store::CheckpointRow{checkpoint.id, 0, checkpoint.step, checkpoint.directory});
}

bool Controller::must_be_synced(const Action& action) const {
  const auto* answer = std::get_if<AnswerGroup>(&action);
  return answer != nullptr && answer->stop;
}

// ---- After the commit

void Controller::answer(const Action& action) {
  if (const auto* group = std::get_if<AnswerGroup>(&action)) answer(*group);
}

void Controller::log(const Step& step) { files_.log(step.event, step.actions, step.time); }

void Controller::write_urgent_files() {
  if (files_.is_urgent()) write_files_now();
  if (const auto warning = files_.take_warning()) warn(*warning);
}

void Controller::perform(const Action& action) {
  std::visit(
      base::Overload{[&](const UploadCheckpoint& checkpoint) { upload(checkpoint); },
                     [&](const ForwardResult& result) { forward(result); },
                     [&](const AwaitPublication& wait) { await_publication(wait); },
                     [&](const CommitCheckpoint& checkpoint) { node_files_.committed(checkpoint); },
                     [&](const RemoveDirectory& left) { delete_after_sync(kNoCheckpoint, left.path); },
                     [&](const ShowResult& result) { console_.show(result, engine_.now()); },
                     [&](const TellOfFailure&) {
                       console_.show_worker_output(true, engine_.now());
                     },  // show the workers' output before the failure
                     [&](const Say& what) { console_.say(what); }, [&](const LaunchGroup& group) { launch(group); },
                     [&](const KillWorker& kill) { engine_.kill(worker_id(kill.rank, kill.attempt)); },
                     [&](const StartValidator& validator) { start(validator); },
                     [&](const KillValidator& kill) { engine_.kill(validator_id(kill.id, kill.attempt)); },
                     [&](const ShowValidation& validation) { console_.show(validation, engine_.now()); },
                     [](const auto&) {}},
      action);
}

void Controller::upload(const UploadCheckpoint& checkpoint) {
  if (node_files_.fetch(checkpoint)) return;
  checkpoint::Uploader::Upload upload{.number = checkpoint.number};
  for (const CheckpointPart& part : checkpoint.parts) {
    const bool borrowed = part.kind == CheckpointPart::Kind::borrowed;
    upload.parts.push_back(
        {.directory = borrowed ? fs::path(part.path) : work_place().reported(part.path),
         .copy = borrowed ? path_of(checkpoint::copy_name(checkpoint.number, part.rank)) : fs::path()});
  }
  uploader_.begin(std::move(upload));
}

void Controller::turn_ends(const std::vector<Step>& turn) {
  for (const Step& step : turn) {
    for (const Action& action : step.actions) tell_callbacks(action);
  }
  warn(callbacks_.take_warnings());
}

// Blocks until the experiment has answered: ranks are waiting in report(), so nothing else of this run can happen
// meanwhile.
void Controller::forward(const ForwardResult& result) {
  write_files_now();
  const fs::path checkpoint = result.checkpoint.empty() ? fs::path() : path_of(result.checkpoint);
  add_event(ResultForwarded{result.attempt, parent_->forward(result.metrics, checkpoint)});
}

// The next published state has everything that was committed by now.
void Controller::await_publication(const AwaitPublication& wait) {
  awaited_publication_ = {wait, publishing_.publish_now()};
  look_at_publication();
}

void Controller::look_at_publication() {
  if (!awaited_publication_ || !publishing_.is_published(awaited_publication_->second)) return;
  const AwaitPublication wait = std::exchange(awaited_publication_, std::nullopt)->first;
  add_event(ReportPublished{wait.attempt, wait.step});
}

// Removes directories left by dead ranks. Syncs the store first, because directories to be deleted wait for that.
void Controller::remove_leftovers() {
  sync();
  for (std::string& left : leftovers(run_, work_place())) discard(std::move(left));
}

// Returns the checkpoint from which the parent lets the run begin; empty: there is none. Only what is in the run's
// directory is brought to other nodes.
std::string Controller::checkpoint_of_parent() {
  const auto checkpoint = parent_ == nullptr ? std::nullopt : parent_->checkpoint();
  if (!checkpoint) return {};
  if (!engine_.carries_files()) return checkpoint->path();
  const fs::path link = path_of(kBeginning);
  patiently([&] {
    base::remove_tree(link);
    base::make_directory(link);
    checkpoint::link_checkpoint(checkpoint->path(), link);
  });
  return kBeginning;
}

void Controller::launch(const LaunchGroup& group) {
  if (group.attempt > 1) remove_leftovers();
  const std::string beginning = group.checkpoint.empty() ? checkpoint_of_parent() : "";
  const TrainerOptions& options = description_.options;
  const std::int64_t world_size = group.workers;
  const Resources resources = options.scaling_config.worker_resources();
  const std::vector<engine::Node> nodes = engine_.nodes();
  const std::chrono::nanoseconds collective_timeout = base::to_nanoseconds(options.run_config.collective_timeout);
  barrier_.begin(group.attempt, world_size, collective_timeout);
  key_values_.clear();
  questions_.clear();
  console_.watch_workers(world_size, engine_.now());
  nodes_of_ranks_.clear();
  for (const resources::Place& place : group.places) nodes_of_ranks_.push_back(place.node);
  const std::string& from = beginning.empty() ? group.checkpoint : beginning;
  const std::vector<std::string> needed = needs_of(from);
  for (Rank rank = 0; rank < world_size; ++rank) {
    const resources::Place& place = group.places.at(static_cast<std::size_t>(rank));
    const std::string own_directory = directory_of_rank(rank);
    patiently([&] {
      base::make_own_directory(path_of(own_directory));
      work_place().make_directory(own_directory);
    });
    const RankAssignment assignment{
        .run_name = directory().filename(),
        .run_directory = work_place().root(place.node).string(),
        .place = place_of(group, rank, nodes),
        .attempt = group.attempt,
        .generation = work_place().generation(),
        .function = description_.loop.host_function,
        .config = options.train_loop_config,
        .checkpoint = from.empty()                   ? ""
                      : fs::path(from).is_absolute() ? from
                                                     : work_place().checkpoint(from, place.node).string(),
        .step = group.step,
        .resources = resources,
        .collective_timeout_ms = std::llround(static_cast<double>(collective_timeout.count()) / 1e6),
        .backend = description_.backend,
        .backend_options = description_.backend_options,
        .visible_devices = resources::visible_devices(group.machines.at(place.node), place, nodes),
        .has_validator = !options.validation.function.name.empty(),
        .datasets = Config(options.datasets),
        .sends_metrics = !callbacks_.empty(),
        .runs_in_directory = options.run_config.chdir_to_rank_dir,
        .in_trial = parent_ != nullptr,
        .is_on_node = beginning_.nodes.may_change,  // all of them may have left meanwhile
        .node = own_directory_of(rank)};
    engine_.start(worker_id(rank, group.attempt), {.assignment = {entry_of(description_.loop), to_value(assignment)},
                                                   .node = place.node,
                                                   .directory = work_place().path_of(own_directory, place.node),
                                                   .needs = needed,
                                                   .cpus = resources.cpus});
  }
}

void Controller::start(const StartValidator& validator) {
  const ValidationConfig& config = description_.options.validation;
  const Resources own = validator.wanted.resources.value_or(config.resources);  // without those of its workers
  const engine::NodeId node = validator.place.node;
  const fs::path own_directory = directory_of_validator({}, validator.checkpoint);
  patiently([&] {
    base::make_own_directory(path_of(own_directory.parent_path()));
    base::make_own_directory(path_of(own_directory));
    work_place().make_directory(own_directory);
  });
  const bool starts_workers = !config.workers.bundles.empty();
  std::optional<Resources> workers;
  if (starts_workers)
    workers = resources::with_kinds(config.workers.required_resources(), validator.machine, validator.place.gpus);
  const ValidatorAssignment assignment{
      .run_name = directory().filename(),
      .run_directory = work_place().root(node).string(),
      .directory = work_place().path_of(own_directory, node).string(),
      .checkpoint = work_place().checkpoint(validator.checkpoint, node).string(),
      .function = validator.wanted.host_function,
      .config = validator.wanted.config,
      .resources = own,
      .worker_resources = workers,
      .visible_devices = resources::visible_devices(validator.machine, validator.place, engine_.nodes())};
  engine_.start(validator_id(validator.id, validator.attempt),
                {.assignment = {entry_of(validator.wanted), to_value(assignment)},
                 .node = node,
                 .directory = work_place().path_of(own_directory, node),
                 .needs = needs_of(validator.checkpoint),
                 .cpus = own.cpus,
                 .starts_workers = starts_workers});
}

void Controller::answer(const AnswerGroup& answer) {
  channel::Answer message{.verdict = answer.stop ? channel::Verdict::stop : channel::Verdict::go_on};
  for (const Rank rank : barrier_.take_waiting()) {
    const engine::NodeId node = nodes_of_ranks_.at(static_cast<std::size_t>(rank));
    if (!answer.checkpoint.empty()) message.checkpoint = work_place().checkpoint(answer.checkpoint, node).string();
    engine_.answer(worker_id(rank, answer.attempt), message);
  }
}

void Controller::reply(std::vector<worker::KeyValues::Reply> replies) {
  for (auto& [caller, message] : replies) {
    message.call = caller.call;
    engine_.reply(caller.worker, message);
  }
}

void Controller::reply_about_checkpoints() {
  if (questions_.empty()) return;
  for (auto& [caller, message] :
       questions_.take_replies(run_.checkpoints(), run_.validations(), run_.lack_of_validations(), run_.interrupted(),
                               clock_.last_reading())) {
    message.call = caller.call;
    if (message.error.empty()) message.content = as_workers_see(message.content);
    try {
      engine_.reply(caller.worker, message);
    } catch (const InvalidArgument& error) {  // the metrics of all checkpoints exceed a message's limit
      engine_.reply(caller.worker, channel::Reply{.error = error.what(), .call = caller.call});
    }
  }
}

// Returns the entries of a reply with the paths that the checkpoints have below the ranks' run directory.
Value Controller::as_workers_see(const Value& entries) const {
  if (!work_place().is_shared()) return entries;
  std::vector<CheckpointEntry> seen = to_checkpoint_entries(entries);
  for (CheckpointEntry& entry : seen)
    entry.directory = work_place().checkpoint(entry.directory).lexically_relative(work_place().root());
  return to_value(seen);
}

// Returns the checkpoints that must stay on the local disk: the latest, and those still to be validated. All others
// are only there to be read.
std::set<std::string> Controller::checkpoints_to_keep() const {
  std::set<std::string> directories;
  const checkpoint::CheckpointRegistry& registry = run_.checkpoints().registry();
  if (const auto& latest = run_.checkpoints().latest()) directories.insert(registry.get(*latest).directory);
  for (const checkpoint::CheckpointId id : registry.all()) {
    if (run_.validations().is_pending(id)) directories.insert(registry.get(id).directory);
  }
  return directories;
}

// ---- Between the turns, and at the end

void Controller::tick(TimePoint now) {
  look_at_publication();
  reply_about_checkpoints();
  if (const auto& due = console_.worker_output_due(); due && now >= *due) console_.show_worker_output(false, now);
}

void Controller::add_deadlines(control::Earliest& earliest) const {
  const auto add_awake = [&](const std::optional<control::AwakeClock::TimePoint>& due) {
    if (due) earliest.add(clock_.on_engine(*due));
  };
  add_awake(key_values_.next_deadline());
  add_awake(questions_.next_deadline());
  earliest.add(next_check_);
  earliest.add(console_.worker_output_due());
}

void Controller::end_turns() {
  patiently([this] { files_.complete(); });
  console_.show_worker_output(true, engine_.now());
}

void Controller::end() {
  remove_leftovers();
  callbacks_.on_end(context());
  warn(callbacks_.take_warnings());
}

// ---- Callbacks

RunContext Controller::context() const {
  return {.name = directory().filename(),
          .path = directory(),
          .train_loop_config = description_.options.train_loop_config,
          .scaling_config = description_.options.scaling_config,
          .attempt = run_.attempt(),
          .world_size = run_.world_size()};
}

void Controller::tell_callbacks(const Action& action) {
  if (callbacks_.empty()) return;
  const auto checkpoint = [this](const std::string& name) { return Checkpoint::from_directory(path_of(name)); };
  if (const auto* result = std::get_if<ShowResult>(&action)) {
    callbacks_.after_reports(context(), result->rank_metrics,
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

}  // namespace cadre::train
