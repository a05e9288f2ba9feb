#include "tune/journal.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"

namespace cadre::tune {
namespace {

constexpr const char* kStarted = "controller_started";
constexpr const char* kReturned = "function_returned";
constexpr const char* kThrew = "function_threw";
constexpr const char* kEnded = "worker_ended";

Dict to_dict(const Resources& resources) {
  Dict custom;
  for (const auto& [name, amount] : resources.custom) custom.emplace_back(name, amount);
  return {{"cpus", resources.cpus}, {"gpus", resources.gpus}, {"custom", std::move(custom)}};
}

Resources to_resources(const Config& data) {
  Resources resources{.cpus = data.get<double>("cpus"), .gpus = data.get<double>("gpus")};
  for (const auto& [name, amount] : data.get<Dict>("custom")) resources.custom[name] = amount.get<double>();
  return resources;
}

constexpr std::pair<engine::Exit::Kind, const char*> kExitKinds[] = {{engine::Exit::Kind::code, "code"},
                                                                     {engine::Exit::Kind::signal, "signal"},
                                                                     {engine::Exit::Kind::not_started, "not_started"},
                                                                     {engine::Exit::Kind::lost, "lost"}};

Dict to_dict(const engine::Exit& exit) {
  const auto* kind = std::ranges::find(kExitKinds, exit.kind, &std::pair<engine::Exit::Kind, const char*>::first);
  return {{"kind", kind->second}, {"value", exit.value}, {"detail", exit.detail}};
}

engine::Exit to_exit(const Config& data, const std::string& source) {
  for (const auto& [kind, name] : kExitKinds) {
    if (data.get<std::string>("kind") == name) return {kind, data.get<int>("value"), data.get<std::string>("detail")};
  }
  throw StorageError(source + " has the unknown exit kind \"" + data.get<std::string>("kind") + "\"");
}

struct Record {
  store::ExperimentStore& store;
  double time;
  bool repeated;

  std::int64_t operator()(const ResultReported& event) const {
    std::string metrics;
    base::append_json(metrics, event.report.metrics.dict());
    return store.add(store::ResultRow{0, time, event.trial, event.attempt, event.report.step, repeated,
                                      std::move(metrics), event.report.checkpoint});
  }
  std::int64_t operator()(const ControllerStarted& event) const {
    return add(kStarted, -1, 0, to_dict(event.resources));
  }
  std::int64_t operator()(const FunctionReturned& event) const {
    return add(kReturned, event.trial, event.attempt, {});
  }
  std::int64_t operator()(const FunctionThrew& event) const {
    return add(kThrew, event.trial, event.attempt, {{"message", event.message}});
  }
  std::int64_t operator()(const WorkerEnded& event) const {
    return add(kEnded, event.trial, event.attempt, to_dict(event.exit));
  }

 private:
  std::int64_t add(const char* kind, std::int64_t trial, std::int64_t attempt, const Dict& data) const {
    return store.add(store::EventRow{0, time, kind, trial, attempt, base::to_json(data)});
  }
};

}  // namespace

std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated) {
  return std::visit(Record{store, time, repeated}, event);
}

Event to_event(const store::ResultRow& row) {
  const Value metrics = base::parse_json(row.metrics, "result " + std::to_string(row.sequence) + " of the store");
  return ResultReported{static_cast<TrialIndex>(row.trial),
                        row.attempt,
                        {.step = row.step, .metrics = Metrics(metrics.dict()), .checkpoint = row.checkpoint}};
}

Event to_event(const store::EventRow& row) {
  const std::string source = "event " + std::to_string(row.sequence) + " of the store";
  const Config data(base::parse_json(row.data, source).dict());
  const auto trial = static_cast<TrialIndex>(row.trial);
  if (row.kind == kStarted) return ControllerStarted{to_resources(data)};
  if (row.kind == kReturned) return FunctionReturned{trial, row.attempt};
  if (row.kind == kThrew) return FunctionThrew{trial, row.attempt, data.get<std::string>("message")};
  if (row.kind == kEnded) return WorkerEnded{trial, row.attempt, to_exit(data, source)};
  throw StorageError(source + " has the unknown kind \"" + row.kind + "\": the store is damaged or of a newer Cadre");
}

}  // namespace cadre::tune
