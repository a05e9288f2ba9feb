#include "tune/journal.h"

#include <algorithm>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/overload.h"
#include "control/event_rows.h"

namespace cadre::tune {
namespace {

store::ResultRow to_result_row(const ResultReported& event, double time, bool repeated) {
  const channel::Report& report = event.report;
  const bool offered = report.offers_checkpoint && report.checkpoint.empty();
  std::string metrics;
  base::append_json(metrics, report.metrics.dict());
  return {.time = time,
          .trial = event.trial,
          .attempt = event.attempt,
          .step = report.step,
          .repeated = repeated,
          .metrics = std::move(metrics),
          .checkpoint = offered ? std::string(kOfferedCheckpoint) : report.checkpoint};
}

}  // namespace

std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated) {
  return std::visit(
      base::Overload{[&](const ResultReported& result) { return store.add(to_result_row(result, time, repeated)); },
                     [&](const auto& other) { return store.add(control::to_event_row(other, time)); }},
      event);
}

Event to_event(const store::ResultRow& row) {
  const Value metrics = base::parse_json(row.metrics, "result " + std::to_string(row.sequence) + " of the store");
  const bool offered = row.checkpoint == kOfferedCheckpoint;
  return ResultReported{static_cast<TrialIndex>(row.trial),
                        row.attempt,
                        {.step = row.step,
                         .metrics = Metrics(metrics),
                         .checkpoint = offered ? "" : row.checkpoint,
                         .offers_checkpoint = offered}};
}

Event to_event(const store::EventRow& row) { return control::from_event_row<Event, ResultReported>(row); }

store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause) {
  return {.cause = cause,
          .kind = std::string(to_string(decision.kind)),
          .trial = decision.trial,
          .data = base::to_json(decision.data)};
}

RecordedAnswers answers_of(const std::vector<store::DecisionRow>& decisions) {
  using enum DecisionKind;
  RecordedAnswers answers;
  for (const store::DecisionRow& row : decisions) {
    for (const DecisionKind kind : {make, exploit, resume_errored, stop_function, stop_all}) {
      if (row.kind == to_string(kind))
        answers.push_back({kind, static_cast<TrialIndex>(row.trial), base::parse_json(row.data, "a decision").dict()});
    }
  }
  std::ranges::stable_sort(answers, {}, &RecordDecision::trial);
  return answers;
}

store::TrialRow to_row(const SaveTrial& trial) {
  return {.trial = trial.trial,
          .trial_id = trial.id,
          .status = to_string(trial.status),
          .attempt = trial.attempt,
          .config = base::to_json(trial.config.dict()),
          .tag = trial.tag,
          .directory = trial.directory,
          .error = trial.error};
}

}  // namespace cadre::tune
