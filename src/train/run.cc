#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "run/checkpoint_files.h"
#include "run/retry_delay.h"

namespace cadre::train {
namespace {

// How long other ranks may take to say why they fail. One that was connected to a dead rank notices it in milliseconds,
// and so is often heard of first.
constexpr double kSettlingSeconds = 0.25;
constexpr run::OwnerId kRun = 0;

}  // namespace

std::string to_string(RunStatus status) {
  constexpr std::array names{"PENDING", "RUNNING", "RESTARTING", "RESTARTING", "FINISHED", "FAILED"};
  return names.at(static_cast<std::size_t>(status));
}

Run::Run(const TrainerOptions& options)
    : world_size_(options.scaling_config.num_workers),
      failure_config_(options.run_config.failure_config),
      stop_grace_s_(options.run_config.stop_grace_period.count()),
      checkpoints_(options.run_config.checkpoint_config) {}

void Run::handle(const Event& event, Actions& actions) {
  actions_ = &actions;
  std::visit([this](const auto& content) { on(content); }, event);
  delete_unneeded_checkpoints();
  actions_ = nullptr;
}

bool Run::finished() const {
  return workers_ == 0 && (interrupted_ || status_ == RunStatus::finished || status_ == RunStatus::failed);
}

bool Run::awaits(const Timer& timer) const {
  if (timer.attempt != attempt_) return false;
  switch (timer.kind) {
    case Timer::Kind::settling:
      return status_ == RunStatus::failing;
    case Timer::Kind::stopping:
      return interrupted_ && workers_ > 0;
    case Timer::Kind::retry:
      return status_ == RunStatus::waiting && !interrupted_;
  }
  return false;
}

// ---- Events

void Run::on(const ControllerStarted& event) {
  interrupted_ = false;
  workers_ = 0;
  ranks_.clear();
  broken_.clear();
  release_start();
  for (const run::CheckpointId checkpoint : event.lost_checkpoints) lose(checkpoint);
  if (status_ == RunStatus::finished) return;
  if (status_ == RunStatus::failed) failures_ = futile_attempts_ = 0;
  error_.clear();
  launch();
}

void Run::on(const GroupReported& event) {
  if (!is_present(event.attempt)) return;
  std::string committed;
  if (!event.checkpoint.empty()) {
    committed = run::checkpoint_name(checkpoints_made_++);
    const run::CheckpointId id = checkpoints_.add(kRun, event.step, committed, event.metrics, latest_checkpoint_);
    continue_from(id);
    actions_->push_back(CommitCheckpoint{id, event.step, event.checkpoint, committed});
  }
  if (!is_repeated(event)) {
    step_ = event.step;
    futile_attempts_ = 0;
    actions_->push_back(ShowResult{event.step, event.metrics, committed});
  }
  if (interrupted_) {
    told_to_stop_ = true;
    record(DecisionKind::stop);
  }
  actions_->push_back(AnswerGroup{event.attempt, interrupted_, committed});
}

void Run::on(const GroupBroke& event) {
  if (!is_present(event.attempt)) return;
  broken_ = event.reason;
  begin_to_fail();
  kill_all();
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
    member->cause = "the worker " + engine::to_string(event.exit);
    member->lost = true;
    begin_to_fail();
  }
  if (workers_ == 0) group_has_ended();
}

void Run::on(const TimerFired& event) {
  if (!awaits(event.timer)) return;
  if (event.timer.kind == Timer::Kind::retry) return launch();
  kill_all();
}

void Run::on(const RunInterrupted&) {
  interrupted_ = true;
  if (workers_ > 0) actions_->push_back(StartTimer{{Timer::Kind::stopping, attempt_}, stop_grace_s_});
}

void Run::on(const CheckpointsSynced& event) {
  for (const run::CheckpointId checkpoint : event.checkpoints) {
    if (!checkpoints_.contains(checkpoint)) continue;
    checkpoints_.set_synced(checkpoint);
    actions_->push_back(MarkSynced{checkpoint});
  }
}

// ---- The group

Run::Member* Run::present(Rank rank, std::int64_t attempt) {
  if (attempt != attempt_ || rank < 0 || rank >= std::ssize(ranks_)) return nullptr;
  return &ranks_[static_cast<std::size_t>(rank)];
}

