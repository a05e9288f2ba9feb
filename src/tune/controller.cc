#include "tune/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/directory.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/overload.h"
#include "base/random.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "control/object_uses.h"
#include "resources/gpu_kinds.h"
#include "resources/gpus.h"
#include "resources/memory_usage.h"
#include "store/object_files.h"
#include "tune/host_trainable.h"
#include "tune/journal.h"
#include "tune/recovery.h"
#include "tune/requests.h"

namespace cadre {
template class control::Turns<tune::Experiment>;
}

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr auto kMemoryPeriod = std::chrono::seconds(1);
// Begins the name of a folder in the directory of a trial that has several nodes; the number of one follows, and its
// agent there prints into it.
constexpr const char* kAgentPrefix = "agent_";
constexpr std::size_t kMostWaitingBytes = std::size_t{16} << 20;

// Rejects a message that only a member of a worker group may send; returns true if `event` is one.
bool turn_away(engine::Engine& engine, const engine::Event& event) {
  const auto* received = std::get_if<engine::Received>(&event);
  if (received == nullptr) return false;
  const std::string error = "a trial is no member of a worker group";
  if (const auto* store = std::get_if<channel::StoreRequest>(&received->message)) {
    engine.reply(received->worker, channel::StoreReply{.error = error, .call = store->call});
  } else if (const auto* request = std::get_if<channel::Request>(&received->message)) {
    engine.reply(received->worker, channel::Reply{.error = error, .call = request->call});
  } else {
    return std::holds_alternative<channel::Notice>(received->message);
  }
  return true;
}

Event to_event(engine::Event&& event) {
  if (auto* exited = std::get_if<engine::Exited>(&event))
    return WorkerEnded{trial_of(exited->worker), attempt_of(exited->worker), std::move(exited->exit), {}};
  if (auto* joined = std::get_if<engine::NodeJoined>(&event)) return std::move(*joined);
  if (auto* draining = std::get_if<engine::NodeDraining>(&event)) return std::move(*draining);
  if (auto* left = std::get_if<engine::NodeLeft>(&event)) return std::move(*left);
  if (std::holds_alternative<engine::Fetched>(event)) throw std::logic_error("an experiment fetches nothing");
  auto& [worker, message] = std::get<engine::Received>(event);
  const TrialIndex trial = trial_of(worker);
  const std::int64_t attempt = attempt_of(worker);
  return std::visit(
      base::Overload{
          [&](channel::Report& report) -> Event { return ResultReported{trial, attempt, std::move(report)}; },
          [&](channel::Finished&) -> Event { return FunctionReturned{trial, attempt}; },
          [&](channel::Declined&) -> Event { return WorkerDeclined{trial, attempt}; },
          [&](channel::Failed& failed) -> Event { return FunctionThrew{trial, attempt, std::move(failed.message)}; },
          [](auto&) -> Event { throw std::logic_error("a message that only a worker group sends was not rejected"); }},
      message);
}

}  // namespace

Controller::Controller(Setting setting, Experiment& experiment, RunningTime& running_time,
                       store::ExperimentStore& store, engine::Engine& engine, Console& console)
    : Turns(experiment,
            {.directory = setting.directory,
             .tenant = store::experiment_tenant,
             .publish_config = setting.options.run_config.publish_config,
             .publication = setting.publication,
             .print = [&console](const std::string& text,
                                 bool at_once) { at_once ? console.say_now(text) : console.say(text); }},
            store, engine),
      setting_(std::move(setting)),
      experiment_(experiment),
      running_time_(running_time),
      console_(console),
      files_(setting_.directory, experiment, setting_.options.tune_config.scheduler.held().traits().logs_exploits,
             setting_.options.run_config.loggers, setting_.options.tune_config.scheduler.held().traits().mutated),
      requests_(setting_.directory),
      callbacks_(setting_.options.run_config.callbacks, experiment, setting_.directory, setting_.trainable.name),
      snapshots_(store),
      searcher_([&engine] { engine.wake(); }),
      agents_(engine, [this](auto agent, auto trial, auto node, Value payload) {
        start_agent(agent, trial, node, std::move(payload));
      }) {}

void Controller::recover() {
  Recovered recovered =
      tune::recover(store_, snapshots_, {experiment_, files_, running_time_}, work_place(),
                    {.allow_divergence = setting_.allow_divergence, .extends = setting_.extension.is_set()});
  continue_from(recovered);
  callbacks_.load_state(store_.callback_states());
  lost_checkpoints_ = std::move(recovered.lost_checkpoints);
  if (recovered.diverged) publish_anew();
}

// ---- Events

