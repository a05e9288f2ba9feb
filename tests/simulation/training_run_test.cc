// The core of a training run under random reports, uploads, failures, orders and interruptions. SIMULATION_SEEDS is the
// number of worlds (default 1000), SIMULATION_FIRST_SEED the first seed: a failure names the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>

#include "base/json.h"
#include "checkpoint/checkpoint_files.h"
#include "seeds.h"
#include "train/assignment.h"
#include "train/report_barrier.h"
#include "train/run.h"

namespace cadre::train {
namespace {

test_support::Seeds seeds() { return test_support::Seeds(1000); }

constexpr std::int64_t kSteps = 30;

// A controller without processes: in each step a random rank acts.
class World {
 public:
  World(std::uint64_t seed, TrainerOptions options, double failures, bool has_parent, bool has_nodes = false)
      : random_(seed),
        node_random_(seed),
        has_nodes_(has_nodes),
        options_(std::move(options)),
        failures_(failures),
        has_parent_(has_parent),
        run_(std::make_unique<Run>(options_, has_parent)) {
    begin();
  }

  // Returns false when the run has ended.
  bool step() {
    if (run_->finished()) {
      while (!forwards_.empty()) end_forward();  // results are forwarded in the turn that decides them
      return false;
    }
    if (has_nodes_ ? change_nodes() : see_other_resources()) return true;
    if (!forwards_.empty() && (workers_.empty() || all_wait() || random_() % 3 == 0)) {
      end_forward();
    } else if (!publications_.empty() && (workers_.empty() || all_wait() || random_() % 3 == 0)) {
      end_publication();
    } else if (is_any_validator_busy() && (workers_.empty() || all_wait() || random_() % 4 == 0)) {
      act(validators_.at(busy_validator()));
    } else if (!uploads_.empty() && (workers_.empty() || all_wait() || random_() % (hurried_ ? 1000 : 3) == 0)) {
      end_upload();
    } else if (workers_.empty() && timers_.empty() && validators_.empty()) {
      throw std::logic_error("nothing will ever happen");
    } else if (workers_.empty() || (!timers_.empty() && random_() % 8 == 0)) {
      fire_timer();
    } else {
      act(random_worker());
    }
    return true;
  }
  void run_to_the_end() {
    for (int steps = 0; step(); ++steps) {
      if (steps > 100'000) throw std::logic_error("it does not come to an end");
    }
  }
  void interrupt() {
    handle(RunInterrupted{});
    run_to_the_end();
  }
  // Ends the controller and its workers; another controller replays the recorded events in a new Run.
  void kill_controller() {
    auto again = std::make_unique<Run>(options_);
    for (const Event& event : recorded_) {
      Actions ignored;
      again->handle(event, ignored);
    }
    ASSERT_TRUE(*again == *run_) << "the same events led to another state";
    run_ = std::move(again);
    begin();
  }

  const Run& run() const { return *run_; }
  const std::vector<std::int64_t>& shown() const { return shown_; }
  // Returns how often each requested validation was finished, by checkpoint directory.
  const std::map<std::string, std::int64_t>& validations() const { return validations_; }
  // Returns the directories that ranks have begun and that were neither committed nor removed.
  const std::set<std::string>& leftovers() const { return parts_; }
  std::int64_t retries = 0;
  std::map<std::string, std::int64_t> retries_of = {};  // by kind
  std::int64_t failed_uploads = 0;
  std::int64_t published = 0;  // reports that have waited for that
  std::int64_t resizes = 0;
  std::int64_t moves = 0;  // groups that have left nodes that drained
  std::int64_t nodes_lost = 0;
  bool may_lose_checkpoints = false;
  std::int64_t parent_ends_at = 0;  // step; 0: never
  bool has_parent() const { return has_parent_; }
  const std::vector<std::int64_t>& forwarded() const { return forwarded_; }

 private:
  struct Worker {
    std::int64_t step = 0;
    bool began = false;
    bool waits = false;  // in report()
    bool unwound = false;
    bool silent = false;  // it has sent its last message, or was killed
    std::vector<PromiseEnd> promises = {};
  };

  struct Validator {
    checkpoint::CheckpointId checkpoint = 0;
    std::int64_t attempt = 0;
    bool hangs = false;
    bool has_timeout = false;
    bool silent = false;  // it has sent its last message, or was killed
    engine::NodeId node = 0;
    double cpus = 1;
  };

  void begin() {
    cpus_.clear();
    ready_.clear();
    workers_.clear();
    validators_.clear();
    timers_.clear();
    uploads_.clear();
    publications_.clear();
    told_.clear();
    resizes_ = false;
    ControllerStarted started;
    for (const PendingCheckpoint& pending : run_->checkpoints().pending()) {
      if (may_lose_checkpoints && random_() % 4 == 0) started.lost_uploads.push_back(pending.number);
    }
    for (const auto& [id, directory] : existing_) {
      if (may_lose_checkpoints && random_() % 4 == 0) started.lost_checkpoints.push_back(id);
    }
    for (const checkpoint::CheckpointId lost : started.lost_checkpoints) validations_.erase(existing_.at(lost));
    started.machine = machine();
    started.nodes.may_change = has_nodes_;
    for (std::int64_t cpus = has_nodes_ ? capacity_ + spare_cpus_ : 0; cpus > 0;
         cpus -= static_cast<std::int64_t>(cpus_.rbegin()->second))
      started.nodes.nodes.push_back(make_node());
    handle(started);
  }

  engine::Node make_node() {
    const auto cpus = static_cast<double>(1 + node_random_() % 3);
    const engine::NodeId id = next_node_++;
    cpus_[id] = cpus;
    ready_.insert(id);
    return {.id = id, .name = "node" + std::to_string(id), .resources = {.cpus = cpus}};
  }

  // Lets a node join, drain or leave. Without failures a node leaves when nothing runs there.
  bool change_nodes() {
    const bool starves = workers_.empty() && validators_.empty() && timers_.empty() && uploads_.empty();
    if (node_random_() % 24 != 0 && !starves) return false;
    if (starves || (node_random_() % 2 == 0 && cpus_.size() < 8)) {
      handle(NodeJoined{make_node()});
      return true;
    }
    if (cpus_.empty()) return false;
    const engine::NodeId node =
        std::next(cpus_.begin(), static_cast<std::ptrdiff_t>(node_random_() % cpus_.size()))->first;
    if (ready_.contains(node) && (failures_ == 0 || node_random_() % 2 == 0)) {
      ready_.erase(node);
      handle(NodeDraining{.node = node});
    } else if (failures_ > 0 || !is_in_use(node)) {
      lose(node);
    }
    return true;
  }

  bool is_in_use(engine::NodeId node) const {
    return std::ranges::any_of(workers_, [&](const auto& worker) { return node_of(worker.first) == node; }) ||
           std::ranges::any_of(validators_, [&](const auto& validator) { return validator.second.node == node; });
  }
  engine::NodeId node_of(Rank rank) const { return places_.at(static_cast<std::size_t>(rank)).node; }

  void lose(engine::NodeId node) {
    const engine::Exit lost{engine::Exit::Kind::node_lost, 0, {}};
    const std::int64_t attempt = run_->attempt();
    std::vector<Rank> ranks;
    for (const auto& [rank, worker] : workers_) {
      if (node_of(rank) == node) ranks.push_back(rank);
    }
    std::vector<Validator> validators;
    for (const auto& [id, validator] : validators_) {
      if (validator.node == node) validators.push_back(validator);
    }
    if (!ranks.empty()) ++nodes_lost;
    ready_.erase(node);
    const bool fails = run_->status() == RunStatus::failing;  // for another reason
    const std::int64_t failures = retries_of["function"];
    for (const Validator& validator : validators) {
      validators_.erase(validator.checkpoint);
      handle(ValidatorEnded{validator.checkpoint, validator.attempt, lost});
    }
    for (const Rank rank : ranks) {
      workers_.erase(rank);
      handle(WorkerEnded{rank, attempt, lost});
    }
    cpus_.erase(node);
    handle(NodeLeft{.node = node});
    EXPECT_TRUE(fails || retries_of["function"] == failures) << "the loss of a node counts as the function's failure";
  }

  // Checks that nothing was placed on a node that is not ready, and that no node has more than it can.
  void check_node(engine::NodeId placed_on) {
    EXPECT_TRUE(ready_.contains(placed_on)) << "placed on node " << placed_on;
    std::map<engine::NodeId, double> used;
    for (const auto& [rank, worker] : workers_) ++used[node_of(rank)];
    for (const auto& [id, validator] : validators_) used[validator.node] += validator.cpus;
    for (const auto& [node, cpus] : used) EXPECT_LE(cpus, cpus_.at(node)) << "on node " << node;
  }

  void check_group(const LaunchGroup& group) {
    std::set<engine::NodeId> nodes;
    for (Rank rank = 0; rank < group.workers; ++rank) {
      check_node(node_of(rank));
      nodes.insert(node_of(rank));
      const worker::GroupPlace place = place_of(group, rank, {});
      EXPECT_EQ(place.num_nodes, std::ssize(group.machines));
      EXPECT_EQ(place.node_rank, std::ssize(nodes) - 1) << "ranks of a node are consecutive";
      EXPECT_EQ(place.local_rank == 0, rank == 0 || node_of(rank - 1) != node_of(rank));
    }
    EXPECT_EQ(nodes.size(), group.machines.size());
  }

  bool see_other_resources() {
    const WorkerRange& range = options_.scaling_config.num_workers;
    if (!range.is_elastic() || (random_() % 32 != 0 && run_->status() != RunStatus::starved)) return false;
    see_resources(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(range.max + 2)));
    return true;
  }

