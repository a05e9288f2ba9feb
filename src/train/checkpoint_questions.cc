#include "train/checkpoint_questions.h"

#include <algorithm>

#include "base/archive.h"

namespace cadre::train {
namespace {

bool is_answerable(const Checkpoints& checkpoints, std::int64_t step) {
  return std::ranges::none_of(checkpoints.pending(),
                              [&](const PendingCheckpoint& pending) { return pending.step <= step; });
}

// In the order of their reports.
std::vector<CheckpointEntry> kept(const Checkpoints& checkpoints) {
  constexpr run::OwnerId run = 0;
  std::vector<run::CheckpointId> ids = checkpoints.registry().kept(run);
  std::ranges::sort(ids);
  std::vector<CheckpointEntry> entries;
  for (const run::CheckpointId id : ids) {
    const run::CheckpointRecord& record = checkpoints.registry().get(id);
    entries.push_back({record.directory, record.metrics});
  }
  return entries;
}

}  // namespace

void fields(auto& archive, base::Is<CheckpointQuestion> auto& question) {
  archive("step", question.step);
  archive("timeout_ms", question.timeout_ms);
}

void fields(auto& archive, base::Is<CheckpointEntry> auto& entry) {
  archive("directory", entry.directory);
  archive("metrics", entry.metrics);
}

Value to_value(const CheckpointQuestion& question) { return base::SaveArchive::to_value(question); }

CheckpointQuestion to_checkpoint_question(const Value& content) {
  CheckpointQuestion question;
  base::LoadArchive::load(content, question);
  return question;
}

Value to_value(const std::vector<CheckpointEntry>& entries) { return base::SaveArchive::to_value(entries); }

std::vector<CheckpointEntry> to_checkpoint_entries(const Value& content) {
  std::vector<CheckpointEntry> entries;
  base::LoadArchive::load(content, entries);
  return entries;
}

void CheckpointQuestions::ask(Asker asker, const CheckpointQuestion& question, TimePoint now) {
  Waiting& waiting = waiting_[asker] = {.step = question.step};
  if (question.timeout_ms) waiting.until = now + std::chrono::milliseconds(*question.timeout_ms);
}

std::vector<CheckpointQuestions::Reply> CheckpointQuestions::take_replies(const Checkpoints& checkpoints,
                                                                          TimePoint now) {
  std::vector<Reply> replies;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto& [asker, waiting] = *it;
    if (!is_answerable(checkpoints, waiting.step) && (!waiting.until || *waiting.until > now)) {
      ++it;
      continue;
    }
    replies.push_back({asker, {.content = to_value(kept(checkpoints))}});
    it = waiting_.erase(it);
  }
  return replies;
}

std::optional<CheckpointQuestions::TimePoint> CheckpointQuestions::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [asker, waiting] : waiting_) {
    if (waiting.until && (!next || *waiting.until < *next)) next = waiting.until;
  }
  return next;
}

}  // namespace cadre::train
