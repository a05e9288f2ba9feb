#include "world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>

#include "base/json.h"
#include "tune/resource_needs.h"
#include "tune/searcher_thread.h"
#include "tune/trial_places.h"

namespace cadre::tune {
namespace {

using engine::simulated::Step;

engine::WorkerId worker_id(TrialIndex trial, std::int64_t attempt) {
  return std::uint64_t{trial} << 32 | static_cast<std::uint32_t>(attempt);
}

Value learner_start(const Launch& launch) {
  return Dict{{"step", launch.step},
              {"score", launch.checkpoint_metrics.get<double>("score", 0)},
              {"lr", launch.config.get<double>("lr")}};
}

// A function or class that learns at its own speed and has random faults. A learner that offers its checkpoints writes
// them when it is asked.
class Learner final : public engine::simulated::Behaviour {
 public:
  Learner(std::uint64_t seed, const Value& start, bool offers, Mishaps faults)
      : random_(seed), offers_(offers), faults_(faults) {
    begin(start);
  }

  Step next(const channel::Answer& answer) override {
    const auto after = std::chrono::milliseconds(1 + random_() % 50);
    const double fault = std::uniform_real_distribution(0.0, 1.0)(random_);
    if (answer.verdict == channel::Verdict::take_over) {
      if (std::uniform_real_distribution(0.0, 1.0)(random_) < faults_.declines) return {after, Step::Decline{}};
      begin(answer.assignment);
    }
    if (fault < faults_.throws) return {after, Step::Throw{"a fault of the simulation"}};
    if (fault < faults_.throws + faults_.dies) return {after, Step::Die{{engine::Exit::Kind::signal, 11, {}}}};
    if (fault < faults_.throws + faults_.dies + faults_.returns) return {after, Step::Return{}};
    if (std::uniform_real_distribution(0.0, 1.0)(random_) < faults_.hangs) return {after, Step::Hang{}};
    if (answer.verdict == channel::Verdict::save) {
      last_.checkpoint = fmt::format(".reporting_{}", step_);
      last_.offers_checkpoint = false;
      return {after, last_};
    }
    score_ += lr_ * (1 - score_);
    ++step_;
    Metrics metrics{{"training_iteration", step_}, {"score", faults_.plateau ? std::round(score_) : score_}};
    if (fault > 1 - faults_.no_metric) metrics.erase("score");
    if (offers_ && step_ % 7 == 0) metrics.set("should_checkpoint", true);  // as a callback would
    const bool saves = !offers_ && step_ % 3 == 0;
    last_ = {.step = step_,
             .metrics = std::move(metrics),
             .checkpoint = saves ? fmt::format(".reporting_{}", step_) : "",
             .offers_checkpoint = offers_};
    return {after, last_};
  }

  bool ignores_stop() override { return std::uniform_real_distribution(0.0, 1.0)(random_) < faults_.ignores_stop; }

 private:
  void begin(const Value& start) {
    const Config values(start.dict());
    step_ = values.get<std::int64_t>("step");
    score_ = values.get<double>("score");
    lr_ = values.get<double>("lr");
  }

