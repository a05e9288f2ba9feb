#include "train/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/retry_delay.h"
#include "checkpoint/checkpoint_files.h"

namespace cadre::train {
namespace {

using Kind = CheckpointPart::Kind;
using State = PendingCheckpoint::State;

constexpr checkpoint::OwnerId kRun = 0;
constexpr double kPauseForSpaceSeconds = 1;

// Removes all but one of the parts that are the same directory of a node: its ranks agreed on that.
void copy_once(std::vector<CheckpointPart>& parts) {
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    const auto is_same = [&](const CheckpointPart& other) {
      return other.node == part->node && other.path == part->path;
    };
    if (part->node) parts.erase(std::remove_if(std::next(part), parts.end(), is_same), parts.end());
  }
}

// Replaces the parts that were copied by their copies, which are ours.
void replace_by_copies(PendingCheckpoint& pending, Actions& actions) {
  for (CheckpointPart& part : pending.reported.parts) {
    if (!is_copied(part)) continue;
    if (part.remove_source) actions.push_back(RemoveDirectory{part.path});
    part = {.kind = Kind::ours, .rank = part.rank, .path = checkpoint::copy_name(pending.number, part.rank)};
  }
}

}  // namespace

// ---- From a report to its commit

CheckpointNumber Checkpoints::report(const GroupReported& report, Actions& actions) {
  const CheckpointNumber number = reported_++;
  step_ = report.step;
  PendingCheckpoint& pending = pending_.emplace_back(PendingCheckpoint{.number = number,
                                                                       .step = report.step,
                                                                       .metrics = report.metrics,
                                                                       .reported = report.checkpoint,
                                                                       .directory = report.checkpoint.directory});
  const std::vector<CheckpointPart>& parts = pending.reported.parts;
  const auto in_place = std::ranges::find(parts, Kind::in_place, &CheckpointPart::kind);
  if (in_place != parts.end()) {
    pending.directory = in_place->path;
  } else if (pending.directory.empty()) {
    pending.directory = checkpoint::checkpoint_name(number);
  }
  begin(pending, actions);
  return number;
}

// Starts the next step of a checkpoint for which nothing is running.
void Checkpoints::begin(PendingCheckpoint& pending, Actions& actions) {
  if (std::ranges::any_of(pending.reported.parts, is_awaited)) {
    pending.state = State::promised;
  } else if (pending.reported.upload) {
    pending.state = State::uploading;
    copy_once(pending.reported.parts);
    actions.push_back(UploadCheckpoint{pending.number, pending.reported.parts, pending.directory});
  } else {
    pending.state = State::ready;
  }
}

void Checkpoints::uploaded(const CheckpointUploaded& event, Actions& actions) {
  PendingCheckpoint* pending = find(event.number);
  if (pending == nullptr || pending->state != State::uploading) return;
  pending->state = State::ready;
  pending->reported.upload = false;
  replace_by_copies(*pending, actions);
}

std::string Checkpoints::upload_failed(const UploadFailed& event, bool may_try, Actions& actions) {
  PendingCheckpoint* pending = find(event.number);
  if (pending == nullptr || pending->state != State::uploading) return {};
  if (!may_try) {
    pending->state = State::idle;
    return {};
  }
  const Timer timer{Timer::Kind::upload, pending->number};
  if (event.again == base::TryAgain::when_there_is_space) {
    if (!std::exchange(pending->waits_for_space, true))
      actions.push_back(
          Say{fmt::format("The disk is full: {}. {} waits until there is space.", event.reason, pending->directory)});
    actions.push_back(StartTimer{timer, kPauseForSpaceSeconds});
    pending->state = State::pausing;
    return {};
  }
  ++pending->tries;
  if (event.again == base::TryAgain::never || pending->tries >= base::most_upload_tries)
    return give_up(event.number, event.reason, actions);
  actions.push_back(StartTimer{timer, base::upload_retry_delay_s(pending->number, pending->tries)});
  pending->state = State::pausing;
  return {};
}

void Checkpoints::try_again(CheckpointNumber number, Actions& actions) {
  PendingCheckpoint* pending = find(number);
  if (pending != nullptr && pending->state == State::pausing) begin(*pending, actions);
}

std::string Checkpoints::take_early_ends(Actions& actions) {
  std::string failure;
  for (const PromiseEnded& event : std::exchange(early_ends_, {})) {
    if (failure.empty()) failure = promise_ended(event, actions);
  }
  return failure;
}

std::string Checkpoints::promise_ended(const PromiseEnded& event, Actions& actions) {
  if (event.end.step > step_) {
    early_ends_.push_back(event);
    return {};
  }
  const auto is_meant = [&](const PendingCheckpoint& pending) {
    return pending.state == State::promised && pending.step == event.end.step;
  };
  const auto pending = std::ranges::find_if(pending_, is_meant);
  if (pending == pending_.end()) return {};
  std::vector<CheckpointPart>& parts = pending->reported.parts;
  const auto part = std::ranges::find_if(
      parts, [&](const CheckpointPart& candidate) { return is_awaited(candidate) && candidate.rank == event.rank; });
  if (part == parts.end()) return {};
  if (!event.end.error.empty()) return give_up(pending->number, event.end.error, actions);
  if (part->kind == Kind::copying) {
    part->kind = Kind::ours;
    begin(*pending, actions);
    return {};
  }
  if (event.end.path.empty()) return give_up(pending->number, "its function names no directory", actions);
  const auto other = std::ranges::find(parts, Kind::in_place, &CheckpointPart::kind);
  if (other != parts.end() && other->path != event.end.path)
    return give_up(pending->number,
                   fmt::format("rank {} has uploaded it to {}, and rank {} to {}: all ranks must name one directory",
                               other->rank, other->path, event.rank, event.end.path),
                   actions);
  *part = {.kind = Kind::in_place, .rank = event.rank, .path = event.end.path, .node = part->node};
  pending->directory = event.end.path;
  begin(*pending, actions);
  return {};
}