  void see_resources(std::int64_t workers) {
    capacity_ = std::min(workers, options_.scaling_config.num_workers.max);
    handle(ResourcesSeen{capacity_, machine()});
  }

  Resources machine() const { return {.cpus = static_cast<double>(capacity_ + spare_cpus_)}; }

  bool is_busy(const Validator& validator) const { return validator.silent || !validator.hangs; }
  bool is_any_validator_busy() const {
    return std::ranges::any_of(validators_, [this](const auto& entry) { return is_busy(entry.second); });
  }
  checkpoint::CheckpointId busy_validator() {
    std::vector<checkpoint::CheckpointId> busy;
    for (const auto& [id, validator] : validators_) {
      if (is_busy(validator)) busy.push_back(id);
    }
    return busy[random_() % busy.size()];
  }

  void act(Validator& validator) {
    const auto [checkpoint, attempt, hangs, has_timeout, silent, node, cpus] = validator;
    if (silent || chance(failures_ * 5)) {
      validators_.erase(checkpoint);
      return handle(ValidatorEnded{checkpoint, attempt, {engine::Exit::Kind::signal, SIGKILL, {}}});
    }
    if (has_timeout && chance(failures_ * 5)) {
      validator.hangs = true;
      return;
    }
    validator.silent = true;
    if (chance(failures_ * 5)) return handle(ValidatorThrew{checkpoint, attempt, "out of luck"});
    handle(ValidatorReturned{checkpoint, attempt, {{"accuracy", static_cast<std::int64_t>(random_() % 100)}}});
  }