  std::mt19937_64 random_;
  bool offers_;
  Mishaps faults_;
  std::int64_t step_ = 0;
  double score_ = 0;
  double lr_ = 0;
  channel::Report last_;
};

// Returns the whole state, including the parts that a snapshot leaves to separate rows.
std::string state_of(const Experiment& experiment) {
  std::string state = to_json(experiment.save());
  for (const Trial& trial : experiment.trials()) state += "\n" + to_json(experiment.save_trial(trial.index));
  return state;
}

}  // namespace

World::World(std::uint64_t seed, TunerOptions options, Resources machine, Trainable trainable, Mishaps faults,
             Nodes nodes)
    : random_(seed),
      trainable_(std::move(trainable)),
      options_(std::move(options)),
      resources_(std::move(machine)),
      faults_(faults),
      nodes_(std::move(nodes)),
      node_random_(seed) {
  experiment_ = std::make_unique<Experiment>(trainable_, options_);
  begin();
}

void World::begin(ControllerStarted::Errored errored) {
  std::vector<engine::Node> nodes;
  for (const Resources& machine : nodes_.machines)
    nodes.push_back({.id = next_node_++, .name = fmt::format("node{}", next_node_), .resources = machine});
  if (nodes.empty()) nodes.push_back({.resources = resources_});
  engine_ = std::make_unique<engine::simulated::SimulatedEngine>(
      nodes, [this](const engine::WorkerSpec& spec) { return make_behaviour(spec); });
  present_.clear();
  ready_.clear();
  doomed_.clear();
  node_of_.clear();
  late_.clear();
  robbed_.clear();
  for (const engine::Node& node : nodes) {
    present_.emplace(node.id, node.resources);
    ready_.insert(node.id);
  }
  timers_ = {};
  asked_.reset();
  alive_.clear();
  ControllerStarted started{
      .resources = engine_->resources(), .errored = errored, .nodes = resources::node_list(engine_->nodes())};
  for (const auto& [id, directory] : existing_) {
    if (std::uniform_real_distribution(0.0, 1.0)(random_) < faults_.loses_checkpoint)
      started.lost_checkpoints.push_back(id);
  }
  lost += static_cast<std::int64_t>(started.lost_checkpoints.size());
  for (const checkpoint::CheckpointId id : started.lost_checkpoints)
    std::erase_if(synced_, [&](const auto& entry) { return entry.second == id; });
  handle(started);
}

std::unique_ptr<engine::simulated::Behaviour> World::make_behaviour(const engine::WorkerSpec& spec) {
  return std::make_unique<Learner>(random_(), spec.assignment.payload, trainable_.parameters.contains(kOffers),
                                   faults_);
}

bool World::step() {
  if (experiment_->finished()) {
    check_end();
    return false;
  }
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<engine::Engine::Clock::time_point> due = timers_.next();
  if (asked_) due = std::min(due.value_or(asked_->answer_due), asked_->answer_due);
  if (due) timeout = std::max(*due - engine_->now(), std::chrono::nanoseconds(0));
  for (engine::Event& event : engine_->wait(timeout)) {
    if (auto* exited = std::get_if<engine::Exited>(&event)) {
      alive_.erase(exited->worker);
      WorkerEnded ended{static_cast<TrialIndex>(exited->worker >> 32),
                        static_cast<std::int64_t>(exited->worker & 0xffffffff),
                        exited->exit,
                        {}};
      if (const auto robbed = robbed_.extract(exited->worker)) {
        ended.exit = {.kind = engine::Exit::Kind::node_lost};
        ended.elsewhere = robbed.mapped();
      }
      const Trial before = experiment_->trials().at(ended.trial);
      handle(ended);
      if (ended.exit.kind == engine::Exit::Kind::node_lost) check_node_lost(ended, before);
      continue;
    }
    if (const auto* joined = std::get_if<engine::NodeJoined>(&event)) {
      present_.emplace(joined->node.id, joined->node.resources);
      ready_.insert(joined->node.id);
      handle(*joined);
      continue;
    }
    if (const auto* draining = std::get_if<engine::NodeDraining>(&event)) {
      ready_.erase(draining->node);
      handle(*draining);
      continue;
    }
    if (const auto* left = std::get_if<engine::NodeLeft>(&event)) {
      ++nodes_lost;
      ready_.erase(left->node);
      present_.erase(left->node);
      doomed_.erase(left->node);
      for (const engine::WorkerId worker : alive_)
        EXPECT_TRUE(node_of_.at(worker) != left->node || late_.contains(worker)) << "it runs on";
      handle(*left);
      lose_parts(left->node);
      continue;
    }
    auto& [worker, message] = std::get<engine::Received>(event);
    const auto trial = static_cast<TrialIndex>(worker >> 32);
    const auto attempt = static_cast<std::int64_t>(worker & 0xffffffff);
    if (!std::holds_alternative<channel::Report>(message)) alive_.erase(worker);
    if (auto* report = std::get_if<channel::Report>(&message)) {
      handle(ResultReported{trial, attempt, std::move(*report)});
    } else if (auto* failed = std::get_if<channel::Failed>(&message)) {
      handle(FunctionThrew{trial, attempt, std::move(failed->message)});
    } else if (std::holds_alternative<channel::Declined>(message)) {
      handle(WorkerDeclined{trial, attempt});
    } else {
      handle(FunctionReturned{trial, attempt});
    }
  }
  if (asked_ && engine_->now() >= asked_->answer_due) {
    const TrialIndex trial = std::exchange(asked_, std::nullopt)->trial;
    handle(ask(experiment_->searcher(), trial));
  }
  if (random_() % 16 == 0 && !existing_.empty()) {
    CheckpointsSynced synced;
    for (const auto& [id, directory] : existing_) synced.checkpoints.push_back(id);
    handle(synced);
  }
  for (const Timer& timer : timers_.take_due(engine_->now())) {
    if (experiment_->awaits(timer)) handle(TimerFired{timer});
  }
  if (std::uniform_real_distribution(0.0, 1.0)(random_) < faults_.lacks_memory) handle(MemoryRunsShort{});
  if (std::uniform_real_distribution(0.0, 1.0)(node_random_) < nodes_.changes) change_nodes();
  return true;
}

// Kills the workers of trials that have a part on a node which has left, as TrialAgents does.
void World::lose_parts(engine::NodeId node) {
  for (const Trial& trial : experiment_->trials()) {
    const engine::WorkerId worker = worker_id(trial.index, trial.attempt);
    if (trial.shares.empty() || trial.node == node || !trial.is_on(node) || !alive_.contains(worker)) continue;
    robbed_[worker] = node;
    engine_->kill(worker);
  }
}

// Returns true if a trial has room on these nodes, when nothing else runs, and so many of the first kind.
bool World::has_room(const std::set<engine::NodeId>& nodes, std::size_t more) const {
  resources::NodeList list{.may_change = true};
  for (const engine::NodeId node : nodes) list.nodes.push_back({.id = node, .resources = present_.at(node)});
  for (; more > 0; --more)
    list.nodes.push_back({.id = next_node_ + static_cast<engine::NodeId>(more), .resources = nodes_.machines.front()});
  resources::Cluster cluster(list);
  return tune::has_room(cluster, ResourceNeeds(trainable_).usual());
}

// Lets a node join, drain or leave. There is always one that stays or will join, which has room for a trial.
void World::change_nodes() {
  const auto soon = [this] { return std::chrono::milliseconds(node_random_() % 200); };
  const auto join = [&](const Resources& machine) {
    engine_->join({.id = next_node_++, .name = fmt::format("node{}", next_node_), .resources = machine}, soon());
  };
  if (node_random_() % 2 == 0) {
    if (present_.size() < 8) join(nodes_.machines[node_random_() % nodes_.machines.size()]);
    return;
  }
  std::vector<engine::NodeId> staying;
  std::ranges::set_difference(present_ | std::views::keys, doomed_, std::back_inserter(staying));
  if (staying.empty()) return;
  const engine::NodeId node = staying[node_random_() % staying.size()];
  doomed_.insert(node);
  std::set<engine::NodeId> left(staying.begin(), staying.end());
  left.erase(node);
  for (std::size_t more = 0; !has_room(left, more); ++more) join(nodes_.machines.front());
  const auto after = soon();
  if (node_random_() % 3 != 0) engine_->drain(node, after);
  engine_->leave(node, after + soon());
}

// Returns true if a trial that is restarted goes on on another node: its own drains, or has no room for it any more.
bool World::is_moved(const Trial& trial) const {
  const auto is_ready = [this](const Share& share) { return ready_.contains(share.place.node); };
  return !ready_.contains(trial.node) || !std::ranges::all_of(trial.shares, is_ready) || !trial.held;
}

// Checks that the loss of a node counts as no failure of the trial, and ends none.
void World::check_node_lost(const WorkerEnded& event, const Trial& before) const {
  const Trial& trial = experiment_->trials().at(event.trial);
  ASSERT_EQ(trial.failures, before.failures) << trial.id;
  ASSERT_EQ(trial.restore_failures, before.restore_failures) << trial.id;
  if (before.worker != WorkerState::killed) {
    ASSERT_TRUE(trial.status != TrialStatus::error || before.status == TrialStatus::error) << trial.error;
  }
}

void World::kill_controller() {
  replay();
  begin();
}

void World::interrupt() {
  handle(ExperimentInterrupted{});
  run_to_the_end();
  kill_controller();
}

void World::check_all_saved() const {
  for (const Trial& trial : experiment_->trials()) {
    if (trial.step > 0) check_saved(trial);
  }
}

void World::restore_errored(ControllerStarted::Errored errored) {
  replay();
  begin(errored);
}

// Replays all events, and the last snapshot with the events after it: both must lead to the controller's state.
void World::replay() {
  auto again = std::make_unique<Experiment>(trainable_, options_);
  Experiment shortcut(trainable_, options_);
  if (!snapshot_.is_null())
    shortcut.load(base::parse_json(to_json(snapshot_), "the snapshot"),
                  [this](TrialIndex trial) { return ended_trials_.at(trial); });
  for (std::size_t i = events_in_snapshot_; i < recorded_.size(); ++i) {
    Actions ignored;
    shortcut.handle(recorded_[i], ignored);
  }
  std::vector<std::string> decisions;
  for (const Event& event : recorded_) {
    Actions actions;
    again->handle(event, actions);
    for (const Action& action : actions) {
      if (const auto* made = std::get_if<RecordDecision>(&action))
        decisions.push_back(fmt::format("{} {} {}", to_string(made->kind), made->trial, base::to_json(made->data)));
    }
  }
  ASSERT_EQ(decisions, decisions_) << "the same events led to other decisions";
  const std::string state = state_of(*experiment_);
  ASSERT_EQ(state_of(*again), state) << "the same events led to another state";
  ASSERT_EQ(state_of(shortcut), state) << "a snapshot and the events after it led to another state";
  experiment_ = std::move(again);
}

void World::handle(const Event& event) {
  recorded_.push_back(event);
  Actions actions;
  experiment_->handle(event, actions);
  changed_.add(event, actions);
  check();
  check_decisions(event, actions);
  if (random_() % 64 == 0) take_snapshot();
  for (const Action& action : actions) perform(action);
  for (const Trial& trial : experiment_->trials()) {
    if (trial.worker != WorkerState::busy) continue;
    ASSERT_EQ(told_.at(trial.index), trial.present_needs()) << trial.id << " does not know what it has";
  }
}

void World::take_snapshot() {
  for (const TrialIndex trial : changed_.trials()) {
    if (experiment_->trials()[trial].ended()) {
      ended_trials_[trial] = experiment_->save_trial(trial);
    } else {
      ended_trials_.erase(trial);
    }
  }
  changed_.forget();
  snapshot_ = experiment_->save();
  events_in_snapshot_ = recorded_.size();
}

void World::perform(const Action& action) {
  if (const auto* made = std::get_if<RecordDecision>(&action)) {
    decisions_.push_back(fmt::format("{} {} {}", to_string(made->kind), made->trial, base::to_json(made->data)));
    if (made->kind == DecisionKind::retry) ++retries;
    if (made->kind == DecisionKind::save) ++saves;
    if (made->kind == DecisionKind::take_over) ++takeovers;
    if (made->kind == DecisionKind::resources) ++changes;
    if (made->kind == DecisionKind::restart) is_moved(experiment_->trials().at(made->trial)) ? ++moves : ++restarts;
    if (made->kind == DecisionKind::resume || made->kind == DecisionKind::take_over)
      for (const Share& share : shares_of(experiment_->trials().at(made->trial)))
        ASSERT_TRUE(ready_.contains(share.place.node)) << made->trial << " goes on there";
    if (made->kind == DecisionKind::retry && made->data.size() == 3) ++workers_lost;
    if (made->kind == DecisionKind::exploit) check_exploit(*made);
    if (made->kind == DecisionKind::resume_errored && made->data.at(0).second.get<bool>()) shown_[made->trial] = 0;
  } else if (const auto* committed = std::get_if<CommitCheckpoint>(&action)) {
    for (const auto& [id, directory] : existing_) ASSERT_NE(directory, committed->directory) << "it exists already";
    ASSERT_TRUE(existing_.emplace(committed->id, committed->directory).second) << committed->id;
    owners_[committed->id] = committed->trial;
  } else if (const auto* deleted = std::get_if<DeleteCheckpoint>(&action)) {
    ASSERT_EQ(existing_.erase(deleted->id), 1u) << deleted->directory << " does not exist";
    for (const auto& [trial, newest] : synced_)
      ASSERT_NE(newest, deleted->id) << "none of trial " << trial << " is safe";
  } else if (const auto* synced = std::get_if<MarkSynced>(&action)) {
    checkpoint::CheckpointId& newest = synced_[owners_.at(synced->id)];
    newest = std::max(newest, synced->id);
  } else if (const auto* result = std::get_if<LogResult>(&action)) {
    check_result(*result);
  } else if (const auto* say = std::get_if<Say>(&action)) {
    for (const Trial& trial : experiment_->trials()) {
      if (say->text.find("trial " + trial.id + " has no checkpoint yet") != std::string::npos)
        ASSERT_FALSE(trial.latest_checkpoint) << say->text;
    }
  } else if (const auto* exploit = std::get_if<LogExploit>(&action)) {
    ++exploits;
    shown_[exploit->target] = exploit->donor_iteration;
    const auto lr = exploit->new_config.get<double>("lr");
    ASSERT_GE(lr, 0.001);
    ASSERT_LE(lr, 0.5);
  } else if (const auto* launch = std::get_if<Launch>(&action)) {
    check_start(*launch);
    told_[launch->trial] = launch->needs;
    ASSERT_EQ(launch->attempt, ++attempts_[launch->trial]) << "attempts of trial " << launch->trial;
    for (const engine::WorkerId worker : alive_) ASSERT_NE(worker >> 32, launch->trial) << "it has a worker";
    alive_.insert(worker_id(launch->trial, launch->attempt));
    node_of_[worker_id(launch->trial, launch->attempt)] = launch->place.node;
    ASSERT_TRUE(ready_.contains(launch->place.node)) << launch->trial << " on node " << launch->place.node;
    ASSERT_EQ(launch->machine, present_.at(launch->place.node));
    if (!launch->shares.empty()) ++parted;
    for (const Share& share : launch->shares)
      ASSERT_TRUE(ready_.contains(share.place.node)) << launch->trial << " on node " << share.place.node;
    const std::vector<engine::Node> there = engine_->nodes();
    if (std::ranges::find(there, launch->place.node, &engine::Node::id) == there.end())
      late_.insert(worker_id(launch->trial, launch->attempt));
    engine_->start(
        worker_id(launch->trial, launch->attempt),
        {.assignment = {"learner", learner_start(*launch)}, .node = launch->place.node, .directory = {}, .cpus = 1});
  } else if (const auto* take_over = std::get_if<TakeOver>(&action)) {
    const Launch& start = take_over->start;
    check_start(start);
    told_[start.trial] = start.needs;
    ASSERT_EQ(start.attempt, attempts_[start.trial]) << "attempts of trial " << start.trial;
    ASSERT_TRUE(alive_.contains(worker_id(start.trial, start.attempt)));
    engine_->answer(worker_id(start.trial, start.attempt), {channel::Verdict::take_over, "", learner_start(start)});
  } else if (const auto* answer = std::get_if<AnswerReport>(&action)) {
    if (answer->needs) told_[answer->trial] = *answer->needs;
    engine_->answer(worker_id(answer->trial, answer->attempt), {answer->verdict, answer->checkpoint, {}});
  } else if (const auto* ask = std::get_if<AskSearcher>(&action)) {
    ASSERT_FALSE(asked_) << "two suggestions at a time";
    asked_ = Asked{ask->trial, engine_->now() + std::chrono::milliseconds(random_() % 100)};
  } else if (const auto* kill = std::get_if<KillWorker>(&action)) {
    ++kills;
    engine_->kill(worker_id(kill->trial, kill->attempt));
  } else if (const auto* start = std::get_if<StartTimer>(&action)) {
    timers_.start(start->timer, engine_->now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                     std::chrono::duration<double>(start->seconds)));
  }
}

