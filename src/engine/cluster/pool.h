// Decides how many nodes of each group there are to be while work comes and goes: what waits gets nodes, and a node on
// which nothing has run for a while goes back. Pure: the caller says what there is, and what time it is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/resources.h"
#include "engine/engine.h"

namespace cadre::engine::cluster {

// How many nodes of one kind there may be.
struct PoolGroup {
  std::string name = {};
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::chrono::steady_clock::duration linger{0};  // how long a node beyond `least` may have nothing to do
  double cpus = 0;                                // of each node; 0: unknown until there was one
  double gpus = 0;                                // 0: none, or if the CPUs are unknown, these too
  std::string accelerator_type = {};              // of the GPUs; empty: unknown
  double price = 0;                               // of a node for an hour
};

// The nodes of a group at one time. Those that drain are not among `there`.
struct PoolNodes {
  std::int64_t there = 0;
  std::int64_t coming = 0;                                                          // requested, and not there yet
  std::int64_t leaving = 0;                                                         // that drain, and run something
  std::vector<std::pair<NodeId, std::chrono::steady_clock::time_point>> idle = {};  // of those there: since when
};

// Says what is to be done for a group.
struct PoolOrder {
  std::int64_t request = 0;            // nodes
  std::int64_t withdraw = 0;           // of the coming ones
  std::vector<NodeId> give_back = {};  // idle ones
  bool operator==(const PoolOrder&) const = default;
};

class Pool {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Pool() = default;  // without groups
  explicit Pool(const std::vector<PoolGroup>& groups);

  // Returns true if there is a group with more nodes at some times than at others.
  bool follows_demand() const;
  bool follows_demand(std::size_t group) const { return groups_[group].limits.least < groups_[group].limits.most; }

  void set_demand(std::vector<Demand> demand);
  bool has_demand() const { return !demand_.empty(); }
  // A node of a group has joined: the others of the group are taken to be like it.
  void saw(std::size_t group, const Resources& node) { groups_[group].seen = node; }
  // Asks for no more nodes of a group.
  void give_up(std::size_t group) { groups_[group].is_given_up = true; }
  // Returns true if there is demand for a group that is not given up.
  bool may_ask() const;

  // Returns what is to be done now, for each group; for those that follow no demand nothing. What is missing or too
  // much is asked for or withdrawn when it has been so for a moment: nodes that join, and workers that end, change it.
  std::vector<PoolOrder> decide(const std::vector<PoolNodes>& nodes, TimePoint now);
  // Returns when decide() would return something else if nothing changes; empty: not then.
  std::optional<TimePoint> next() const { return next_; }

 private:
  struct Group {
    PoolGroup limits;
    std::optional<Resources> seen = {};  // what the latest node has had
    bool is_given_up = false;
    std::optional<TimePoint> short_since = {};
    std::optional<TimePoint> long_since = {};
  };

  static Resources node_for(const Group& group, const Resources& worker);
  static Resources asked_of(const Group& group, const Resources& worker);
  static bool has_room(const Group& group, const Resources& worker);
  std::vector<std::int64_t> needed(const std::vector<PoolNodes>& nodes) const;
  std::optional<std::size_t> cheapest(const Resources& worker, std::int64_t workers,
                                      const std::vector<std::int64_t>& free) const;
  bool is_needed(const Group& group) const;
  void consider(TimePoint time);

  std::vector<Group> groups_ = {};
  std::vector<Demand> demand_ = {};
  std::optional<TimePoint> next_ = {};
};

}  // namespace cadre::engine::cluster
