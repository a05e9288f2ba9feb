#include "run/stored_events.h"

namespace cadre::run {
namespace {

constexpr std::pair<engine::Exit::Kind, const char*> kExitKinds[] = {{engine::Exit::Kind::code, "code"},
                                                                     {engine::Exit::Kind::signal, "signal"},
                                                                     {engine::Exit::Kind::not_started, "not_started"},
                                                                     {engine::Exit::Kind::lost, "lost"}};

}  // namespace

Dict to_dict(const engine::Exit& exit) {
  return {{"kind", name_of(exit.kind, kExitKinds)},
          {"value", exit.value},
          {"detail", exit.detail},
          {"output", exit.output}};
}

engine::Exit to_exit(const Config& data, const std::string& source) {
  return {.kind = value_of(data.get<std::string>("kind"), kExitKinds, source),
          .value = data.get<int>("value"),
          .detail = data.get<std::string>("detail"),
          .output = data.get<std::string>("output", "")};
}

List to_list(const std::vector<CheckpointId>& ids) { return {ids.begin(), ids.end()}; }

std::vector<CheckpointId> to_ids(const List& list) {
  std::vector<CheckpointId> ids;
  for (const Value& id : list) ids.push_back(id.get<CheckpointId>());
  return ids;
}

}  // namespace cadre::run
