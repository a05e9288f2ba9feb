#include "train/journal.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/overload.h"
#include "cadre/error.h"
#include "run/resource_fields.h"
#include "run/stored_events.h"

namespace cadre::train {
namespace {

using run::name_of;
using run::to_dict;
using run::to_exit;
using run::to_ids;
using run::to_list;
using run::value_of;

namespace event_name {
constexpr std::string_view controller_started = "controller_started";
constexpr std::string_view group_broke = "group_broke";
constexpr std::string_view group_began = "group_began";
constexpr std::string_view resources_seen = "resources_seen";
constexpr std::string_view function_returned = "function_returned";
constexpr std::string_view function_threw = "function_threw";
constexpr std::string_view worker_ended = "worker_ended";
constexpr std::string_view timer_fired = "timer_fired";
constexpr std::string_view interrupted = "interrupted";
constexpr std::string_view checkpoints_synced = "checkpoints_synced";
constexpr std::string_view checkpoint_uploaded = "checkpoint_uploaded";
constexpr std::string_view upload_failed = "upload_failed";
constexpr std::string_view promise_ended = "promise_ended";
constexpr std::string_view result_forwarded = "result_forwarded";
constexpr std::string_view validator_returned = "validator_returned";
constexpr std::string_view validator_threw = "validator_threw";
constexpr std::string_view validator_ended = "validator_ended";
}  // namespace event_name

constexpr std::pair<Timer::Kind, const char*> kTimerKinds[] = {
    {Timer::Kind::settling, "settling"},     {Timer::Kind::stopping, "stopping"},
    {Timer::Kind::retry, "retry"},           {Timer::Kind::upload, "upload"},
    {Timer::Kind::validation, "validation"}, {Timer::Kind::validation_retry, "validation_retry"}};

using run::TryAgain;
constexpr std::pair<TryAgain, const char*> kAgain[] = {
    {TryAgain::never, "never"}, {TryAgain::later, "later"}, {TryAgain::when_there_is_space, "when_there_is_space"}};

constexpr std::pair<DecisionKind, const char*> kDecisions[] = {{DecisionKind::launch, "launch"},
                                                               {DecisionKind::retry, "retry"},
                                                               {DecisionKind::finish, "finish"},
                                                               {DecisionKind::fail, "fail"},
                                                               {DecisionKind::stop, "stop"},
                                                               {DecisionKind::lose, "lose"},
                                                               {DecisionKind::resize, "resize"},
                                                               {DecisionKind::validate, "validate"},
                                                               {DecisionKind::settle_validation, "settle_validation"}};

// Stores of earlier versions have no "machine" entry.
Resources to_machine(const Config& data) {
  Resources machine{.cpus = 0};
  if (data.contains("machine")) base::LoadArchive::load(data.at("machine"), machine);
  return machine;
}

// The row's trial column: kRun for the whole run; in some events the rank, or the checkpoint that is validated.
constexpr std::int64_t kRun = 0;
constexpr std::int64_t kNobody = -1;

}  // namespace

std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated) {
  const auto add = [&](std::string_view kind, std::int64_t rank, std::int64_t attempt, const Dict& data) {
    return store.add(store::EventRow{0, time, std::string(kind), rank, attempt, base::to_json(data)});
  };
  return std::visit(
      base::Overload{
          [&](const GroupReported& report) {
            return store.add(store::ResultRow{0, time, kRun, report.attempt, report.step, repeated,
                                              base::to_json(report.metrics.dict()), to_text(report.checkpoint)});
          },
          [&](const ControllerStarted& started) {
            return add(event_name::controller_started, kNobody, 0,
                       {{"lost_checkpoints", to_list(started.lost_checkpoints)},
                        {"lost_uploads", to_list(started.lost_uploads)},
                        {"machine", base::SaveArchive::to_value(started.machine)},
                        {"hostname", started.hostname}});
          },
          [&](const GroupBroke& broke) {
            return add(event_name::group_broke, kNobody, broke.attempt, {{"reason", broke.reason}});
          },
          [&](const FunctionReturned& returned) {
            return add(event_name::function_returned, returned.rank, returned.attempt, {{"value", returned.value}});
          },
          [&](const FunctionThrew& threw) {
            return add(event_name::function_threw, threw.rank, threw.attempt, {{"message", threw.message}});
          },
          [&](const WorkerEnded& ended) {
            return add(event_name::worker_ended, ended.rank, ended.attempt, to_dict(ended.exit));
          },
          [&](const TimerFired& fired) {
            return add(event_name::timer_fired, kNobody, fired.timer.attempt,
                       {{"kind", name_of(fired.timer.kind, kTimerKinds)}});
          },
          [&](const RunInterrupted&) { return add(event_name::interrupted, kNobody, 0, {}); },
          [&](const CheckpointsSynced& synced) {
            return add(event_name::checkpoints_synced, kNobody, 0, {{"checkpoints", to_list(synced.checkpoints)}});
          },
          [&](const CheckpointUploaded& uploaded) {
            return add(event_name::checkpoint_uploaded, kNobody, 0, {{"number", uploaded.number}});
          },
          [&](const UploadFailed& failed) {
            return add(
                event_name::upload_failed, kNobody, 0,
                {{"number", failed.number}, {"reason", failed.reason}, {"again", name_of(failed.again, kAgain)}});
          },
          [&](const PromiseEnded& ended) {
            return add(event_name::promise_ended, ended.rank, ended.attempt,
                       base::SaveArchive::to_value(ended.end).dict());
          },
          [&](const GroupBegan& began) { return add(event_name::group_began, kNobody, began.attempt, {}); },
          [&](const ResourcesSeen& seen) {
            return add(event_name::resources_seen, kNobody, 0,
                       {{"workers", seen.workers}, {"machine", base::SaveArchive::to_value(seen.machine)}});
          },
          [&](const ResultForwarded& forwarded) {
            return add(event_name::result_forwarded, kNobody, forwarded.attempt, {{"go_on", forwarded.go_on}});
          },
          [&](const ValidatorReturned& returned) {
            return add(event_name::validator_returned, returned.checkpoint, returned.attempt,
                       {{"metrics", returned.metrics.value()}});
          },
          [&](const ValidatorThrew& threw) {
            Dict said{{"message", threw.message}};
            if (threw.is_hopeless) said.emplace_back("is_hopeless", true);
            return add(event_name::validator_threw, threw.checkpoint, threw.attempt, said);
          },
          [&](const ValidatorEnded& ended) {
            return add(event_name::validator_ended, ended.checkpoint, ended.attempt, to_dict(ended.exit));
          }},
      event);
}

