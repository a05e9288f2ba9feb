#include "run/stored_events.h"

namespace cadre::run {
namespace {

constexpr std::pair<engine::Exit::Kind, const char*> kExitKinds[] = {{engine::Exit::Kind::code, "code"},
                                                                     {engine::Exit::Kind::signal, "signal"},
                                                                     {engine::Exit::Kind::not_started, "not_started"},
                                                                     {engine::Exit::Kind::lost, "lost"}};

}  // namespace

Dict to_dict(const engine::Exit& exit) {
  return {{"kind", name_of(exit.kind, kExitKinds)}, {"value", exit.value}, {"detail", exit.detail}};
}

engine::Exit to_exit(const Config& data, const std::string& source) {
  return {value_of(data.get<std::string>("kind"), kExitKinds, source), data.get<int>("value"),
          data.get<std::string>("detail")};
}

List to_list(const std::vector<CheckpointId>& ids) { return {ids.begin(), ids.end()}; }

std::vector<CheckpointId> to_ids(const List& list) {
  std::vector<CheckpointId> ids;
  for (const Value& id : list) ids.push_back(id.get<CheckpointId>());
  return ids;
}

}  // namespace cadre::run
