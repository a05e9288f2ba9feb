#include "engine/cluster/storage_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checksum.h"

namespace cadre::engine::cluster {

StorageReach::StorageReach(RunStorage storage)
    : storage_(std::move(storage)), checksum_(base::checksum_of(storage_.contents)) {}

UseStorage StorageReach::begin(NodeId node, TimePoint now) {
  nodes_[node].try_until = now + time_to_try;
  return {.uri = storage::to_string(storage_.uri), .file = storage_.file};
}

std::string StorageReach::take(NodeId node, const TriedStorage& tried, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.try_until) return "it has answered too late";
  State& state = found->second;
  std::string fault = tried.fault;
  if (fault.empty() && tried.checksum != checksum_)
    fault = fmt::format("what it finds there is not what this program has written: its {} differs", storage_.file);
  if (!fault.empty()) {
    fail(state, now);
    return fault;
  }
  state.try_until.reset();
  state.is_reached = true;
  return "";
}

void StorageReach::fail(State& state, TimePoint now) {
  state.try_until.reset();
  state.without_until = now + std::min(first_pause * (1 << std::min(state.failed_tries, 10)), longest_pause);
  ++state.failed_tries;
}

std::vector<NodeId> StorageReach::give_up(TimePoint now) {
  std::vector<NodeId> late;
  for (auto& [node, state] : nodes_) {
    if (!state.try_until || *state.try_until > now) continue;
    fail(state, now);
    late.push_back(node);
  }
  return late;
}

std::vector<NodeId> StorageReach::due(TimePoint now) const {
  std::vector<NodeId> due;
  for (const auto& [node, state] : nodes_) {
    if (!state.is_reached && !state.try_until && now >= state.without_until) due.push_back(node);
  }
  return due;
}

bool StorageReach::is_trying(NodeId node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.try_until.has_value();
}

bool StorageReach::awaits_first_tries() const {
  return std::ranges::any_of(nodes_, [](const auto& entry) {
    const State& state = entry.second;
    return state.try_until.has_value() && state.failed_tries == 0;
  });
}

int StorageReach::failed_tries(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.failed_tries;
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