Event to_event(const store::ResultRow& row) {
  const Value metrics = base::parse_json(row.metrics, fmt::format("result {} of the store", row.sequence));
  return GroupReported{row.attempt, row.step, Metrics(metrics),
                       to_group_checkpoint(row.checkpoint, fmt::format("result {} of the store", row.sequence))};
}

Event to_event(const store::EventRow& row) {
  const std::string source = fmt::format("event {} of the store", row.sequence);
  const Config data(base::parse_json(row.data, source).dict());
  if (row.kind == event_name::controller_started)
    return ControllerStarted{to_ids(data.get<List>("lost_checkpoints")), to_ids(data.get<List>("lost_uploads", {})),
                             to_machine(data), data.get<std::string>("hostname", "")};
  if (row.kind == event_name::group_broke) return GroupBroke{row.attempt, data.get<std::string>("reason")};
  if (row.kind == event_name::function_returned) return FunctionReturned{row.trial, row.attempt, data.at("value")};
  if (row.kind == event_name::function_threw)
    return FunctionThrew{row.trial, row.attempt, data.get<std::string>("message")};
  if (row.kind == event_name::worker_ended) return WorkerEnded{row.trial, row.attempt, to_exit(data, source)};
  if (row.kind == event_name::timer_fired)
    return TimerFired{{value_of(data.get<std::string>("kind"), kTimerKinds, source), row.attempt}};
  if (row.kind == event_name::interrupted) return RunInterrupted{};
  if (row.kind == event_name::checkpoints_synced) return CheckpointsSynced{to_ids(data.get<List>("checkpoints"))};
  if (row.kind == event_name::checkpoint_uploaded) return CheckpointUploaded{data.get<std::int64_t>("number")};
  if (row.kind == event_name::upload_failed)
    return UploadFailed{data.get<std::int64_t>("number"), data.get<std::string>("reason"),
                        value_of(data.get<std::string>("again"), kAgain, source)};
  if (row.kind == event_name::promise_ended)
    return PromiseEnded{row.trial, row.attempt, std::get<PromiseEnd>(to_notice(data.value()))};
  if (row.kind == event_name::resources_seen) return ResourcesSeen{data.get<std::int64_t>("workers"), to_machine(data)};
  if (row.kind == event_name::group_began) return GroupBegan{row.attempt};
  if (row.kind == event_name::result_forwarded) return ResultForwarded{row.attempt, data.get<bool>("go_on")};
  if (row.kind == event_name::validator_returned)
    return ValidatorReturned{row.trial, row.attempt, Metrics(data.at("metrics"))};
  if (row.kind == event_name::validator_threw)
    return ValidatorThrew{row.trial, row.attempt, data.get<std::string>("message"),
                          data.get<bool>("is_hopeless", false)};
  if (row.kind == event_name::validator_ended) return ValidatorEnded{row.trial, row.attempt, to_exit(data, source)};
  throw StorageError(source + " has the unknown kind \"" + row.kind + "\": the store is damaged or of a newer Cadre");
}

store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause) {
  return {.cause = cause,
          .kind = name_of(decision.kind, kDecisions),
          .trial = kNobody,
          .data = base::to_json(decision.data)};
}

store::TrialRow to_row(const Run& run, const Config& config) {
  return {.trial = kRun,
          .trial_id = "run",
          .status = to_string(run.status()),
          .attempt = run.attempt(),
          .config = base::to_json(config.dict()),
          .tag = "",
          .directory = "",
          .error = run.error()};
}

}  // namespace cadre::train