// Checks that the recorded decisions determine whose reports count: a reader of the store has nothing else to go by.
void World::check_decisions(const Event& event, const Actions& actions) {
  if (std::holds_alternative<ControllerStarted>(event)) counting_.clear();
  const auto last_word = [this](const auto& content) {
    if (attempts_[content.trial] == content.attempt) counting_.erase(content.trial);
  };
  if (const auto* returned = std::get_if<FunctionReturned>(&event)) last_word(*returned);
  if (const auto* threw = std::get_if<FunctionThrew>(&event)) last_word(*threw);
  if (const auto* declined = std::get_if<WorkerDeclined>(&event)) last_word(*declined);
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) last_word(*ended);
  for (const Action& action : actions) {
    const auto* made = std::get_if<RecordDecision>(&action);
    if (made == nullptr) continue;
    if (stops_worker(made->kind)) counting_.erase(made->trial);
    if (made->kind == DecisionKind::unpark) check_saved(experiment_->trials().at(made->trial));
    if (made->kind == DecisionKind::launch || made->kind == DecisionKind::resume ||
        made->kind == DecisionKind::take_over || made->kind == DecisionKind::save)
      counting_.insert(made->trial);
  }
  for (const Trial& trial : experiment_->trials())
    ASSERT_EQ(counting_.contains(trial.index), runs_user_code(trial.worker)) << trial.id;
}

