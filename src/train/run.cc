#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "base/retry_delay.h"
#include "cadre/detail/enum_names.h"
#include "train/capacity.h"

namespace cadre::train {
namespace {

// Time for other ranks to report why they fail. A rank that was connected to a dead one notices that in milliseconds,
// and is often heard first.
constexpr double kSettlingSeconds = 0.25;
// With more pending checkpoints than this, ranks wait in report(), so that they do not fill the disk.
constexpr std::size_t kMostPending = 16;

const char* name_of(FailureKind kind) {
  constexpr std::array names{"function", "start", "preemption"};
  return names.at(static_cast<std::size_t>(kind));
}

const char* what_happened(FailureKind kind) {
  constexpr std::array names{"has failed", "could not be started", "was preempted"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace

Run::Run(const TrainerOptions& options, bool has_parent)
    : range_(options.scaling_config.num_workers),
      worker_resources_(options.scaling_config.worker_resources()),
      strategy_(options.scaling_config.placement_strategy),
      failure_config_(options.run_config.failure_config),
      stop_grace_s_(options.run_config.stop_grace_period.count()),
      has_parent_(has_parent),
      capacity_(range_.max),
      world_size_(range_.max),
      checkpoints_(options.run_config.checkpoint_config),
      validations_(options.validation) {}

void Run::handle(const Event& event, Actions& actions) {
  actions_ = &actions;
  std::visit([this](const auto& content) { on(content); }, event);
  stop_ranks_that_wait_in_vain();
  start_validations();
  const std::size_t before = actions.size();
  checkpoints_.delete_unneeded(actions);
  for (std::size_t i = before; i < actions.size(); ++i) validations_.forget(std::get<DeleteCheckpoint>(actions[i]).id);
  actions_ = nullptr;
}

bool Run::finished() const {
  return workers_ == 0 && !waits_for_uploads() && !validations_.has_workers() &&
         (interrupted_ || status_ == RunStatus::finished || status_ == RunStatus::failed);
}

bool Run::awaits(const Timer& timer) const {
  if (timer.kind == Timer::Kind::upload) return checkpoints_.is_pausing(timer.attempt);
  if (timer.kind == Timer::Kind::validation) return validations_.is_running(timer.attempt);
  if (timer.kind == Timer::Kind::validation_retry) return validations_.is_pausing(timer.attempt);
  if (timer.attempt != attempt_) return false;
  switch (timer.kind) {
    case Timer::Kind::settling:
      return status_ == RunStatus::failing;
    case Timer::Kind::stopping:
      return (interrupted_ || status_ == RunStatus::resizing) && workers_ > 0;
    case Timer::Kind::retry:
      return status_ == RunStatus::waiting && !interrupted_;
    case Timer::Kind::upload:
    case Timer::Kind::validation:
    case Timer::Kind::validation_retry:
      break;
  }
  return false;
}

// ---- Events

void Run::on(const ControllerStarted& event) {
  interrupted_ = false;
  cluster_ = event.nodes.is_set() ? resources::Cluster(event.nodes) : resources::Cluster(event.machine);
  if (cluster_.may_change()) capacity_ = fitting(cluster_);
  validations_.resume();
  workers_ = 0;
  ranks_.clear();
  broken_.clear();
  stop_waiting();
  bool lost_the_end = false;  // of the training: a power loss came before the last checkpoint was synced
  for (const checkpoint::CheckpointId checkpoint : event.lost_checkpoints) {
    const checkpoint::CheckpointRegistry& registry = checkpoints_.registry();
    const bool exists = registry.contains(checkpoint);
    const std::string directory = exists ? registry.get(checkpoint).directory : "";
    const bool was_synced = exists && registry.is_synced(checkpoint);
    if (checkpoints_.remove_lost(checkpoint)) {
      record(DecisionKind::lose, {{"checkpoint", directory}});
      lost_the_end |= !was_synced;
    }
    validations_.forget(checkpoint);
  }
  if (has_trained() && !lost_the_end) return finish_when_validated();
  if (status_ == RunStatus::failed) budgets_ = {};
  error_.clear();
  enter(RunStatus::initializing);
  checkpoints_.resume(event, *actions_);
  uploads_went_on("");
}

void Run::on(const GroupReported& event) {
  if (!is_present(event.attempt)) return;
  stop_waiting();
  std::string committed;
  std::string name;
  std::string failure;
  if (!event.checkpoint.parts.empty()) {
    const CheckpointNumber number = checkpoints_.report(event, *actions_);
    failure = checkpoints_.take_early_ends(*actions_);
    name = checkpoints_.name_of(number);
    committed = commit_ready();
    const std::vector<PendingCheckpoint>& pending = checkpoints_.pending();
    const bool waits = event.checkpoint.waits || better_size().has_value();
    if (waits && !pending.empty()) {
      answered_after_ = number;
    } else if (pending.size() > kMostPending) {
      answered_after_ = pending.front().number;
    }
  }
  if (counts(event)) {
    step_ = event.step;
    for (Budget& one : budgets_) one.in_a_row = 0;
    actions_->push_back(ShowResult{event.step, event.metrics, committed, name, event.rank_metrics});
    if (has_parent_ && !ended_by_parent_) to_forward_ = ForwardResult{event.attempt, event.step, event.metrics, {}};
  }
  reported_step_ = event.step;
  if (!failure.empty()) return break_group(failure);
  is_to_be_published_ = event.checkpoint.until_published;
  if (!answered_after_) saved();
}

void Run::on(const GroupBegan& event) {
  if (!is_present(event.attempt)) return;
  begun_ = true;
  budget(FailureKind::start) = {};
  if (status_ == RunStatus::scheduling) enter(RunStatus::running);
}

void Run::on(const ResourcesSeen& event) {
  capacity_ = event.workers;
  cluster_ = resources::Cluster(event.machine);
  if (status_ == RunStatus::starved && !event.at_start) launch();
}

void Run::on(const NodeJoined& event) {
  cluster_.add(event.node);
  nodes_changed();
}

// The group leaves the node with the next report whose checkpoint is committed, if there is room elsewhere.
void Run::on(const NodeDraining& event) {
  leave(event.node);
  nodes_changed();
}

// Places nothing there any more.
void Run::leave(engine::NodeId node) {
  cluster_.drain(node);
  capacity_ = fitting(cluster_);
}

void Run::on(const NodeLeft& event) {
  cluster_.remove(event.node);
  nodes_changed();
}

void Run::nodes_changed() {
  capacity_ = fitting(cluster_);
  if (status_ == RunStatus::starved && !interrupted_) launch();
}

void Run::on(const GroupBroke& event) {
  if (is_present(event.attempt)) break_group(event.reason);
}

void Run::on(const FunctionReturned& event) {
  Member* member = present(event.rank, event.attempt);
  if (member == nullptr) return;
  member->said_last_word = true;
  if (member->state != Member::State::busy) return;
  member->state = Member::State::returned;
  if (event.rank == 0) return_value_ = event.value;
}

void Run::on(const FunctionThrew& event) {
  Member* member = present(event.rank, event.attempt);
  if (member == nullptr) return;
  member->said_last_word = true;
  if (member->state != Member::State::busy) return;
  member->state = Member::State::failed;
  member->cause = event.message;
  begin_to_fail();
}

void Run::on(const WorkerEnded& event) {
  Member* member = present(event.rank, event.attempt);
  if (member == nullptr) return;
  --workers_;
  if (member->state == Member::State::busy) {
    member->cause = "the worker " + engine::to_string(event.exit) + engine::output_text(event.exit);
    member->lost = true;
    if (event.exit.kind == engine::Exit::Kind::not_started) member->kind = FailureKind::start;
    if (event.exit.kind == engine::Exit::Kind::signal && event.exit.value == SIGTERM)
      member->kind = FailureKind::preemption;
    if (event.exit.kind == engine::Exit::Kind::node_lost) member->kind = FailureKind::preemption;
    begin_to_fail();
  }
  if (event.exit.kind == engine::Exit::Kind::node_lost)  // NodeLeft follows
    leave(group_places_.at(static_cast<std::size_t>(event.rank)).node);
  if (workers_ > 0) return;
  checkpoints_.drop_promised(*actions_);
  uploads_went_on("");
}

void Run::on(const TimerFired& event) {
  if (!awaits(event.timer)) return;
  if (event.timer.kind == Timer::Kind::upload) return checkpoints_.try_again(event.timer.attempt, *actions_);
  if (event.timer.kind == Timer::Kind::validation) return validations_.timed_out(event.timer.attempt, *actions_);
  if (event.timer.kind == Timer::Kind::validation_retry) return validations_.try_again(event.timer.attempt);
  if (event.timer.kind == Timer::Kind::retry) return launch();
  kill_all();
}

void Run::on(const RunInterrupted&) { interrupt(); }

void Run::on(const ResultForwarded& event) {
  if (!event.go_on) {
    ended_by_parent_ = true;
    interrupt();
  }
  if (is_present(event.attempt)) answer();
}

void Run::interrupt() {
  interrupted_ = true;
  validations_.stop(*actions_);
  checkpoints_.stop_trying();
  if (workers_ > 0) actions_->push_back(StartTimer{{Timer::Kind::stopping, attempt_}, stop_grace_s_});
  uploads_went_on("");
}

void Run::on(const ValidatorReturned& event) {
  validations_.returned(event, checkpoints_, *actions_);
  finish_when_validated();
}

void Run::on(const ValidatorThrew& event) {
  validations_.threw(event, checkpoints_, *actions_);
  finish_when_validated();
}

void Run::on(const ValidatorEnded& event) {
  if (const Validation* validation = validations_.find(event.checkpoint);
      validation != nullptr && event.exit.kind == engine::Exit::Kind::node_lost && validation->attempt == event.attempt)
    leave(validation->place.node);  // NodeLeft follows
  validations_.ended(event, checkpoints_, *actions_);
  finish_when_validated();
  if (status_ == RunStatus::starved && !interrupted_) launch();
}

void Run::on(const CheckpointsSynced& event) {
  for (const checkpoint::CheckpointId checkpoint : event.checkpoints) {
    if (!checkpoints_.registry().contains(checkpoint)) continue;
    checkpoints_.set_synced(checkpoint);
    actions_->push_back(MarkSynced{checkpoint});
  }
}

void Run::on(const CheckpointUploaded& event) {
  checkpoints_.uploaded(event, *actions_);
  uploads_went_on("");
}

void Run::on(const UploadFailed& event) {
  uploads_went_on(checkpoints_.upload_failed(event, !interrupted_, *actions_));
}

void Run::on(const PromiseEnded& event) {
  if (event.attempt == attempt_) uploads_went_on(checkpoints_.promise_ended(event, *actions_));
}

// ---- Pending checkpoints

// Commits all that are ready. Returns the directory of the last one; empty: there was none.
std::string Run::commit_ready() {
  std::string last;
  for (CommittedCheckpoint& committed : checkpoints_.commit_ready(*actions_)) {
    if (committed.validation) validations_.add(committed.id, *committed.validation, checkpoints_);
    last = std::move(committed.directory);
  }
  return last;
}

// Continues after a pending checkpoint has made progress or was dropped; `failure`: why it was dropped; empty: it was
// not.
void Run::uploads_went_on(const std::string& failure) {
  const std::string committed = commit_ready();
  if (!committed.empty()) actions_->push_back(Say{committed + " is complete"});
  if (!failure.empty() && has_group()) {
    break_group(failure);
  } else if (!failure.empty()) {
    actions_->push_back(Say{"Warning: " + failure});
  }
  const std::vector<PendingCheckpoint>& pending = checkpoints_.pending();
  if (answered_after_ && (pending.empty() || pending.front().number > *answered_after_)) saved();
  if (awaits_publication_ && interrupted_) forward_or_answer();  // all is published at the end
  go_on();
}

bool Run::waits_for_uploads() const {
  return interrupted_ ? checkpoints_.is_uploading() : !checkpoints_.pending().empty();
}

// Starts the next step of a run without workers. The next group continues from this one's last checkpoint, so it waits
// for pending ones.
void Run::go_on() {
  if (workers_ > 0) return;
  if (waits_for_uploads()) {
    if (has_group() && all_have_returned() && status_ != RunStatus::stopping) enter(RunStatus::shutting_down);
    return;
  }
  if (status_ == RunStatus::resizing && !interrupted_) {
    checkpoints_.end_group();
    launch();
  } else if (has_group() || status_ == RunStatus::failing) {
    group_has_ended();
  } else if (status_ == RunStatus::initializing && !interrupted_) {
    launch();
  } else if (interrupted_ && !has_trained() && status_ != RunStatus::failed) {
    checkpoints_.end_group();
    enter(RunStatus::aborted);
  }
}

// ---- The group

void Run::enter(RunStatus status) {
  if (status == status_) return;
  if (!may_become(status_, status))
    throw std::logic_error(fmt::format("the run was {}, and cannot be {}", cadre::detail::enum_name(status_),
                                       cadre::detail::enum_name(status)));
  status_ = status;
  actions_->push_back(SaveRun{status_, attempt_, error_});
}

bool Run::has_group() const {
  return status_ == RunStatus::scheduling || status_ == RunStatus::running || status_ == RunStatus::stopping ||
         status_ == RunStatus::shutting_down;
}

bool Run::all_have_returned() const {
  return std::ranges::all_of(ranks_, [](const Member& member) { return member.state == Member::State::returned; });
}

Run::Member* Run::present(Rank rank, std::int64_t attempt) {
  if (attempt != attempt_ || rank < 0 || rank >= std::ssize(ranks_)) return nullptr;
  return &ranks_[static_cast<std::size_t>(rank)];
}

std::optional<std::int64_t> Run::better_size() const {
  const std::int64_t size = std::min(room(), range_.max);
  return size >= range_.min && (size != world_size_ || is_leaving()) ? std::optional(size) : std::nullopt;
}

void Run::launch() {
  const std::int64_t workers = room();
  if (workers < range_.min) {
    if (status_ != RunStatus::starved)
      actions_->push_back(Say{fmt::format(
          "There are resources for {} workers; the run waits until there are some for {}", workers, range_.min)});
    return enter(RunStatus::starved);
  }
  world_size_ = std::min(workers, range_.max);
  ++attempt_;
  begun_ = false;
  workers_ = world_size_;
  ranks_.assign(static_cast<std::size_t>(world_size_), Member{});
  broken_.clear();
  return_value_ = {};
  group_places_ = place_group();
  LaunchGroup group{.attempt = attempt_, .workers = world_size_, .places = group_places_};
  for (const resources::Place& place : group_places_)
    group.machines.try_emplace(place.node, cluster_.node(place.node).resources);
  if (const checkpoint::CheckpointRecord* from = checkpoints_.begin_group()) {
    group.checkpoint = from->directory;
    group.step = from->step;
  }
  if (to_forward_ && to_forward_->step <= group.step) {  // its checkpoint was committed after the group had failed
    to_forward_->checkpoint = to_forward_->step == group.step ? group.checkpoint : "";
    actions_->push_back(*std::exchange(to_forward_, std::nullopt));  // with the attempt that is over
  }
  Dict launched{{"attempt", attempt_}, {"checkpoint", group.checkpoint}};
  if (range_.is_elastic()) launched.emplace_back("workers", world_size_);
  if (cluster_.may_change()) {
    List nodes;
    for (const resources::Place& place : group_places_) nodes.emplace_back(place.node);
    launched.emplace_back("nodes", std::move(nodes));
  }
  record(DecisionKind::launch, std::move(launched));
  enter(RunStatus::scheduling);
  actions_->push_back(std::move(group));
}

// Handles a group's first failure. Ranks that wait in report() are stopped; the others may still report why they fail.
void Run::begin_to_fail() {
  if (!has_group()) return;
  enter(RunStatus::failing);
  stop_waiting();
  actions_->push_back(AnswerGroup{attempt_, true, {}});
  actions_->push_back(StartTimer{{Timer::Kind::settling, attempt_}, kSettlingSeconds});
}

void Run::kill_all() {
  for (Rank rank = 0; rank < std::ssize(ranks_); ++rank) {
    Member& member = ranks_[static_cast<std::size_t>(rank)];
    if (member.said_last_word || member.lost || member.state == Member::State::killed) continue;
    if (member.state == Member::State::busy) member.state = Member::State::killed;
    actions_->push_back(KillWorker{rank, attempt_});
  }
}

void Run::break_group(const std::string& reason) {
  broken_ = reason;
  begin_to_fail();
  kill_all();
}

// Goes on when the present report is committed as far as it waits for that.
void Run::saved() {
  answered_after_.reset();
  awaits_publication_ = std::exchange(is_to_be_published_, false) && !interrupted_;
  if (!awaits_publication_) return forward_or_answer();
  actions_->push_back(AwaitPublication{attempt_, reported_step_});
}

void Run::on(const ReportPublished& event) {
  if (awaits_publication_ && is_present(event.attempt) && event.step == reported_step_) forward_or_answer();
}

void Run::forward_or_answer() {
  stop_waiting();
  if (!to_forward_ || to_forward_->step != reported_step_) return answer();
  ForwardResult result = *std::exchange(to_forward_, std::nullopt);
  result.attempt = attempt_;
  if (const auto& latest = checkpoints_.latest()) {
    const checkpoint::CheckpointRecord& record = checkpoints_.registry().get(*latest);
    if (record.step == result.step) result.checkpoint = record.directory;
  }
  actions_->push_back(std::move(result));
}

void Run::stop_waiting() {
  answered_after_.reset();
  is_to_be_published_ = awaits_publication_ = false;
}

void Run::answer() {
  stop_waiting();
  if (interrupted_) {
    record(DecisionKind::stop);
    enter(RunStatus::stopping);
  } else if (const auto size = better_size(); size && is_saved()) {
    record(DecisionKind::resize, {{"workers", *size}});
    actions_->push_back(
        Say{fmt::format("The group of {} workers is ended and begins anew with {}", world_size_, *size)});
    actions_->push_back(StartTimer{{Timer::Kind::stopping, attempt_}, stop_grace_s_});
    enter(RunStatus::resizing);
  }
  const bool stop = status_ == RunStatus::stopping || status_ == RunStatus::resizing;
  actions_->push_back(AnswerGroup{attempt_, stop, checkpoints_.share_latest()});
}

// Ends a report that waits for a checkpoint which an interrupted run leaves to the next controller.
void Run::stop_ranks_that_wait_in_vain() {
  if (!interrupted_ || !answered_after_ || !checkpoints_.is_left_to_the_next(*answered_after_)) return;
  stop_waiting();
  record(DecisionKind::stop);
  enter(RunStatus::stopping);
  actions_->push_back(AnswerGroup{attempt_, true, {}});
}

// Returns true if the report that ranks wait in had a checkpoint that is committed: nothing is lost if the group ends.
bool Run::is_saved() const {
  const auto& latest = checkpoints_.latest();
  return latest && checkpoints_.registry().get(*latest).step == reported_step_;
}

void Run::group_has_ended() {
  checkpoints_.end_group();
  if (status_ == RunStatus::failing || !all_have_returned()) return try_again_or_fail();
  ranks_.clear();
  const bool is_left_to_the_next = status_ == RunStatus::stopping || !checkpoints_.pending().empty();
  if (is_left_to_the_next) {
    enter(RunStatus::aborted);
  } else {
    group_places_.clear();
    enter(RunStatus::validating);
    finish_when_validated();
  }
}

// ---- Validations

// Starts validations. The group keeps its resources until the run has trained, also between two attempts. A failed run
// ends; another controller continues its validations.
void Run::start_validations() {
  if (is_over() || interrupted_ || !validations_.is_pending() || !validates()) return;
  validations_.start(free_beside_group(), checkpoints_, *actions_);
  finish_when_validated();  // some may have been dropped
}

bool Run::is_over() const {
  return status_ == RunStatus::failed || status_ == RunStatus::aborted || status_ == RunStatus::finished;
}

// Returns true if validations may start: the group has its places first.
bool Run::validates() const { return !group_places_.empty() || status_ == RunStatus::validating; }

resources::Cluster Run::free_beside_group() const {
  resources::Cluster room = cluster_;
  for (const resources::Place& place : group_places_) room.occupy(worker_resources_, place);
  return room;
}

std::int64_t Run::fitting(const resources::Cluster& room) const {
  return capacity(room, worker_resources_, strategy_, range_.max);
}

// Returns places for the group beside running validators. The ranks of a node are consecutive.
std::vector<resources::Place> Run::place_group() const {
  resources::Cluster room = cluster_;
  validations_.occupy(room);
  if (cluster_.may_change()) {
    const std::vector<Resources> bundles(static_cast<std::size_t>(world_size_), worker_resources_);
    std::vector<resources::Place> places = room.acquire_all(bundles, strategy_).value();
    std::ranges::stable_sort(places, {}, &resources::Place::node);
    return places;
  }
  std::vector<resources::Place> places;
  for (Rank rank = 0; rank < world_size_; ++rank)
    places.push_back(room.acquire(worker_resources_).value_or(resources::Place()));
  return places;
}

bool Run::is_leaving() const {
  return has_group() && std::ranges::any_of(group_places_, [this](const resources::Place& place) {
           return !cluster_.is_ready(place.node);
         });
}

std::int64_t Run::room() const {
  if (!validations_.has_workers()) return capacity_;
  resources::Cluster free = cluster_;
  validations_.occupy(free);
  if (cluster_.may_change()) return fitting(free);
  std::int64_t workers = 0;
  while (workers < capacity_ && free.acquire(worker_resources_)) ++workers;
  return workers;
}

void Run::finish_when_validated() {
  if (status_ != RunStatus::validating || validations_.is_pending()) return;
  enter(RunStatus::finished);
  record(DecisionKind::finish);
}

std::string Run::lack_of_validations() const {
  if (group_places_.empty()) return {};
  const resources::Cluster room = free_beside_group();
  const std::vector<Resources> waiting = validations_.waiting_needs();
  const auto lacks = std::ranges::find_if(waiting, [&](const Resources& needs) { return !room.is_free(needs); });
  if (lacks == waiting.end()) return {};
  return fmt::format(
      "they need {:g} CPUs and {:g} GPUs beside the {} workers of the run, which have {:g} and {:g} each", lacks->cpus,
      lacks->gpus, world_size_, worker_resources_.cpus, worker_resources_.gpus);
}

std::vector<engine::Demand> Run::demand() const {
  std::vector<engine::Demand> demand;
  if (interrupted_ || is_over()) return demand;
  const std::int64_t workers = status_ == RunStatus::validating ? range_.max : has_group() ? capacity_ : room();
  if (workers < range_.max) {
    if (strategy_ == PlacementStrategy::strict_pack) {
      const std::vector<Resources> all(static_cast<std::size_t>(range_.min), worker_resources_);
      if (workers < range_.min) demand.push_back({PlacementGroup{all, strategy_}.required_resources(), 1});
    } else {
      demand.push_back({worker_resources_, range_.max - workers});
    }
  }
  if (!validates()) return demand;
  const std::size_t validations_begin = demand.size();
  for (Resources& needs : validations_.waiting_needs()) {
    if (validations_begin < demand.size() && demand.back().worker == needs) {
      ++demand.back().workers;
    } else {
      demand.push_back({std::move(needs), 1});
    }
  }
  return demand;
}

void Run::try_again_or_fail() {
  error_ = describe_failure();
  const FailureKind kind = kind_of_failure();
  const std::map<Rank, std::string> causes = causes_of_failure();
  ranks_.clear();
  if (interrupted_) return enter(RunStatus::aborted);  // failures while stopping are not counted
  actions_->push_back(TellOfFailure{attempt_, world_size_, causes, error_});
  Budget& used = budget(kind);
  ++used.failures;
  ++used.in_a_row;
  Dict counted{{"failures", used.failures}};
  if (kind != FailureKind::function) counted.emplace_back("kind", name_of(kind));
  const std::int64_t most = most_failures(kind);
  if (most >= 0 && used.failures > most) {
    enter(RunStatus::failed);
    validations_.stop(*actions_);
    record(DecisionKind::fail, std::move(counted));
    actions_->push_back(Say{"The run has failed: " + error_, true});
  } else {
    record(DecisionKind::retry, std::move(counted));
    const double delay = base::retry_delay_s(used.in_a_row + (kind == FailureKind::start ? 2 : 0));
    actions_->push_back(
        Say{fmt::format("Attempt {} {}: {}\nIt is tried again{} from {}", attempt_, what_happened(kind), error_,
                        delay > 0 ? fmt::format(" in {:g} s", delay) : "", checkpoints_.start_for_people())});
    if (delay == 0) return launch();
    enter(RunStatus::waiting);
    actions_->push_back(StartTimer{{Timer::Kind::retry, attempt_}, delay});
  }
}

std::int64_t Run::most_failures(FailureKind kind) const {
  switch (kind) {
    case FailureKind::function:
      break;
    case FailureKind::start:
      return failure_config_.max_start_failures;
    case FailureKind::preemption:
      return failure_config_.max_preemption_failures;
  }
  return failure_config_.max_failures;
}

// Returns the group's kind of failure. A preempted machine takes one rank, and the others fail as a consequence.
FailureKind Run::kind_of_failure() const {
  const auto any = [&](FailureKind kind) { return std::ranges::find(ranks_, kind, &Member::kind) != ranks_.end(); };
  if (any(FailureKind::preemption)) return FailureKind::preemption;
  return any(FailureKind::start) || !begun_ ? FailureKind::start : FailureKind::function;
}

std::map<Rank, std::string> Run::causes_of_failure() const {
  std::map<Rank, std::string> causes;
  for (Rank rank = 0; rank < std::ssize(ranks_); ++rank) {
    const Member& member = ranks_[static_cast<std::size_t>(rank)];
    if (!member.cause.empty()) causes[rank] = member.cause;
  }
  if (!broken_.empty() || causes.empty()) causes[-1] = describe_failure();
  return causes;
}

// Describes the failure, ranks first whose processes died without a message: they are the likely cause.
std::string Run::describe_failure() const {
  if (!broken_.empty()) return broken_;
  std::vector<Rank> failed;
  for (Rank rank = 0; rank < std::ssize(ranks_); ++rank) {
    if (!ranks_[static_cast<std::size_t>(rank)].cause.empty()) failed.push_back(rank);
  }
  std::ranges::stable_sort(failed, std::greater(),
                           [this](Rank rank) { return ranks_[static_cast<std::size_t>(rank)].lost; });
  std::string text;
  for (const Rank rank : failed)
    text += fmt::format("{}rank {}: {}", text.empty() ? "" : "\n", rank, ranks_[static_cast<std::size_t>(rank)].cause);
  return text.empty() ? "its workers were ended by force" : text;
}

void Run::record(DecisionKind kind, Dict data) { actions_->push_back(RecordDecision{kind, std::move(data)}); }

}  // namespace cadre::train