void Run::launch() {
  ++attempt_;
  status_ = RunStatus::running;
  workers_ = world_size_;
  ranks_.assign(static_cast<std::size_t>(world_size_), Member{});
  broken_.clear();
  told_to_stop_ = false;
  return_value_ = {};
  LaunchGroup group{.attempt = attempt_};
  if (latest_checkpoint_) {
    const run::CheckpointRecord& from = checkpoints_.get(*latest_checkpoint_);
    group.checkpoint = from.directory;
    group.step = from.step;
    checkpoints_.retain(from.id);
    started_from_ = from.id;
  }
  record(DecisionKind::launch, {{"attempt", attempt_}, {"checkpoint", group.checkpoint}});
  actions_->push_back(SaveRun{});
  actions_->push_back(std::move(group));
}

// The first failure of a group. Ranks that wait in report() are told; the others may say why they fail as well.
void Run::begin_to_fail() {
  if (status_ != RunStatus::running) return;
  status_ = RunStatus::failing;
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

void Run::group_has_ended() {
  release_start();
  const bool all_returned =
      std::ranges::all_of(ranks_, [](const Member& member) { return member.state == Member::State::returned; });
  if (status_ == RunStatus::failing || !all_returned) return try_again_or_fail();
  if (told_to_stop_) {  // and so unwound
    status_ = RunStatus::pending;
  } else {
    status_ = RunStatus::finished;
    record(DecisionKind::finish);
  }
  ranks_.clear();
  actions_->push_back(SaveRun{});
}

void Run::try_again_or_fail() {
  error_ = describe_failure();
  ranks_.clear();
  ++failures_;
  ++futile_attempts_;
  const bool again = failure_config_.max_failures < 0 || failures_ <= failure_config_.max_failures;
  if (interrupted_) {  // nobody is to blame for what happened while everybody was stopping
    --failures_;
    status_ = RunStatus::pending;
  } else if (!again) {
    status_ = RunStatus::failed;
    record(DecisionKind::fail, {{"failures", failures_}});
    actions_->push_back(Say{"The run has failed: " + error_, true});
  } else {
    record(DecisionKind::retry, {{"failures", failures_}});
    const double delay = run::retry_delay_s(futile_attempts_);
    const std::string from =
        latest_checkpoint_ ? checkpoints_.get(*latest_checkpoint_).directory : std::string("the beginning");
    actions_->push_back(Say{fmt::format("Attempt {} has failed: {}\nIt is tried again{} from {}", attempt_, error_,
                                        delay > 0 ? fmt::format(" in {:g} s", delay) : "", from)});
    if (delay == 0) return launch();
    status_ = RunStatus::waiting;
    actions_->push_back(StartTimer{{Timer::Kind::retry, attempt_}, delay});
  }
  actions_->push_back(SaveRun{});
}

// Whose process died first is what the others failed from.
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

// ---- Checkpoints

void Run::continue_from(run::CheckpointId checkpoint) {
  checkpoints_.retain(checkpoint);
  if (latest_checkpoint_) checkpoints_.release(*latest_checkpoint_);
  latest_checkpoint_ = checkpoint;
}

void Run::lose(run::CheckpointId checkpoint) {
  if (!checkpoints_.contains(checkpoint)) return;
  checkpoints_.retain(checkpoint);  // so that it is known until nobody has it
  if (latest_checkpoint_ == checkpoint) {
    record(DecisionKind::lose, {{"checkpoint", checkpoints_.get(checkpoint).directory}});
    if (const auto older = checkpoints_.ancestor(checkpoint)) {
      continue_from(*older);
    } else {
      checkpoints_.release(*std::exchange(latest_checkpoint_, std::nullopt));
    }
  }
  checkpoints_.drop(checkpoint);
  checkpoints_.release(checkpoint);
}

void Run::release_start() {
  if (started_from_) checkpoints_.release(*std::exchange(started_from_, std::nullopt));
}

void Run::delete_unneeded_checkpoints() {
  for (run::CheckpointRecord& record : checkpoints_.take_deletable())
    actions_->push_back(DeleteCheckpoint{record.id, std::move(record.directory)});
}

void Run::record(DecisionKind kind, Dict data) { actions_->push_back(RecordDecision{kind, std::move(data)}); }

}  // namespace cadre::train
