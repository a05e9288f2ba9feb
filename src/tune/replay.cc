#include "tune/replay.h"

#include <fmt/format.h>

#include "base/json.h"
#include "cadre/error.h"
#include "tune/journal.h"

namespace cadre::tune {
namespace {

constexpr std::int64_t kEventsPerFlush = 256;

std::string describe(const store::DecisionRow& decision) {
  return fmt::format("\"{}\" for trial {} with {}", decision.kind, decision.trial, decision.data);
}

// Only after a divergence can an event concern a trial that is not there.
bool concerns_nobody(const Event& event, std::size_t trials) {
  return std::visit(
      [&](const auto& content) {
        if constexpr (requires { content.trial; }) return content.trial >= trials;
        return false;
      },
      event);
}

}  // namespace

void Replay::run(const store::ExperimentStore& store, std::int64_t after_sequence) {
  last_event_ = after_sequence;
  store.visit({.result = [this](const store::ResultRow& row) { take(row.sequence, row.time, to_event(row)); },
               .event = [this](const store::EventRow& row) { take(row.sequence, row.time, to_event(row)); },
               .decision = [this](const store::DecisionRow& row) { compare(row); }},
              after_sequence);
  end_of_event();
  files_.flush();
}

void Replay::take(std::int64_t sequence, double time, const Event& event) {
  end_of_event();
  last_event_ = sequence;
  if (std::holds_alternative<ControllerStarted>(event)) running_time_.begin_session(time);
  running_time_.see(time);
  ++events_;
  if (concerns_nobody(event, experiment_.trials().size())) return;
  actions_.clear();
  experiment_.handle(event, actions_);
  for (const Action& action : actions_) {
    files_.log(action, time);
    if (const auto* made = std::get_if<RecordDecision>(&action))
      decisions_.push_back({sequence, std::string(to_string(made->kind)), made->trial, base::to_json(made->data)});
  }
  if (events_ % kEventsPerFlush == 0) files_.flush();
}

void Replay::compare(const store::DecisionRow& recorded) {
  if (divergence_) return;
  if (compared_ == decisions_.size()) return differs(describe(recorded), "nothing");
  const store::DecisionRow& now = decisions_[compared_++];
  if (describe(now) != describe(recorded)) differs(describe(recorded), describe(now));
}

void Replay::end_of_event() {
  if (!divergence_ && compared_ < decisions_.size()) differs("nothing more", describe(decisions_[compared_]));
  if (divergence_) divergence_->decisions.insert(divergence_->decisions.end(), decisions_.begin(), decisions_.end());
  decisions_.clear();
  compared_ = 0;
}

void Replay::differs(const std::string& recorded, const std::string& now) {
  const std::string what =
      fmt::format("after event {} the store records {}, but this program decides {}", last_event_, recorded, now);
  if (!allow_divergence_)
    throw StorageError(
        fmt::format("the experiment in {} cannot be continued: {}. Continue it with the program that "
                    "began it, or let RestoreOptions allow the divergence",
                    where_, what));
  divergence_ = Divergence{last_event_, what, {}};
}

}  // namespace cadre::tune