std::vector<Event> Controller::begin() {
  callbacks_.setup(info());
  return {ControllerStarted{.resources = engine_.resources(),
                            .errored = setting_.errored,
                            .lost_checkpoints = lost_checkpoints_,
                            .running_time_s = running_time_.seconds(),
                            .nodes = resources::node_list(engine_.nodes()),
                            .extension = setting_.extension}};
}

void Controller::translate(engine::Event event, std::vector<Event>& events) {
  if (agents_.take(event)) {
    for (WorkerEnded& ended : agents_.take_ends()) events.emplace_back(std::move(ended));
    return;
  }
  if (!turn_away(engine_, event)) events.push_back(checked(to_event(std::move(event))));
}

// Only parked workers can give memory back.
bool Controller::watches_memory() const {
  return experiment_.parked_workers() > 0 && setting_.options.tune_config.parking.min_free_memory > 0;
}

void Controller::add_other_events(std::vector<Event>& events) {
  if (std::optional<Suggested> suggested = searcher_.take()) events.emplace_back(std::move(*suggested));
  take_requests(events);
  if (!watches_memory() || engine_.now() < next_memory_check_) return;
  next_memory_check_ = engine_.now() + kMemoryPeriod;
  if (resources::free_memory() < setting_.options.tune_config.parking.min_free_memory)
    events.emplace_back(MemoryRunsShort{});
}

// Answers a refused request at once; turn_ends() answers the others, which are then in the store.
void Controller::take_requests(std::vector<Event>& events) {
  if (engine_.now() < next_requests_) return;
  next_requests_ = engine_.now() + control::Requests::kPeriod;
  for (const auto& [id, content] : requests_.take()) {
    try {
      Event event = tune::to_event(content, experiment_, setting_.options);
      if (auto* resume = std::get_if<ResumeRequested>(&event)) resume->running_time_s = running_time_.seconds();
      events.push_back(std::move(event));
      unanswered_.push_back(id);
    } catch (const Error& error) {
      requests_.answer(id, error.what());
    }
  }
}

// Replaces a report whose checkpoint is not a directory of its own by a failure of the trial, before anything relies on
// it.
Event Controller::checked(Event event) {
  const auto* result = std::get_if<ResultReported>(&event);
  if (result == nullptr || result->report.checkpoint.empty()) return event;
  const std::string& name = result->report.checkpoint;
  const fs::path directory = work_place().root() / experiment_.trials().at(result->trial).directory;
  std::error_code unusable;  // a name may be too long for any file
  if (checkpoint::is_reporting_name(name) && fs::is_directory(fs::symlink_status(directory / name, unusable)))
    return event;
  engine_.kill(worker_id(result->trial, result->attempt));
  return FunctionThrew{
      result->trial, result->attempt,
      "the directory \"" + name + "\" that was reported as a checkpoint is none in " + directory.string()};
}

bool Controller::receive(Event& event) {
  auto* result = std::get_if<ResultReported>(&event);
  if (result == nullptr) return false;
  const bool repeated = experiment_.is_repeated(*result);
  if (experiment_.counts(*result)) callbacks_.show_result(*result);
  if (repeated && experiment_.is_saved_result(*result))  // as changed by callbacks
    result->report.metrics = experiment_.trials().at(result->trial).last_result;
  return repeated;
}

void Controller::handled(const Step& step) { running_time_.handle(step.event, step.time); }

void Controller::all_handled() {
  console_.changed();
  callback_states_ = callbacks_.changed_state();
}

// ---- The transaction

void Controller::write_facts() {
  if (callback_states_) store_.put_callback_states(*callback_states_);
  // In the transaction of the first turn, with the event that has the extension.
  if (setting_.description) store_.put_present_options(base::to_json(*setting_.description));
}

std::int64_t Controller::record(const Step& step) { return tune::record(store_, step.event, step.time, step.repeated); }

void Controller::prepare(const Action& action) {
  if (const auto* save = std::get_if<SaveTrial>(&action)) {
    const std::vector<ObjectRef> objects =
        control::held_objects(control::object_uses(save->config.value()));  // drawn or explored values
    control::write_objects(directory(), objects);
    if (work_place().is_shared()) control::write_objects(work_place().root(), objects);
    store_.put(to_row(*save));
  } else if (const auto* checkpoint = std::get_if<CommitCheckpoint>(&action)) {
    work_place().commit(checkpoint->from, checkpoint->directory);
    store_.add(store::CheckpointRow{checkpoint->id, checkpoint->trial, checkpoint->step, checkpoint->directory});
  }
}

bool Controller::must_be_synced(const Action& action) const {
  if (std::holds_alternative<LogExploit>(action)) return true;
  const auto* answer = std::get_if<AnswerReport>(&action);
  return answer != nullptr && answer->verdict == channel::Verdict::stop;
}