  bool all_wait() const {
    return std::ranges::all_of(workers_, [](const auto& worker) { return worker.second.waits; });
  }

  Rank random_worker() {
    auto it = workers_.begin();
    std::advance(it, random_() % workers_.size());
    return it->first;
  }

  bool chance(double probability) { return std::uniform_real_distribution(0.0, 1.0)(random_) < probability; }

  void act(Rank rank) {
    Worker& worker = workers_.at(rank);
    const std::int64_t attempt = run_->attempt();
    if (worker.silent || chance(failures_ / 2)) {  // its process ends
      const engine::Exit exit = exit_of(worker);
      workers_.erase(rank);
      return handle(WorkerEnded{rank, attempt, exit});
    }
    if (!std::exchange(worker.began, true)) {
      if (std::exchange(begun_attempt_, attempt) != attempt) handle(GroupBegan{attempt});
      return;
    }
    if (!worker.promises.empty() && (worker.waits || worker.unwound || worker.step >= kSteps || random_() % 3 == 0))
      return end_promise(rank, worker);
    if (worker.unwound) {
      worker.silent = true;
      return handle(FunctionReturned{rank, attempt, {}});
    }
    if (worker.waits) return;
    if (chance(failures_ / 2)) {
      worker.silent = true;
      return handle(FunctionThrew{rank, attempt, "out of luck"});
    }
    if (worker.step >= kSteps) {
      worker.silent = true;
      handle(FunctionReturned{rank, attempt, worker.step});
      if (run_->is_present(attempt)) take(barrier_.returned(rank));
      return;
    }
    ++worker.step;
    if (!run_->is_present(attempt)) return stop(worker);
    worker.waits = true;
    PartReport said = part_of(rank, worker);
    if (said.part && is_awaited(*said.part)) {
      const bool is_named = said.part->kind == CheckpointPart::Kind::promised;
      worker.promises.push_back({.step = worker.step, .path = is_named ? in_place_name(worker.step) : ""});
    }
    take(barrier_.reported(rank, {worker.step, {{"step", worker.step}}, std::move(said)}, {}));
  }

  engine::Exit exit_of(const Worker& worker) {
    using Kind = engine::Exit::Kind;
    if (worker.silent) return {Kind::code, 0, {}};
    if (!worker.began && random_() % 2 == 0) return {Kind::not_started, 0, {}};
    return {Kind::signal, random_() % 2 == 0 ? SIGTERM : SIGKILL, {}};
  }

  std::string in_place_name(std::int64_t step) const {
    return "mine_" + std::to_string(run_->attempt()) + "_" + std::to_string(step);
  }

  PartReport part_of(Rank rank, const Worker& worker) {
    if ((worker.step + rank) % 3 == 1) return {};
    using Kind = CheckpointPart::Kind;
    PartReport said{.part = CheckpointPart{.rank = rank}, .waits = !hurried_ && random_() % 2 == 0};
    if (validates_ && worker.step % 3 != 0) {
      said.validation.emplace(WantedValidation{.function = "validate"});
      if (random_() % 2 == 0) said.validation->timeout_s = 10;
      if (random_() % 4 == 0) said.validation->resources = Resources{.cpus = 2};
    }
    said.until_published = said.waits && random_() % 4 == 0;
    CheckpointPart& part = *said.part;
    if ((worker.step + run_->attempt()) % 4 == 0) {  // the same kind for all ranks
      part.kind = random_() % 2 == 0 ? Kind::promised : Kind::in_place;
      if (part.kind == Kind::in_place) part.path = in_place_name(worker.step);
    } else if (random_() % 3 == 0) {
      part.kind = Kind::borrowed;
      part.path = "/of_the_user/" + std::to_string(++directories_made_);
      part.remove_source = random_() % 2 == 0;
      users_.insert(part.path);
    } else {
      if (random_() % 3 == 0) part.kind = Kind::copying;
      part.path = ".reporting_" + std::to_string(++directories_made_);
      parts_.insert(part.path);
    }
    return said;
  }

  void end_promise(Rank rank, Worker& worker) {
    PromiseEnd end = worker.promises.front();
    worker.promises.erase(worker.promises.begin());
    if (chance(failures_)) end.error = "out of luck";
    handle(PromiseEnded{rank, run_->attempt(), std::move(end)});
  }

