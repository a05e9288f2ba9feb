#include "train/assignment.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "cadre/stored.h"

namespace cadre::train {

Value to_value(const RankAssignment& assignment) { return cadre::to_stored(assignment); }

RankAssignment to_assignment(const Value& payload) { return cadre::from_value<RankAssignment>(payload); }

std::string directory_of_rank(std::int64_t rank) { return fmt::format("rank_{}", rank); }

worker::GroupPlace place_of(const LaunchGroup& group, Rank rank, std::span<const engine::Node> nodes) {
  const std::vector<resources::Place>& places = group.places;
  const engine::NodeId node = places.at(static_cast<std::size_t>(rank)).node;
  const auto [first, last] = std::ranges::equal_range(places, node, {}, &resources::Place::node);
  const auto known = std::ranges::find(nodes, node, &engine::Node::id);
  const bool has_address = group.machines.size() > 1 && known != nodes.end();
  return {.world_rank = static_cast<int>(rank),
          .world_size = static_cast<int>(group.workers),
          .local_rank = static_cast<int>(rank - (first - places.begin())),
          .local_world_size = static_cast<int>(last - first),
          .node_rank = static_cast<int>(std::distance(group.machines.begin(), group.machines.find(node))),
          .num_nodes = static_cast<int>(group.machines.size()),
          .address = has_address ? known->address : std::string()};
}

}  // namespace cadre::train