// ---- After the commit

void Controller::answer(const Action& action) {
  const auto* answer = std::get_if<AnswerReport>(&action);
  if (answer == nullptr) return;
  const engine::WorkerId worker = worker_id(answer->trial, answer->attempt);
  fs::path checkpoint;
  if (!answer->checkpoint.empty()) {
    checkpoint = work_place().checkpoint(answer->checkpoint, experiment_.trials().at(answer->trial).node);
    engine_.bring(worker, {answer->checkpoint});
  }
  const Value changed =
      answer->needs ? cadre::to_stored(ChangedResources{answer->needs->total, answer->needs->own_cpus}) : Value();
  engine_.answer(worker, {answer->verdict, checkpoint.string(), changed});
}

void Controller::log(const Step& step) {
  for (const Action& action : step.actions) patiently([&] { files_.log(action, step.time); });
}

void Controller::write_urgent_files() {
  patiently([&] { files_.flush_urgent(); });
  if (files_.waiting_bytes() > kMostWaitingBytes) write_files_now();
}

void Controller::perform(const Action& action) {
  console_.show(action);
  std::visit(base::Overload{[&](const Launch& what) { launch(what); }, [&](const TakeOver& what) { take_over(what); },
                            [&](const DiscardDirectory& what) { discard(what.directory); },
                            [&](const AskSearcher& ask) { searcher_.suggest(experiment_.searcher(), ask.trial); },
                            [&](const KillWorker& kill) { engine_.kill(worker_id(kill.trial, kill.attempt)); },
                            [](const auto&) {}},
             action);
  callbacks_.show(action);
}

void Controller::turn_ends(const std::vector<Step>& turn) {
  setting_.description.reset();
  for (const std::string& id : std::exchange(unanswered_, {})) requests_.answer(id, "");
  for (const Step& step : turn) {
    if (const auto* ended = std::get_if<WorkerEnded>(&step.event)) {
      console_.worker_ended(ended->trial);
      discard_half_checkpoints(*ended);
    }
    snapshots_.add(step.event, step.actions);
  }
  if (snapshots_.due(experiment_)) patiently([&] { take_snapshot(); });
  callbacks_.step_ends();
}

TrialAssignment Controller::assignment_of(const Launch& launch) const {
  const Trial& trial = experiment_.trials().at(launch.trial);
  const CheckpointConfig& checkpoints = setting_.options.run_config.checkpoint_config;
  std::optional<Resources> workers = launch.shares.empty() ? launch.needs.of_workers : launch.shares.front().of_workers;
  if (workers) workers = resources::with_kinds(std::move(*workers), launch.machine, launch.place.gpus);
  return {.experiment_name = setting_.experiment_name,
          .trial = trial.index,
          .trial_id = trial.id,
          .trial_name = setting_.trainable.name + "_" + trial.id,
          .trial_directory = work_place().path_of(trial.directory, launch.place.node).string(),
          .attempt = launch.attempt,
          .generation = work_place().generation(),
          .function = setting_.trainable.host_function,
          .program = setting_.trainable.program,
          .config = launch.config,
          .parameters = setting_.trainable.parameters,
          .metric = setting_.options.tune_config.metric.name,
          .checkpoint =
              launch.checkpoint.empty() ? "" : work_place().checkpoint(launch.checkpoint, launch.place.node).string(),
          .checkpoint_metrics = launch.checkpoint_metrics,
          .step = launch.step,
          .seed = static_cast<std::int64_t>(setting_.options.tune_config.seed),
          .resources = launch.needs.total,
          .worker_resources = workers,
          .worker_nodes = nodes_for_workers(launch),
          .node_ip = address_of(launch.place.node),
          .checkpoint_frequency = checkpoints.checkpoint_frequency.value_or(0),
          .checkpoint_at_end = checkpoints.checkpoint_at_end.value_or(false),
          .runs_in_directory = setting_.options.run_config.chdir_to_trial_dir,
          .visible_devices = resources::visible_devices(launch.machine, launch.place, engine_.nodes())};
}

// Returns the names of the nodes on which the trial may start workers, if it has several.
std::vector<std::string> Controller::nodes_for_workers(const Launch& launch) const {
  std::vector<std::string> names;
  for (const Share& share : launch.shares) {
    if (share.of_workers) names.push_back(experiment_.cluster().node(share.place.node).name);
  }
  return names;
}

std::string Controller::address_of(engine::NodeId node) const {
  const resources::Cluster& cluster = experiment_.cluster();
  const std::string address = cluster.contains(node) ? cluster.node(node).address : "";
  return address.empty() ? "127.0.0.1" : address;
}

