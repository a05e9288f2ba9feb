#include "train/checkpoint_questions.h"

#include <algorithm>

#include "cadre/stored.h"

namespace cadre::train {
namespace {

bool is_committed(const Checkpoints& checkpoints, std::int64_t step) {
  return std::ranges::none_of(checkpoints.pending(),
                              [&](const PendingCheckpoint& pending) { return pending.step <= step; });
}

bool is_validated(const Checkpoints& checkpoints, const Validations& validations, std::int64_t step) {
  const checkpoint::CheckpointRegistry& registry = checkpoints.registry();
  return std::ranges::none_of(registry.all(), [&](checkpoint::CheckpointId id) {
    return registry.get(id).step <= step && validations.is_pending(id);
  });
}

// Returns the kept checkpoints in the order of their reports.
std::vector<CheckpointEntry> kept(const Checkpoints& checkpoints, const Validations& validations) {
  constexpr checkpoint::OwnerId run = 0;
  std::vector<checkpoint::CheckpointId> ids = checkpoints.registry().kept(run);
  std::ranges::sort(ids);
  std::vector<CheckpointEntry> entries;
  for (const checkpoint::CheckpointId id : ids) entries.push_back(entry_of(id, checkpoints, validations));
  return entries;
}

}  // namespace

Value to_value(const CheckpointQuestion& question) { return cadre::to_stored(question); }

CheckpointQuestion to_checkpoint_question(const Value& content) {
  return cadre::from_value<CheckpointQuestion>(content);
}

void CheckpointQuestions::ask(channel::Caller caller, const CheckpointQuestion& question, TimePoint now) {
  Waiting& waiting = waiting_[caller] = {.step = question.step, .validated = question.validated};
  if (question.timeout_ms) waiting.until = now + std::chrono::milliseconds(*question.timeout_ms);
}

std::vector<CheckpointQuestions::Reply> CheckpointQuestions::take_replies(const Checkpoints& checkpoints,
                                                                          const Validations& validations,
                                                                          const std::string& lack_of_validations,
                                                                          bool interrupted, TimePoint now) {
  std::vector<Reply> replies;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto& [caller, waiting] = *it;
    const bool committed = is_committed(checkpoints, waiting.step);
    const bool done = committed && (!waiting.validated || is_validated(checkpoints, validations, waiting.step));
    if (done || (waiting.until && *waiting.until <= now)) {
      replies.push_back({caller, {.content = to_value(kept(checkpoints, validations))}});
    } else if (interrupted) {
      replies.push_back({caller, {.error = "the run is interrupted"}});
    } else if (committed && !waiting.until && !lack_of_validations.empty()) {
      replies.push_back({caller,
                         {.error = "it would wait for ever for validations: " + lack_of_validations +
                                   ". Give a timeout, or ask for CheckpointConsistency::committed"}});
    } else {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
  }
  return replies;
}

std::optional<CheckpointQuestions::TimePoint> CheckpointQuestions::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [caller, waiting] : waiting_) {
    if (waiting.until && (!next || *waiting.until < *next)) next = waiting.until;
  }
  return next;
}

}  // namespace cadre::train
