#include "train/journal.h"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "base/json.h"
#include "base/overload.h"
#include "cadre/detail/enum_names.h"
#include "control/event_rows.h"

namespace cadre::train {
namespace {

// The row's trial column: kRun for the whole run; in some events the rank, or the checkpoint that is validated.
constexpr std::int64_t kRun = 0;
constexpr std::int64_t kNobody = -1;

}  // namespace

std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated) {
  return std::visit(base::Overload{[&](const GroupReported& report) {
                                     return store.add(store::ResultRow{.time = time,
                                                                       .trial = kRun,
                                                                       .attempt = report.attempt,
                                                                       .step = report.step,
                                                                       .repeated = repeated,
                                                                       .metrics = base::to_json(report.metrics.dict()),
                                                                       .checkpoint = to_text(report.checkpoint)});
                                   },
                                   [&](const auto& other) { return store.add(control::to_event_row(other, time)); }},
                    event);
}

Event to_event(const store::ResultRow& row) {
  const Value metrics = base::parse_json(row.metrics, fmt::format("result {} of the store", row.sequence));
  return GroupReported{row.attempt, row.step, Metrics(metrics),
                       to_group_checkpoint(row.checkpoint, fmt::format("result {} of the store", row.sequence))};
}

Event to_event(const store::EventRow& row) { return control::from_event_row<Event, GroupReported>(row); }

store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause) {
  return {.cause = cause,
          .kind = std::string(cadre::detail::enum_name(decision.kind)),
          .trial = kNobody,
          .data = base::to_json(decision.data)};
}

store::TrialRow to_row(const SaveRun& run, const Config& config) {
  return {.trial = kRun,
          .trial_id = "run",
          .status = to_string(run.status),
          .attempt = run.attempt,
          .config = base::to_json(config.dict()),
          .tag = "",
          .directory = "",
          .error = run.error};
}

}  // namespace cadre::train