// Checks that a trial that can be asked for checkpoints loses no result when its worker is ended.
void World::check_saved(const Trial& trial) const {
  if (!trainable_.parameters.contains(kOffers)) return;
  ASSERT_TRUE(trial.latest_checkpoint) << trial.id;
  ASSERT_EQ(experiment_->checkpoint_registry().get(*trial.latest_checkpoint).step, trial.step) << trial.id;
}

// Checks that the target continues from the donor's latest checkpoint, which exists.
void World::check_exploit(const RecordDecision& decision) const {
  const Config data(decision.data);
  const Trial& donor = experiment_->trials().at(data.get<TrialIndex>("donor"));
  ASSERT_TRUE(donor.latest_checkpoint) << donor.id;
  ASSERT_EQ(existing_.at(*donor.latest_checkpoint), data.get<std::string>("checkpoint")) << donor.id;
}

// Checks that the checkpoint that a worker continues from exists.
void World::check_start(const Launch& launch) const {
  if (launch.checkpoint.empty()) return;
  const auto exists = [&](const auto& entry) { return entry.second == launch.checkpoint; };
  ASSERT_TRUE(std::ranges::any_of(existing_, exists)) << launch.checkpoint << " was deleted";
}

// Checks that each step of a lineage is shown once, and in order.
void World::check_result(const LogResult& result) {
  const auto step = result.metrics.get<std::int64_t>("training_iteration");
  ASSERT_EQ(step, ++shown_[result.trial]) << "trial " << result.trial;
}