  void end_upload() {
    auto it = uploads_.begin();
    std::advance(it, random_() % uploads_.size());
    const UploadCheckpoint upload = it->second;
    uploads_.erase(it);
    using base::TryAgain;
    if (chance(10 * failures_)) {
      ++failed_uploads;
      const TryAgain again[] = {TryAgain::never, TryAgain::later, TryAgain::later, TryAgain::when_there_is_space};
      return handle(UploadFailed{upload.number, "out of luck", again[random_() % 4]});
    }
    for (const CheckpointPart& part : upload.parts) {
      if (part.kind != CheckpointPart::Kind::borrowed) continue;
      ASSERT_TRUE(users_.contains(part.path)) << "it is gone before it was copied";
      parts_.insert(checkpoint::copy_name(upload.number, part.rank));
    }
    handle(CheckpointUploaded{upload.number});
  }

  void end_forward() {
    const ForwardResult result = forwards_.front();
    forwards_.erase(forwards_.begin());
    forwarded_.push_back(result.step);
    if (!result.checkpoint.empty()) {
      ASSERT_EQ(steps_.at(result.checkpoint), result.step);
    }
    handle(ResultForwarded{result.attempt, result.step != parent_ends_at});
  }

  void end_publication() {
    const AwaitPublication wait = publications_.front();
    publications_.erase(publications_.begin());
    handle(ReportPublished{wait.attempt, wait.step});
  }

  void take(std::optional<Event> event) {
    if (!event) return;
    while (!forwards_.empty()) end_forward();  // a turn may have other events, but no further report
    if (auto* report = std::get_if<GroupReported>(&*event)) {
      report->checkpoint.upload = std::ranges::any_of(report->checkpoint.parts, [](const CheckpointPart& part) {
        return part.kind == CheckpointPart::Kind::borrowed;
      });
      if (!report->checkpoint.parts.empty()) report->checkpoint.upload |= uploads_everything_;
      last_waits_ = report->checkpoint.waits && !report->checkpoint.parts.empty();
      last_step_ = report->step;
    }
    handle(*event);
  }
  // Unwinds a worker, so that its last message is FunctionReturned.
  static void stop(Worker& worker) {
    worker.waits = false;
    worker.unwound = true;
  }

  void fire_timer() {
    auto it = timers_.begin();
    std::advance(it, random_() % timers_.size());
    const Timer timer = it->second;
    timers_.erase(it);
    if (run_->awaits(timer)) handle(TimerFired{timer});
  }

  void handle(const Event& event) {
    recorded_.push_back(event);
    Actions actions;
    run_->handle(event, actions);
    for (const Action& action : actions) perform(action);
    const checkpoint::CheckpointRegistry& registry = run_->checkpoints().registry();
    for (const checkpoint::CheckpointId id : registry.all()) ASSERT_TRUE(existing_.contains(id)) << id;
    ASSERT_EQ(registry.size(), existing_.size()) << "a checkpoint that nobody lists";
    if (const auto& latest = run_->checkpoints().latest()) {
      ASSERT_TRUE(existing_.contains(*latest));
    }
    for (const std::string& read : {started_from_, told_}) {
      if (workers_.empty() || read.empty()) continue;
      ASSERT_TRUE(std::ranges::any_of(existing_, [&](const auto& one) { return one.second == read; }))
          << "the present group may still read " << read;
    }
    ASSERT_LE(run_->checkpoints().pending().size(), 17u);
    for (const PendingCheckpoint& pending : run_->checkpoints().pending()) {
      if (pending.state != PendingCheckpoint::State::uploading) continue;
      ASSERT_TRUE(uploads_.contains(pending.number)) << "nobody uploads " << pending.number;
    }
  }

