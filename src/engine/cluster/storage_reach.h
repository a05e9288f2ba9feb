// Keeps for each node if it reaches the storage where a run is published: found out by trying, not configured. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/messages.h"
#include "engine/engine.h"

namespace cadre::engine::cluster {

class StorageReach {
 public:
  using TimePoint = Engine::Clock::time_point;
  // How long a node may try. One that has not said so after that does not reach the storage.
  static constexpr std::chrono::seconds time_to_try{20};
  // How long a node does without the storage after it has failed there.
  static constexpr std::chrono::seconds time_without{60};
  // After how long a node tries again that did not reach it, for the first time; each further pause is twice as long.
  static constexpr std::chrono::seconds first_pause{10};
  static constexpr std::chrono::seconds longest_pause{600};

  explicit StorageReach(RunStorage storage);

  const RunStorage& storage() const { return storage_; }
  // Begins a try, the first one or another, and returns what the node is to try.
  UseStorage begin(NodeId node, TimePoint now);
  // Returns why the node does not reach the storage; empty: it does. Without effect if it does not try any more.
  std::string take(NodeId node, const TriedStorage& tried, TimePoint now);
  // Gives up nodes that have tried for too long, and returns them.
  std::vector<NodeId> give_up(TimePoint now);
  // Returns nodes that are to try again: begin().
  std::vector<NodeId> due(TimePoint now) const;

  bool is_trying(NodeId node) const;
  // Returns true while a node tries for the first time.
  bool awaits_first_tries() const;
  int failed_tries(NodeId node) const;
  bool is_reached(NodeId node, TimePoint now) const;
  // Does without the storage on a node for a while. Returns false if it did already.
  bool fails(NodeId node, TimePoint now);
  void forget(NodeId node) { nodes_.erase(node); }

 private:
  struct State {
    std::optional<TimePoint> try_until = {};  // empty: it does not try
    bool is_reached = false;
    int failed_tries = 0;
    TimePoint without_until = {};  // reached or not
  };

  static void fail(State& state, TimePoint now);

  RunStorage storage_;
  std::uint64_t checksum_;  // of the run's file there
  std::map<NodeId, State> nodes_ = {};
};

}  // namespace cadre::engine::cluster
