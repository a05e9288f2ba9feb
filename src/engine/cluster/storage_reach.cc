#include "engine/cluster/storage_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checksum.h"

namespace cadre::engine::cluster {

StorageReach::StorageReach(RunStorage storage)
    : storage_(std::move(storage)), checksum_(base::checksum_of(storage_.contents)) {}

UseStorage StorageReach::begin(NodeId node, TimePoint now) {
  nodes_[node] = {.try_until = now + time_to_try};
  return {.uri = storage::to_string(storage_.uri), .file = storage_.file};
}

std::string StorageReach::take(NodeId node, const TriedStorage& tried) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.try_until) return "it has answered too late";
  found->second.try_until.reset();
  if (!tried.fault.empty()) return tried.fault;
  if (tried.checksum != checksum_)
    return fmt::format("what it finds there is not what this program has written: its {} differs", storage_.file);
  found->second.is_reached = true;
  return "";
}

std::vector<NodeId> StorageReach::give_up(TimePoint now) {
  std::vector<NodeId> late;
  for (auto& [node, state] : nodes_) {
    if (!state.try_until || *state.try_until > now) continue;
    state.try_until.reset();
    late.push_back(node);
  }
  return late;
}

bool StorageReach::is_trying(NodeId node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.try_until.has_value();
}

bool StorageReach::is_any_trying() const {
  return std::ranges::any_of(nodes_, [](const auto& entry) { return entry.second.try_until.has_value(); });
}

bool StorageReach::is_reached(NodeId node, TimePoint now) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.is_reached && now >= found->second.without_until;
}

bool StorageReach::fails(NodeId node, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const bool is_new = is_reached(node, now);
  found->second.without_until = now + time_without;
  return is_new;
}

}  // namespace cadre::engine::cluster
