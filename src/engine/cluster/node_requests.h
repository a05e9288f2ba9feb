// Follows the requests of a controller to its provider: knows which of their nodes are gone or will go, and what is to
// be asked for in their place. Pure: the caller says what time it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/kept_nodes.h"
#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {

class NodeRequests {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Place = std::pair<std::uint64_t, std::int64_t>;  // a node's request, and its ordinal there

  // Numbers further requests after those of an earlier process.
  void number_after(std::uint64_t last) { last_ = last; }
  std::uint64_t last() const { return last_; }
  // Takes over requests of an earlier process, except for the nodes that nobody needs.
  void take_over(const Continuation& continuation);
  // Numbers a request, and returns it.
  const NodeRequest& add(NodeRequest request);

  bool contains(std::uint64_t request) const { return requests_.contains(request); }
  std::vector<std::uint64_t> all() const;
  bool is_taken_over(std::uint64_t request) const { return taken_over_.contains(request); }
  // Returns true for a node of an earlier process that nobody needs.
  bool is_surplus(const Place& place) const { return surplus_.contains(place); }
  // Returns those that have nodes, or wait for them, as kept for another process.
  std::vector<KeptRequest> kept() const;
  // Return what is still to come while these nodes are there: the nodes, the latest last, without those that are only
  // to be asked for again; and in words.
  std::vector<Place> awaited(const std::set<Place>& there) const;
  std::vector<WaitingNodes> waiting(const std::set<Place>& there) const;

  const std::string& group_of(std::uint64_t request) const { return requests_.at(request).group; }
  // Returns how many nodes of a group are to be asked for again later.
  std::int64_t replacing(const std::string& group) const;
  // Returns true if a node may still come while these are there.
  bool has_hope(const std::set<Place>& there) const;

  // Take in what the provider says of a request.
  void note(const Queued& queued) { queued_[queued.request][queued.ordinal] = queued; }
  void note(const Refused& refused);
  void note(const NodeEnds& ends);
  // Returns when a node ends, whatever runs there; empty if that is not known.
  std::optional<TimePoint> end_of(const Place& place) const;

  // An agent has connected: what it needs is there.
  void agent_connected() { failures_ = 0; }
  // Asks for nodes again whose agents have ended, unless it has done so before: at once if one had connected, or had
  // waited for a controller in vain, and else later each time. Returns false, and asks for none, if `is_needed`, or if
  // agents have ended too often before they connected.
  bool agent_ended(const AgentEnded& ended, bool had_connected, bool is_needed, TimePoint now);
  // Asks for a node again that will go: at once, because the other one may be queued for a while.
  void replace(const Place& place, TimePoint now);
  // Does not ask for a node again when it is gone.
  void forget(const Place& place);
  // Nobody needs a node that has not come yet.
  void withdraw(const Place& place);

  bool has_replacements() const { return !replacements_.empty(); }
  std::optional<TimePoint> next_replacement() const;
  // Returns and forgets what is to be asked for by now.
  std::vector<NodeRequest> take_replacements(TimePoint now);

  std::int64_t failures() const { return failures_; }  // agents that ended before they connected, in a row

 private:
  struct Replacement {
    NodeRequest request;
    TimePoint at;
  };

  const Queued* why_waits(const KeptRequest& kept, const std::set<Place>& there) const;
  NodeRequest remove(std::uint64_t id, const std::optional<std::int64_t>& ordinal);

  std::uint64_t last_ = 0;
  std::map<std::uint64_t, NodeRequest> requests_ = {};
  std::map<std::uint64_t, std::set<std::int64_t>> gone_ = {};  // nodes that are gone, or drain
  std::set<std::uint64_t> taken_over_ = {};
  std::set<Place> surplus_ = {};
  // The last of each request, and of each of its nodes for which there was one.
  std::map<std::uint64_t, std::map<std::optional<std::int64_t>, Queued>> queued_ = {};
  std::set<std::uint64_t> refused_ = {};
  std::map<Place, std::optional<TimePoint>> ends_ = {};             // of single nodes
  std::map<std::uint64_t, std::optional<TimePoint>> all_end_ = {};  // of all nodes of a request
  std::vector<Replacement> replacements_ = {};
  std::int64_t failures_ = 0;
};

}  // namespace cadre::engine::cluster