  void perform(const Action& action) {
    if (const auto* validator = std::get_if<StartValidator>(&action)) {
      ASSERT_TRUE(existing_.contains(validator->id));
      const Validator started{.checkpoint = validator->id,
                              .attempt = validator->attempt,
                              .has_timeout = validator->wanted.timeout_s.has_value(),
                              .node = validator->place.node,
                              .cpus = validator->wanted.resources.value_or(Resources()).cpus};
      ASSERT_TRUE(validators_.emplace(validator->id, started).second) << "two validators of one checkpoint";
      ASSERT_LE(std::ssize(validators_), options_.validation.max_in_flight.value_or(1000));
      if (has_nodes_) return check_node(validator->place.node);
      ASSERT_LE(std::ssize(validators_) + std::ssize(workers_), capacity_ + spare_cpus_)
          << "more than the machine has: " << workers_.size() << " workers, " << validators_.size()
          << " validators, room for " << capacity_ << " and " << spare_cpus_ << ", status "
          << to_string(run_->status());
    } else if (const auto* end = std::get_if<KillValidator>(&action)) {
      if (validators_.contains(end->id)) validators_.at(end->id).silent = true;
    } else if (const auto* group = std::get_if<LaunchGroup>(&action)) {
      ASSERT_TRUE(workers_.empty()) << "two groups at a time";
      ASSERT_TRUE(run_->checkpoints().pending().empty()) << "it would begin before the newest checkpoint";
      const WorkerRange& range = options_.scaling_config.num_workers;
      ASSERT_EQ(group->workers, run_->world_size());
      ASSERT_TRUE(group->workers >= range.min && group->workers <= range.max) << group->workers;
      places_ = group->places;
      ASSERT_EQ(std::ssize(places_), group->workers) << "half a gang";
      if (range.is_elastic() && !has_nodes_) {
        ASSERT_LE(group->workers, capacity_);
      }
      if (std::exchange(resizes_, false)) {
        ASSERT_EQ(group->step, last_step_) << "something is done again";
      }
      committed_step_ = group->step;
      ASSERT_EQ(group->step, group->checkpoint.empty() ? 0 : steps_.at(group->checkpoint));
      started_from_ = group->checkpoint;
      told_.clear();
      for (Rank rank = 0; rank < group->workers; ++rank) workers_[rank] = Worker{.step = group->step};
      barrier_.begin(group->attempt, group->workers, {});
      if (has_nodes_) return check_group(*group);
      ASSERT_LE(std::ssize(validators_) + std::ssize(workers_), capacity_ + spare_cpus_)
          << "more than the machine has: " << workers_.size() << " workers, " << validators_.size()
          << " validators, room for " << capacity_ << " and " << spare_cpus_ << ", status "
          << to_string(run_->status());
    } else if (const auto* answer = std::get_if<AnswerGroup>(&action)) {
      if (run_->is_present(answer->attempt) || run_->status() == RunStatus::resizing) {
        for (const ForwardResult& result : forwards_)
          ASSERT_NE(result.attempt, answer->attempt) << "answered too early";
        for (const AwaitPublication& wait : publications_)
          ASSERT_TRUE(wait.attempt != answer->attempt || answer->stop) << "answered before it was published";
        told_ = answer->checkpoint;
        for (const PendingCheckpoint& pending : run_->checkpoints().pending())
          ASSERT_TRUE(!last_waits_ || pending.step > last_step_ || (answer->stop && run_->interrupted()))
              << "report() returned before the commit";
      }
      for (const Rank rank : barrier_.take_waiting()) {
        if (!workers_.contains(rank)) continue;
        Worker& worker = workers_.at(rank);
        worker.waits = false;
        if (answer->stop) stop(worker);
      }
    } else if (const auto* kill = std::get_if<KillWorker>(&action)) {
      if (workers_.contains(kill->rank)) workers_.at(kill->rank).silent = true;
    } else if (const auto* start = std::get_if<StartTimer>(&action)) {
      timers_[start->timer.key()] = start->timer;
    } else if (const auto* upload = std::get_if<UploadCheckpoint>(&action)) {
      ASSERT_TRUE(uploads_.emplace(upload->number, *upload).second) << "uploaded twice at a time";
    } else if (const auto* left = std::get_if<RemoveDirectory>(&action)) {
      parts_.erase(left->path);
      users_.erase(left->path);
    } else if (const auto* committed = std::get_if<CommitCheckpoint>(&action)) {
      ASSERT_GT(committed->step, std::exchange(committed_step_, committed->step)) << "not in the order of reports";
      for (const std::string& part : committed->from) {
        ASSERT_TRUE(part == committed->directory || parts_.erase(part) == 1) << part << " is not there";
      }
      ASSERT_TRUE(existing_.emplace(committed->id, committed->directory).second);
      if (run_->validations().find(committed->id) != nullptr) validations_[committed->directory] = 0;
      ASSERT_TRUE(steps_.emplace(committed->directory, committed->step).second) << "a name comes twice";
    } else if (const auto* deleted = std::get_if<DeleteCheckpoint>(&action)) {
      ASSERT_FALSE(validators_.contains(deleted->id) && !validators_.at(deleted->id).silent) << "it is being read";
      ASSERT_EQ(existing_.erase(deleted->id), 1u);
    } else if (const auto* result = std::get_if<ShowResult>(&action)) {
      shown_.push_back(result->step);
    } else if (const auto* forward = std::get_if<ForwardResult>(&action)) {
      ASSERT_TRUE(has_parent_);
      forwards_.push_back(*forward);
    } else if (const auto* wait = std::get_if<AwaitPublication>(&action)) {
      ASSERT_EQ(wait->step, last_step_);
      for (const PendingCheckpoint& pending : run_->checkpoints().pending())
        ASSERT_GT(pending.step, wait->step) << "published before the commit";
      publications_.push_back(*wait);
      ++published;
    } else if (const auto* decision = std::get_if<RecordDecision>(&action)) {
      if (decision->kind == DecisionKind::resize) {
        resizes_ = true;
        ++resizes;
        moves +=
            std::ranges::any_of(places_, [&](const resources::Place& one) { return !ready_.contains(one.node); }) &&
                    has_nodes_
                ? 1
                : 0;
      }
      if (decision->kind == DecisionKind::finish_validation)
        ++validations_[Config(decision->data).get<std::string>("checkpoint")];
      if (decision->kind != DecisionKind::retry) return;
      ++retries;
      ++retries_of[Config(decision->data).get<std::string>("kind", "function")];
    }
  }