void World::check_end() const {
  const checkpoint::CheckpointRegistry& registry = experiment_->checkpoint_registry();
  EXPECT_EQ(engine_->workers(), 0u) << "a worker runs on";
  EXPECT_THAT(experiment_->resource_usage(), ::testing::StartsWith("0/")) << "resources are held at the end";
  for (const Trial& trial : experiment_->trials()) {
    EXPECT_TRUE(trial.ended() || experiment_->interrupted()) << trial.id;
    EXPECT_FALSE(trial.started_from) << trial.id << " holds a checkpoint without a worker";
    const bool saved_at_end = trainable_.parameters.contains(kOffers) && trial.status == TrialStatus::terminated &&
                              options_.run_config.checkpoint_config.checkpoint_at_end.value_or(false) &&
                              !options_.run_config.failure_config.fail_fast && !options_.tune_config.time_budget &&
                              options_.run_config.stop.stoppers.empty() && faults_.loses_checkpoint == 0 &&
                              faults_.returns == 0;
    const double reached = options_.run_config.stop.thresholds.at(0).second.value;
    if (saved_at_end && trial.last_result.number("training_iteration").value_or(0) >= reached) {
      EXPECT_TRUE(trial.latest_checkpoint && registry.get(*trial.latest_checkpoint).step == trial.step) << trial.id;
    }
  }
  for (const checkpoint::CheckpointId id : registry.all())
    EXPECT_TRUE(existing_.contains(id)) << registry.get(id).directory;
  EXPECT_EQ(registry.all().size(), existing_.size()) << "a checkpoint that nobody lists";
}