void Controller::launch(const Launch& launch) {
  const Trial& trial = experiment_.trials().at(launch.trial);
  if (launch.attempt == 1 && files_.found_directory_of(launch.trial)) remove_forgotten_checkpoints(trial);
  patiently([&] { work_place().make_directory(trial.directory); });
  agents_.begin(launch);
  engine_.start(worker_id(launch.trial, launch.attempt),
                {.assignment = {entry_of(setting_.trainable), to_value(assignment_of(launch))},
                 .node = launch.place.node,
                 .directory = work_place().path_of(trial.directory, launch.place.node),
                 .needs = needs_of(launch.checkpoint),
                 .cpus = launch.needs.own_cpus,
                 .memory_bytes = setting_.options.run_config.limits.memory_bytes,
                 .starts_workers = launch.needs.of_workers.has_value()});
}

// Keeps apart what agent and trial print: they may be written on different machines.
void Controller::start_agent(engine::WorkerId agent, TrialIndex trial, engine::NodeId node, Value payload) {
  const std::string directory = fmt::format("{}/{}{}", experiment_.trials().at(trial).directory, kAgentPrefix, node);
  patiently([&] {
    base::make_own_directory(path_of(directory));
    work_place().make_directory(directory);
  });
  engine_.start(agent, {.assignment = {std::string(worker::agent_entry), std::move(payload)},
                        .node = node,
                        .directory = work_place().path_of(directory, node),
                        .starts_workers = true});
}

// Removes checkpoint directories of a trial of the same name, whose rows the store lost in a loss of power.
void Controller::remove_forgotten_checkpoints(const Trial& trial) {
  for (const std::string& name : base::list_directory(path_of(trial.directory))) {
    if (!checkpoint::is_name_of_checkpoint(name)) continue;
    checkpoint::remove_directory(directory(), {trial.directory + "/" + name, "the directory of a trial"});
  }
}

void Controller::take_over(const TakeOver& take_over) {
  const Launch& start = take_over.start;
  const engine::WorkerId worker = worker_id(start.trial, start.attempt);
  agents_.begin(start);
  engine_.bring(worker, needs_of(start.checkpoint));
  engine_.answer(worker, {channel::Verdict::take_over, "", to_value(assignment_of(start))});
}

// Removes directories that the worker was about to report when it died. A worker that ended by itself has cleaned up
// already.
void Controller::discard_half_checkpoints(const WorkerEnded& ended) {
  if (ended.exit.kind == engine::Exit::Kind::code && ended.exit.value == 0) return;
  const fs::path trial = experiment_.trials().at(ended.trial).directory;
  const fs::path directory = work_place().root() / trial;
  if (!fs::is_directory(directory)) return;
  const std::string prefix = checkpoint::reporting_prefix(ended.attempt);
  for (const std::string& name : base::list_directory(directory)) {
    if (name.starts_with(prefix)) discard(trial / name);
  }
}

// ---- Between the turns, and at the end

void Controller::tick(TimePoint now) {
  console_.tick(now);
  warn(files_.take_warnings());
  warn(callbacks_.take_warnings());
}

void Controller::add_deadlines(control::Earliest& earliest) const {
  earliest.add(console_.next_tick());
  earliest.add(next_requests_);
  if (watches_memory()) earliest.add(next_memory_check_);
}

void Controller::end_turns() {
  patiently([&] { take_snapshot(); });
}

void Controller::session_ends() {
  callbacks_.end();
  warn(callbacks_.take_warnings());
}

// Returns the checkpoints that trials may continue from, and the latest one of every trial for the user.
std::set<std::string> Controller::checkpoints_to_keep() const {
  std::vector<checkpoint::CheckpointId> needed = experiment_.needed_checkpoints();
  for (const Trial& trial : experiment_.trials()) {
    if (trial.latest_checkpoint) needed.push_back(*trial.latest_checkpoint);
  }
  std::set<std::string> directories;
  const checkpoint::CheckpointRegistry& registry = experiment_.checkpoint_registry();
  for (const checkpoint::CheckpointId id : needed) {
    if (registry.contains(id)) directories.insert(registry.get(id).directory);
  }
  return directories;
}

ExperimentInfo Controller::info() const {
  const auto& [space, tune, run] = setting_.options;
  return {.name = setting_.experiment_name,
          .path = directory(),
          .stop = run.stop,
          .num_samples = tune.num_samples,
          .total_num_samples = static_cast<std::int64_t>(experiment_.trials().size()) + experiment_.trials_to_come(),
          .time_budget = tune.time_budget};
}

void Controller::take_snapshot() {
  files_.flush();
  snapshots_.take({experiment_, files_, running_time_}, {.event = last_event(), .deletions = pending_deletions()});
}

}  // namespace cadre::tune