  std::mt19937_64 random_;
  std::mt19937_64 node_random_;
  bool has_nodes_;
  engine::NodeId next_node_ = 0;
  std::map<engine::NodeId, double> cpus_;  // of present nodes
  std::set<engine::NodeId> ready_;         // of them
  std::vector<resources::Place> places_;   // of the present or last group
  TrainerOptions options_;
  double failures_;
  bool has_parent_;
  std::unique_ptr<Run> run_;
  ReportBarrier barrier_;
  std::vector<Event> recorded_;
  std::map<Rank, Worker> workers_;
  bool validates_ = random_() % 2 == 0;
  std::int64_t spare_cpus_ = static_cast<std::int64_t>(random_() % 3);  // besides the group's
  std::map<checkpoint::CheckpointId, Validator> validators_;
  std::map<std::string, std::int64_t> validations_;
  std::map<std::pair<Timer::Kind, std::int64_t>, Timer> timers_;
  std::map<CheckpointNumber, UploadCheckpoint> uploads_;  // uploads that have begun
  bool uploads_everything_ = random_() % 3 == 0;          // true: also if nothing has to be copied
  bool hurried_ = random_() % 8 == 0;                     // reports do not wait for uploads, which are slow
  std::set<std::string> parts_;                           // Cadre's directories that exist
  std::set<std::string> users_;                           // the user's directories that exist
  std::int64_t directories_made_ = 0;
  std::int64_t begun_attempt_ = 0;
  std::int64_t capacity_ = options_.scaling_config.num_workers.max;
  bool resizes_ = false;     // the next group starts because of its size
  bool last_waits_ = false;  // ranks wait in the last report
  std::int64_t last_step_ = 0;
  std::int64_t committed_step_ = 0;  // the last step committed in this attempt
  std::string told_;                 // the checkpoint in the last answer to the ranks
  std::map<checkpoint::CheckpointId, std::string> existing_;
  std::string started_from_;                   // the checkpoint that the current group started from
  std::map<std::string, std::int64_t> steps_;  // by directory, of all checkpoints that ever existed
  std::vector<std::int64_t> shown_;
  std::vector<AwaitPublication> publications_;
  std::vector<ForwardResult> forwards_;  // results that the parent has not taken yet
  std::vector<std::int64_t> forwarded_;
};

TrainerOptions random_options(std::mt19937_64& random, std::int64_t max_failures) {
  TrainerOptions options;
  options.scaling_config.num_workers = 1 + random() % 5;
  if (random() % 2 == 0) options.scaling_config.num_workers.max += static_cast<std::int64_t>(1 + random() % 3);
  options.run_config.failure_config = {max_failures, max_failures, max_failures};
  if (random() % 2 == 0) options.run_config.checkpoint_config.num_to_keep = static_cast<std::int64_t>(1 + random() % 3);
  options.validation.max_retries = static_cast<std::int64_t>(random() % 5) - 1;
  if (random() % 2 == 0) options.validation.max_in_flight = static_cast<std::int64_t>(1 + random() % 2);
  if (random() % 3 == 0) options.validation.order = ValidationOrder::newest_first;
  return options;
}

enum class Parent { none, sometimes, always };

template <class Act>
void in_many_worlds(double failures, std::int64_t max_failures, Parent parent, Act act) {
  const std::uint64_t first = seeds().first();
  for (std::uint64_t seed = first; seed < first + seeds().count() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    try {
      const bool has_parent = parent == Parent::always || (parent == Parent::sometimes && seed % 3 == 0);
      TrainerOptions options = random_options(random, max_failures);
      const bool has_nodes = seed % 3 == 1;
      if (has_nodes && seed % 2 == 0) options.scaling_config.placement_strategy = PlacementStrategy::spread;
      World world(seed, std::move(options), failures, has_parent, has_nodes);
      act(world, random);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Expects that every step was shown once, in order.
void expect_whole(const World& world) {
  EXPECT_EQ(world.run().status(), RunStatus::finished);
  EXPECT_TRUE(world.run().checkpoints().pending().empty());
  for (const auto& [checkpoint, times] : world.validations()) EXPECT_EQ(times, 1) << "validations of " << checkpoint;
  ASSERT_EQ(world.shown().size(), static_cast<std::size_t>(kSteps));
  for (std::size_t i = 0; i < world.shown().size(); ++i) EXPECT_EQ(world.shown()[i], static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(world.run().return_value().get<std::int64_t>(), kSteps);
  if (world.has_parent()) {
    EXPECT_EQ(world.forwarded(), world.shown());
  }
}

TEST(TrainingRunSimulation, WithoutFailuresEveryReportIsShownOnce) {
  std::int64_t resizes = 0;
  std::int64_t moves = 0;
  std::size_t validations = 0;
  std::int64_t published = 0;
  in_many_worlds(0, 0, Parent::sometimes, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    expect_whole(world);
    EXPECT_EQ(world.run().attempt(), 1 + world.resizes);
    EXPECT_TRUE(world.leftovers().empty()) << *world.leftovers().begin();
    resizes += world.resizes;
    moves += world.moves;
    validations += world.validations().size();
    published += world.published;
  });
  if (!seeds().are_many()) return;
  EXPECT_GT(resizes, 0);
  EXPECT_GT(moves, 0);
  EXPECT_GT(validations, 0u);
  EXPECT_GT(published, 0);
}

TEST(TrainingRunSimulation, WhateverFailsItGoesOnFromItsLastCheckpoint) {
  std::int64_t retries = 0;
  std::int64_t failed_uploads = 0;
  std::int64_t nodes_lost = 0;
  in_many_worlds(0.01, -1, Parent::sometimes, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    expect_whole(world);
    retries += world.retries;
    failed_uploads += world.failed_uploads;
    nodes_lost += world.nodes_lost;
  });
  if (!seeds().are_many()) return;
  EXPECT_GT(nodes_lost, 0);
  EXPECT_GT(retries, 0);
  EXPECT_GT(failed_uploads, 0);
}

TEST(TrainingRunSimulation, WhatItBelongsToSeesEveryStepOnceAndMayEndIt) {
  in_many_worlds(0.01, -1, Parent::always, [](World& world, std::mt19937_64& random) {
    world.parent_ends_at = static_cast<std::int64_t>(1 + random() % kSteps);
    world.run_to_the_end();
    EXPECT_TRUE(world.run().ended_by_parent());
    ASSERT_EQ(std::ssize(world.forwarded()), world.parent_ends_at);
    for (std::int64_t i = 0; i < world.parent_ends_at; ++i)
      EXPECT_EQ(world.forwarded()[static_cast<std::size_t>(i)], i + 1);
  });
}

TEST(TrainingRunSimulation, ItFailsWhenItsBudgetIsUsedUp) {
  std::int64_t failed = 0;
  in_many_worlds(0.05, 2, Parent::sometimes, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    EXPECT_LE(world.retries_of["function"], 2);
    EXPECT_LE(world.retries_of["preemption"], 2);
    if (world.run().status() != RunStatus::failed) return;
    ++failed;
    EXPECT_TRUE(world.retries_of["function"] == 2 || world.retries_of["preemption"] == 2 ||
                world.retries_of["start"] >= 2);
    EXPECT_NE(world.run().error(), "");
  });
  if (seeds().are_many()) EXPECT_GT(failed, 0);
}

TEST(TrainingRunSimulation, InterruptedAtAnyMomentItGoesOnAsItWas) {
  in_many_worlds(0.01, -1, Parent::none, [](World& world, std::mt19937_64& random) {
    world.may_lose_checkpoints = random() % 2 == 0;
    for (int interruptions = 0; interruptions < 4; ++interruptions) {
      for (std::uint64_t steps = random() % 80; steps > 0 && world.step(); --steps) {
      }
      if (random() % 2 == 0) world.interrupt();
      world.kill_controller();
      if (::testing::Test::HasFatalFailure()) return;
    }
    world.run_to_the_end();
    expect_whole(world);
  });
}

// ---- Single cases

template <class Wanted>
bool any_of(const Actions& actions) {
  return std::ranges::any_of(actions, [](const Action& action) { return std::holds_alternative<Wanted>(action); });
}

TEST(TrainingRunElastic, AGroupThatOnlyReportsAsyncWaitsForItsCheckpointToBeResized) {
  TrainerOptions options;
  options.scaling_config.num_workers = {1, 2};
  train::Run run(options);
  const auto handle = [&](const Event& event) {
    Actions actions;
    run.handle(event, actions);
    return actions;
  };
  handle(ResourcesSeen{1});
  handle(ControllerStarted{});
  handle(GroupBegan{1});
  const GroupCheckpoint async{
      .parts = {{.kind = CheckpointPart::Kind::borrowed, .path = "/tmp"}}, .waits = false, .upload = true};
  EXPECT_TRUE(any_of<AnswerGroup>(handle(GroupReported{.attempt = 1, .step = 1, .checkpoint = async})));
  EXPECT_FALSE(any_of<AnswerGroup>(handle(ResourcesSeen{2})));
  EXPECT_FALSE(any_of<AnswerGroup>(handle(GroupReported{.attempt = 1, .step = 2, .checkpoint = async})));
  EXPECT_FALSE(any_of<AnswerGroup>(handle(CheckpointUploaded{0})));
  EXPECT_TRUE(any_of<AnswerGroup>(handle(CheckpointUploaded{1})));
  EXPECT_EQ(to_string(run.status()), "RESIZING");
  handle(FunctionReturned{0, 1, {}});
  EXPECT_TRUE(any_of<LaunchGroup>(handle(WorkerEnded{0, 1, {engine::Exit::Kind::code, 0, {}}})));
  EXPECT_EQ(run.world_size(), 2);
}

TEST(TrainingRun, AReportThatComesBehindTheEndOfARankAddsNoResult) {
  TrainerOptions options;
  options.scaling_config.num_workers = 2;
  options.run_config.failure_config.max_failures = 1;
  train::Run run(options);
  const auto handle = [&](const Event& event) {
    Actions actions;
    run.handle(event, actions);
    return actions;
  };
  handle(ControllerStarted{});
  handle(GroupBegan{1});
  EXPECT_TRUE(run.counts({.attempt = 1, .step = 1}));
  handle(WorkerEnded{0, 1, {engine::Exit::Kind::signal, SIGKILL, {}}});  // all ranks had reported before it died
  const GroupReported late{.attempt = 1, .step = 1};
  EXPECT_FALSE(run.counts(late));
  EXPECT_FALSE(any_of<ShowResult>(handle(late)));
  handle(WorkerEnded{1, 1, {engine::Exit::Kind::code, 0, {}}});
  handle(GroupBegan{2});
  const GroupReported again{.attempt = 2, .step = 1};
  EXPECT_TRUE(run.counts(again)) << "nobody has seen the first one";
  EXPECT_TRUE(any_of<ShowResult>(handle(again)));
  EXPECT_FALSE(run.counts({.attempt = 2, .step = 1}));
}

TrainerOptions options_with(FailureConfig budgets) {
  TrainerOptions options;
  options.scaling_config.num_workers = 2;
  options.run_config.failure_config = budgets;
  return options;
}

// The outcome of a run whose groups end in given ways, in turn: the delays before its attempts, and its status.
struct Ended {
  std::vector<double> delays = {};
  std::int64_t attempts = 0;
  RunStatus status = {};
};

enum class Ending { not_started, before_the_function, terminated, killed };

Ended end_groups(FailureConfig budgets, const std::vector<Ending>& endings, std::int64_t most_attempts,
                 bool reports = false) {
  Run run(options_with(budgets));
  Ended ended;
  std::optional<Timer> timer;
  const auto handle = [&](const Event& event) {
    Actions actions;
    run.handle(event, actions);
    for (const Action& action : actions) {
      const auto* start = std::get_if<StartTimer>(&action);
      if (start == nullptr || start->timer.kind != Timer::Kind::retry) continue;
      timer = start->timer;
      ended.delays.push_back(start->seconds);
    }
  };
  handle(ControllerStarted{});
  while (run.attempt() <= most_attempts && run.status() != RunStatus::failed) {
    const std::int64_t attempt = run.attempt();
    const Ending ending = endings.at(static_cast<std::size_t>(attempt) % endings.size());
    using Kind = engine::Exit::Kind;
    engine::Exit exit{Kind::signal, ending == Ending::terminated ? SIGTERM : SIGKILL, {}};
    if (ending == Ending::not_started) exit = {Kind::not_started, 0, {}};
    if (ending != Ending::not_started && ending != Ending::before_the_function) handle(GroupBegan{attempt});
    if (reports) handle(GroupReported{.attempt = attempt, .step = attempt});
    for (const Rank rank : {1, 0}) handle(WorkerEnded{rank, attempt, rank == 1 ? exit : engine::Exit{}});
    if (timer) handle(TimerFired{*std::exchange(timer, std::nullopt)});
  }
  ended.attempts = run.attempt();
  ended.status = run.status();
  return ended;
}

TEST(TrainingRunBudgets, EachKindOfFailureHasItsOwn) {
  const auto attempts = [](FailureConfig budgets, Ending ending) { return end_groups(budgets, {ending}, 20).attempts; };
  const FailureConfig budgets{.max_failures = 1, .max_start_failures = 2, .max_preemption_failures = 3};
  EXPECT_EQ(attempts(budgets, Ending::killed), 2);
  EXPECT_EQ(attempts(budgets, Ending::not_started), 3);
  EXPECT_EQ(attempts(budgets, Ending::before_the_function), 3);
  EXPECT_EQ(attempts(budgets, Ending::terminated), 4);
  EXPECT_EQ(attempts({}, Ending::killed), 1) << "the defaults";
  EXPECT_EQ(attempts({}, Ending::not_started), 4);
  EXPECT_EQ(attempts({}, Ending::terminated), 21) << "without limit";
}

TEST(TrainingRunBudgets, FailuresToStartAreForgottenWhenAGroupHasBegun) {
  const FailureConfig budgets{.max_failures = -1, .max_start_failures = 1};
  EXPECT_EQ(end_groups(budgets, {Ending::not_started, Ending::killed}, 20).attempts, 21);
}

TEST(TrainingRunBudgets, WhatFailsAgainAndAgainWaitsLongerEachTime) {
  EXPECT_THAT(end_groups({.max_failures = -1}, {Ending::killed}, 6).delays, ::testing::ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(end_groups({.max_failures = -1}, {Ending::killed}, 6, true).delays, ::testing::ElementsAre())
      << "there were new reports";
  EXPECT_THAT(end_groups({.max_start_failures = -1}, {Ending::not_started}, 3).delays, ::testing::ElementsAre(1, 2, 4));
}

TEST(TrainingRunValidation, ThatFailsAgainAndAgainWaitsLongerEachTime) {
  TrainerOptions options;
  options.validation.max_retries = -1;
  train::Run run(options);
  std::vector<double> delays;
  std::optional<StartValidator> started;
  std::optional<Timer> timer;
  const auto handle = [&](const Event& event) {
    Actions actions;
    run.handle(event, actions);
    for (const Action& action : actions) {
      if (const auto* start = std::get_if<StartValidator>(&action)) started = *start;
      const auto* pause = std::get_if<StartTimer>(&action);
      if (pause == nullptr || pause->timer.kind != Timer::Kind::validation_retry) continue;
      timer = pause->timer;
      delays.push_back(pause->seconds);
    }
  };
  handle(ControllerStarted{.machine = {.cpus = 2}});
  handle(GroupBegan{1});
  const GroupCheckpoint checkpoint{.parts = {{.kind = CheckpointPart::Kind::ours, .path = ".reporting_0"}},
                                   .validation = WantedValidation{.function = "validate"}};
  handle(GroupReported{.attempt = 1, .step = 1, .checkpoint = checkpoint});
  for (std::int64_t attempt = 1; attempt <= 6; ++attempt) {
    ASSERT_TRUE(started) << "try " << attempt;
    const checkpoint::CheckpointId id = std::exchange(started, std::nullopt)->id;
    handle(ValidatorThrew{id, attempt, "out of luck"});
    handle(ValidatorEnded{id, attempt, {engine::Exit::Kind::code, 0, {}}});
    ASSERT_EQ(started.has_value(), attempt <= 2) << "behind try " << attempt;
    EXPECT_TRUE(run.validations().is_pending(id));
    if (timer) handle(TimerFired{*std::exchange(timer, std::nullopt)});
  }
  EXPECT_THAT(delays, ::testing::ElementsAre(1, 2, 4, 8));
}

}  // namespace
}  // namespace cadre::train
