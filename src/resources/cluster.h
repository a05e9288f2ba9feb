// The nodes of an engine, and what is in use on each of them: where a worker runs is decided here. Pure: the same calls
// give the same places.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cadre/resources.h"
#include "resources/node.h"
#include "resources/resource_ledger.h"

namespace cadre::resources {

// The node and the GPUs of one worker.
struct Place {
  NodeId node = 0;
  Gpus gpus = {};
  bool operator==(const Place&) const = default;
};

// Restricts a place to one node and, if there are any, to some of its GPUs.
struct Only {
  NodeId node = 0;
  std::optional<Gpus> gpus = {};
};

// The nodes of an engine where nodes join and leave, as they are stored. Not set, and not stored, on one machine.
struct NodeList {
  bool may_change = false;
  std::vector<Node> nodes = {};
  std::vector<NodeId> draining = {};
  bool is_set() const { return may_change; }
};
// Returns the list of an engine's nodes; one node 0 without a name is one machine for ever.
NodeList node_list(std::vector<Node> nodes);

class Cluster {
 public:
  Cluster() = default;
  // Makes a cluster of one ready node, 0, which stays.
  explicit Cluster(const Resources& machine) { add({.resources = machine}); }
  explicit Cluster(const NodeList& list);
  // Makes one of an engine's nodes.
  explicit Cluster(const std::vector<Node>& nodes);

  // Adds a ready node. Throws std::logic_error if there is one of this number, std::invalid_argument for amounts that
  // no machine has.
  void add(const Node& node);
  // Do nothing for a node that is not there.
  void drain(NodeId node);
  void remove(NodeId node);

  bool contains(NodeId node) const { return nodes_.contains(node); }
  bool is_ready(NodeId node) const;
  std::size_t size() const { return nodes_.size(); }
  bool may_change() const { return may_change_; }
  const Node& node(NodeId id) const { return nodes_.at(id).node; }
  NodeList list() const;
  // Returns the resources of all nodes; of one node with its labels and kinds of GPUs.
  Resources total() const;

  // Acquires the amounts on the ready node that is fullest: which has the fewest free GPUs, then the fewest free CPUs,
  // then the lowest number. Empty if none of them has room. `only`: on this node, if it is ready.
  std::optional<Place> acquire(const Resources& wanted, const std::optional<Only>& only = {});
  // Returns true if acquire() would succeed.
  bool is_free(const Resources& wanted, const std::optional<Only>& only = {}) const;
  // Acquires all bundles or none, and returns their places in the order of the bundles.
  //   pack           on as few nodes as a greedy choice needs: first one for all, else one after the other that has
  //                  room for most of the rest
  //   spread         each on the node that has the fewest of them, then the most free
  //   strict_pack    on one node
  //   strict_spread  each on another node
  // The largest bundles are placed first; for several amounts at a time this may miss a placement that exists.
  std::optional<std::vector<Place>> acquire_all(const std::vector<Resources>& bundles, PlacementStrategy strategy);
  // Counts what a worker has that is there already, also on a node that drains.
  void occupy(const Resources& held, const Place& place);
  // Does nothing if the node has left.
  void release(const Resources& held, const Place& place);

  // Returns all that no ready node has even when all is free, said against the one that comes nearest, as "8 cpus
  // (there are 4)" of one node, "8 cpus (the largest node has 4)" of several; empty if a node has all.
  std::string shortage(const Resources& wanted) const;
  // Returns "1.5/2 CPUs, 0/0 GPUs", followed by custom resources, of all nodes.
  std::string usage() const;

  // Compares the nodes and what is in use.
  bool operator==(const Cluster& other) const { return nodes_ == other.nodes_; }

 private:
  // Free GPUs, free CPUs, and all else that decides what a node has room for: nodes with the same are alike.
  using Shape = std::vector<std::int64_t>;
  struct MemberNode {
    Node node = {};
    bool drains = false;
    std::int64_t kind = 0;  // nodes with the same resources have the same
    ResourceLedger ledger;
    Shape shape = {};  // its place in the index
    bool operator==(const MemberNode& other) const {
      return node == other.node && drains == other.drains && ledger == other.ledger;
    }
  };
  struct Kind {
    std::int64_t number = 0;
    std::int64_t nodes = 0;
    std::int64_t ready = 0;  // of them
  };
  struct ByValue {
    bool operator()(const Resources& a, const Resources& b) const;
  };

  static Shape shape_of(const MemberNode& node);
  void add_to_index(NodeId id, MemberNode& node);
  void remove_from_index(NodeId id, const MemberNode& node);
  // Calls `change` with the ledger of a node and keeps the index right.
  template <class Change>
  auto change(NodeId id, const Change& change);
  static bool is_as_full(const Shape& a, const Shape& b);
  template <class Fits>
  std::optional<NodeId> fullest(const Fits& fits) const;
  std::optional<NodeId> node_for(const Resources& wanted) const;
  std::optional<std::vector<Place>> place_on_one(const std::vector<Resources>& bundles);
  std::optional<std::vector<Place>> place_on_few(const std::vector<Resources>& bundles);
  std::optional<std::vector<Place>> place_apart(const std::vector<Resources>& bundles, bool strict);
  std::optional<NodeId> emptiest_node(const Resources& wanted, const std::map<NodeId, std::int64_t>& uses,
                                      bool strict) const;
  void give_back(const std::vector<Resources>& bundles, const std::vector<std::optional<Place>>& places);

  bool may_change_ = false;
  std::map<NodeId, MemberNode> nodes_;
  Amounts total_;                            // of all nodes
  std::map<Shape, std::set<NodeId>> index_;  // of ready nodes, the fullest first
  std::map<Resources, Kind, ByValue> kinds_;
  std::int64_t kinds_so_far_ = 0;
};

}  // namespace cadre::resources