void World::check() const {
  std::map<engine::NodeId, double> cpus;  // in use
  std::int64_t parked = 0;
  std::map<std::pair<engine::NodeId, int>, double> gpus;  // in use, by node and number
  const checkpoint::CheckpointRegistry& registry = experiment_->checkpoint_registry();
  for (const Trial& trial : experiment_->trials()) {
    const engine::WorkerId worker = worker_id(trial.index, trial.attempt);
    double held = 0;
    for (const auto& [place, amounts, of_workers] : shares_of(trial)) {
      // What is held on a node that has left is given back when the worker has ended.
      ASSERT_TRUE(present_.contains(place.node) || late_.contains(worker) || place.node != trial.node)
          << trial.id << " has what left with node " << place.node;
      cpus[place.node] += amounts.cpus;
      held += amounts.cpus;
      for (const int gpu : place.gpus) gpus[{place.node, gpu}] += std::min(1.0, amounts.gpus);
    }
    if (trial.held) ASSERT_DOUBLE_EQ(held, trial.held->cpus) << trial.id;
    parked += trial.worker == WorkerState::parked ? 1 : 0;
    ASSERT_NE(trial.worker, WorkerState::waiting) << trial.id << " waits, and its report was handled";
    ASSERT_EQ(trial.parked_since > 0, trial.worker == WorkerState::parked) << trial.id;
    if (trial.worker == WorkerState::parked) {
      ASSERT_FALSE(trial.held) << trial.id;
      ASSERT_TRUE(trainable_.resources.gpus == 0 || options_.tune_config.parking.with_gpus) << trial.id;
    }
    const std::int64_t budget = options_.run_config.failure_config.max_failures;
    if (budget >= 0) {
      ASSERT_LE(trial.failures, budget + 1) << trial.id;
    }
    if (trial.backs_off) {
      ASSERT_EQ(trial.status, TrialStatus::pending) << trial.id;
      ASSERT_EQ(trial.worker, WorkerState::none) << trial.id;
    }
    if (trial.ended()) {
      ASSERT_FALSE(runs_user_code(trial.worker)) << trial.id;
      ASSERT_FALSE(is_blocked(trial.worker)) << trial.id;
    }
    if (trial.worker == WorkerState::busy) {  // a parked one may be saved
      ASSERT_EQ(trial.held, trial.present_needs().total) << trial.id << " runs with other resources than it is to have";
      ASSERT_EQ(trial.status, TrialStatus::running) << trial.id;
    }
    if (trial.status == TrialStatus::error) {
      ASSERT_FALSE(trial.error.empty()) << trial.id;
    }
    if (trial.latest_checkpoint) {
      ASSERT_NO_THROW(registry.get(*trial.latest_checkpoint)) << trial.id;
    }
  }
  for (const auto& [node, used] : cpus) {
    if (present_.contains(node)) ASSERT_LE(used, present_.at(node).cpus);
  }
  ASSERT_EQ(parked, experiment_->parked_workers());
  if (const auto& most = options_.tune_config.parking.max_workers) {
    ASSERT_LE(parked, *most);
  }
  for (const auto& [gpu, used] : gpus) {
    if (present_.contains(gpu.first)) ASSERT_LT(gpu.second, present_.at(gpu.first).gpus);
    ASSERT_LE(used, 1.0001);
  }
}

}  // namespace cadre::tune
