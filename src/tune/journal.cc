#include "tune/journal.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"
#include "run/stored_events.h"

namespace cadre::tune {
namespace {

using run::name_of;
using run::to_dict;
using run::to_exit;
using run::to_ids;
using run::to_list;
using run::value_of;

Dict to_dict(const Resources& resources) {
  Dict custom;
  for (const auto& [name, amount] : resources.custom) custom.emplace_back(name, amount);
  Dict labels;
  for (const auto& [name, value] : resources.labels) labels.emplace_back(name, value);
  return {{"cpus", resources.cpus},
          {"gpus", resources.gpus},
          {"custom", std::move(custom)},
          {"accelerator_type", resources.accelerator_type},
          {"labels", std::move(labels)}};
}

Resources to_resources(const Config& data) {
  Resources resources{.cpus = data.get<double>("cpus"),
                      .gpus = data.get<double>("gpus"),
                      .accelerator_type = data.get<std::string>("accelerator_type", "")};
  for (const auto& [name, amount] : data.get<Dict>("custom")) resources.custom[name] = amount.get<double>();
  for (const auto& [name, value] : data.get<Dict>("labels", {})) resources.labels[name] = value.get<std::string>();
  return resources;
}

using Errored = ControllerStarted::Errored;
constexpr std::pair<Errored, const char*> kErrored[] = {
    {Errored::leave, "leave"}, {Errored::resume, "resume"}, {Errored::restart, "restart"}};

constexpr std::pair<Timer::Kind, const char*> kTimerKinds[] = {{Timer::Kind::running, "running"},
                                                               {Timer::Kind::stopping, "stopping"},
                                                               {Timer::Kind::retry, "retry"},
                                                               {Timer::Kind::barrier, "barrier"},
                                                               {Timer::Kind::budget, "budget"}};

Dict to_dict(const ControllerStarted& event) {
  Dict data = to_dict(event.resources);
  data.emplace_back("errored", name_of(event.errored, kErrored));
  data.emplace_back("lost_checkpoints", to_list(event.lost_checkpoints));
  data.emplace_back("running_time_s", event.running_time_s);
  return data;
}

ControllerStarted to_controller_started(const Config& data, const std::string& source) {
  return {to_resources(data), value_of(data.get<std::string>("errored"), kErrored, source),
          to_ids(data.get<List>("lost_checkpoints")), data.get<double>("running_time_s", 0)};  // none in format 3
}

std::string checkpoint_of(const channel::Report& report) {
  const bool offered = report.offers_checkpoint && report.checkpoint.empty();
  return offered ? std::string(kOfferedCheckpoint) : report.checkpoint;
}

struct Record {
  store::ExperimentStore& store;
  double time;
  bool repeated;

  std::int64_t operator()(const ResultReported& event) const {
    std::string metrics;
    base::append_json(metrics, event.report.metrics.dict());
    return store.add(store::ResultRow{0, time, event.trial, event.attempt, event.report.step, repeated,
                                      std::move(metrics), checkpoint_of(event.report)});
  }
  std::int64_t operator()(const ControllerStarted& event) const {
    return add(event_name::controller_started, -1, 0, to_dict(event));
  }
  std::int64_t operator()(const FunctionReturned& event) const {
    return add(event_name::function_returned, event.trial, event.attempt, {});
  }
  std::int64_t operator()(const FunctionThrew& event) const {
    return add(event_name::function_threw, event.trial, event.attempt, {{"message", event.message}});
  }
  std::int64_t operator()(const WorkerDeclined& event) const {
    return add(event_name::worker_declined, event.trial, event.attempt, {});
  }
  std::int64_t operator()(const WorkerEnded& event) const {
    return add(event_name::worker_ended, event.trial, event.attempt, to_dict(event.exit));
  }
  std::int64_t operator()(const TimerFired& event) const {
    const auto& [kind, trial, number] = event.timer;
    return add(event_name::timer_fired, trial, number, {{"kind", name_of(kind, kTimerKinds)}});
  }
  std::int64_t operator()(const ExperimentInterrupted&) const { return add(event_name::interrupted, -1, 0, {}); }
  std::int64_t operator()(const CheckpointsSynced& event) const {
    return add(event_name::checkpoints_synced, -1, 0, {{"checkpoints", to_list(event.checkpoints)}});
  }
  std::int64_t operator()(const MemoryRunsShort&) const { return add(event_name::memory_runs_short, -1, 0, {}); }
  std::int64_t operator()(const TimeLost& event) const {
    return add(event_name::time_lost, -1, 0, {{"seconds", event.seconds}});
  }

 private:
  std::int64_t add(std::string_view kind, std::int64_t trial, std::int64_t attempt, const Dict& data) const {
    return store.add(store::EventRow{0, time, std::string(kind), trial, attempt, base::to_json(data)});
  }
};

}  // namespace

std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated) {
  return std::visit(Record{store, time, repeated}, event);
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

Event to_event(const store::EventRow& row) {
  const std::string source = "event " + std::to_string(row.sequence) + " of the store";
  const Config data(base::parse_json(row.data, source).dict());
  const auto trial = static_cast<TrialIndex>(row.trial);
  if (row.kind == event_name::controller_started) return to_controller_started(data, source);
  if (row.kind == event_name::function_returned) return FunctionReturned{trial, row.attempt};
  if (row.kind == event_name::function_threw)
    return FunctionThrew{trial, row.attempt, data.get<std::string>("message")};
  if (row.kind == event_name::worker_declined) return WorkerDeclined{trial, row.attempt};
  if (row.kind == event_name::worker_ended) return WorkerEnded{trial, row.attempt, to_exit(data, source)};
  if (row.kind == event_name::timer_fired)
    return TimerFired{{value_of(data.get<std::string>("kind"), kTimerKinds, source), trial, row.attempt}};
  if (row.kind == event_name::interrupted) return ExperimentInterrupted{};
  if (row.kind == event_name::checkpoints_synced) return CheckpointsSynced{to_ids(data.get<List>("checkpoints"))};
  if (row.kind == event_name::memory_runs_short) return MemoryRunsShort{};
  if (row.kind == event_name::time_lost) return TimeLost{data.get<double>("seconds")};
  throw StorageError(source + " has the unknown kind \"" + row.kind + "\": the store is damaged or of a newer Cadre");
}

store::TrialRow to_row(const Trial& trial) {
  return {.trial = trial.index,
          .trial_id = trial.id,
          .status = to_string(trial.status),
          .attempt = trial.attempt,
          .config = base::to_json(trial.config.dict()),
          .tag = trial.tag,
          .directory = trial.directory,
          .error = trial.error};
}

}  // namespace cadre::tune