std::vector<CommittedCheckpoint> Checkpoints::commit_ready(Actions& actions) {
  std::vector<CommittedCheckpoint> committed;
  while (!pending_.empty() && pending_.front().state == State::ready) {
    PendingCheckpoint next = std::move(pending_.front());
    pending_.erase(pending_.begin());
    const checkpoint::CheckpointId id = registry_.add(kRun, next.step, next.directory, next.metrics, latest_,
                                                      /*is_ranked=*/!next.reported.validation);
    refer(latest_, id);
    CommitCheckpoint commit{.id = id, .step = next.step, .directory = next.directory};
    for (const CheckpointPart& part : next.reported.parts) commit.from.push_back(part.path);
    actions.push_back(std::move(commit));
    committed.push_back({id, std::move(next.directory), std::move(next.reported.validation)});
  }
  return committed;
}

// ---- Drops

std::string Checkpoints::give_up(CheckpointNumber number, const std::string& reason, Actions& actions) {
  const auto found = std::ranges::find(pending_, number, &PendingCheckpoint::number);
  for (const CheckpointPart& part : found->reported.parts) {
    if (is_copied(part)) {
      actions.push_back(RemoveDirectory{checkpoint::copy_name(number, part.rank)});
    } else if (part.kind == Kind::ours || part.kind == Kind::copying) {
      actions.push_back(RemoveDirectory{part.path});
    }
  }
  std::string text =
      fmt::format("the checkpoint {} of report {} could not be uploaded: {}", found->directory, found->step, reason);
  pending_.erase(found);
  return text;
}

void Checkpoints::drop_promised(Actions& actions) {
  early_ends_.clear();
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i].state == State::promised) {
      const std::string lost = give_up(pending_[i].number, "its worker is gone", actions);
      actions.push_back(Say{"Warning: " + lost});
    } else {
      ++i;
    }
  }
}

void Checkpoints::stop_trying() {
  for (PendingCheckpoint& pending : pending_) {
    if (pending.state == State::pausing) pending.state = State::idle;
  }
}

void Checkpoints::resume(const ControllerStarted& event, Actions& actions) {
  end_group();
  drop_promised(actions);
  for (const CheckpointNumber number : event.lost_uploads) {
    if (find(number) == nullptr) continue;
    const std::string lost = give_up(number, "it is not there any more", actions);
    actions.push_back(Say{"Warning: " + lost});
  }
  for (PendingCheckpoint& pending : pending_) {
    pending.tries = 0;
    begin(pending, actions);
  }
}

bool Checkpoints::remove_lost(checkpoint::CheckpointId id) {
  if (!registry_.contains(id)) return false;
  registry_.retain(id);  // keeps it in the registry until the last reference is released
  const bool was_latest = latest_ == id;
  if (was_latest) refer(latest_, registry_.ancestor(id));
  registry_.drop(id);
  registry_.release(id);
  return was_latest;
}

void Checkpoints::delete_unneeded(Actions& actions) {
  for (checkpoint::CheckpointRecord& record : registry_.take_deletable())
    actions.push_back(DeleteCheckpoint{record.id, std::move(record.directory)});
}

// ---- References

const checkpoint::CheckpointRecord* Checkpoints::begin_group() {
  refer(started_from_, latest_);
  const checkpoint::CheckpointRecord* from = latest_ ? &registry_.get(*latest_) : nullptr;
  step_ = from == nullptr ? 0 : from->step;
  return from;
}

void Checkpoints::end_group() {
  refer(started_from_, std::nullopt);
  refer(shared_, std::nullopt);
}

std::string Checkpoints::share_latest() {
  refer(shared_, latest_);
  return latest_ ? registry_.get(*latest_).directory : "";
}

void Checkpoints::refer(std::optional<checkpoint::CheckpointId>& reference,
                        std::optional<checkpoint::CheckpointId> checkpoint) {
  if (checkpoint) registry_.retain(*checkpoint);
  if (const auto before = std::exchange(reference, checkpoint)) registry_.release(*before);
}

// ---- Queries

PendingCheckpoint* Checkpoints::find(CheckpointNumber number) {
  const auto found = std::ranges::find(pending_, number, &PendingCheckpoint::number);
  return found == pending_.end() ? nullptr : &*found;
}

std::string Checkpoints::name_of(CheckpointNumber number) const {
  const auto found = std::ranges::find(pending_, number, &PendingCheckpoint::number);
  if (found == pending_.end()) return "";
  const bool is_unnamed = std::ranges::count(found->reported.parts, Kind::promised, &CheckpointPart::kind) > 0;
  return is_unnamed ? "" : found->directory;
}

bool Checkpoints::is_pausing(CheckpointNumber number) const {
  const auto found = std::ranges::find(pending_, number, &PendingCheckpoint::number);
  return found != pending_.end() && found->state == State::pausing;
}

bool Checkpoints::is_uploading() const {
  return std::ranges::any_of(pending_, [](const PendingCheckpoint& pending) {
    return pending.state == State::uploading || pending.state == State::pausing;
  });
}

bool Checkpoints::is_left_to_the_next(CheckpointNumber number) const {
  return std::ranges::any_of(pending_, [number](const PendingCheckpoint& pending) {
    return pending.number <= number && pending.state == State::idle;
  });
}

std::string Checkpoints::start_for_people() const {
  return latest_ ? registry_.get(*latest_).directory : "the beginning";
}

}  // namespace cadre::train
