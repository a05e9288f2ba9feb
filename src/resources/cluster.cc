#include "resources/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <tuple>

#include "resources/machine_labels.h"

namespace cadre::resources {
namespace {

// Returns the indices of the bundles, the largest first.
std::vector<std::size_t> largest_first(const std::vector<Resources>& bundles) {
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::size_t i) { return std::pair(bundles[i].gpus, bundles[i].cpus); };
  std::ranges::stable_sort(order, std::greater(), size);
  return order;
}

std::vector<Place> all_of(std::vector<std::optional<Place>>& places) {
  std::vector<Place> all;
  for (std::optional<Place>& place : places) all.push_back(*std::move(place));
  return all;
}

}  // namespace

bool Cluster::ByValue::operator()(const Resources& a, const Resources& b) const {
  const auto key = [](const Resources& r) { return std::tie(r.cpus, r.gpus, r.accelerator_type, r.custom, r.labels); };
  return key(a) < key(b);
}

// ---- Nodes

NodeList node_list(std::vector<Node> nodes) {
  const bool is_one_machine = nodes.size() == 1 && nodes.front().id == 0 && nodes.front().name.empty();
  return is_one_machine ? NodeList() : NodeList{.may_change = true, .nodes = std::move(nodes)};
}

Cluster::Cluster(const NodeList& list) : may_change_(list.may_change) {
  for (const Node& node : list.nodes) add(node);
  for (const NodeId node : list.draining) drain(node);
}

Cluster::Cluster(const std::vector<Node>& nodes) : Cluster(node_list(nodes)) {
  if (!may_change_) add(nodes.front());
}

NodeList Cluster::list() const {
  NodeList list{.may_change = may_change_};
  for (const auto& [id, member] : nodes_) {
    list.nodes.push_back(member.node);
    if (member.drains) list.draining.push_back(id);
  }
  return list;
}

void Cluster::add(const Node& node) {
  const auto [added, is_new] =
      nodes_.try_emplace(node.id, MemberNode{.node = node, .ledger = ResourceLedger(node.resources)});
  if (!is_new) throw std::logic_error(fmt::format("there is a node {} already", node.id));
  for (const auto& [name, amount] : amounts_of(node.resources)) total_[name] += amount;
  const auto [kind, is_first] = kinds_.try_emplace(node.resources);
  if (is_first) kind->second.number = kinds_so_far_++;
  ++kind->second.nodes;
  added->second.kind = kind->second.number;
  add_to_index(node.id, added->second);
}

void Cluster::drain(NodeId id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.drains) return;
  remove_from_index(id, found->second);
  found->second.drains = true;
}

void Cluster::remove(NodeId id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  if (!found->second.drains) remove_from_index(id, found->second);
  for (const auto& [name, amount] : amounts_of(found->second.node.resources)) total_[name] -= amount;
  const auto kind = kinds_.find(found->second.node.resources);
  if (--kind->second.nodes == 0) kinds_.erase(kind);
  nodes_.erase(found);
}

bool Cluster::is_ready(NodeId id) const {
  const auto found = nodes_.find(id);
  return found != nodes_.end() && !found->second.drains;
}

Resources Cluster::total() const {
  if (nodes_.size() == 1) return nodes_.begin()->second.node.resources;
  return with_amounts({.cpus = 0}, total_);
}

// ---- The index

Cluster::Shape Cluster::shape_of(const MemberNode& node) {
  const Amounts free = node.ledger.free();
  std::vector<std::int64_t> gpus = node.ledger.free_gpus();
  // GPUs of one kind can stand for each other.
  if (node.node.resources.accelerator_type.find(',') == std::string::npos) std::ranges::sort(gpus);
  Shape shape{free.at("gpus"), free.at("cpus"), node.kind};
  for (const auto& [name, amount] : free) {
    if (name != "gpus" && name != "cpus") shape.push_back(amount);
  }
  shape.insert(shape.end(), gpus.begin(), gpus.end());
  return shape;
}

void Cluster::add_to_index(NodeId id, MemberNode& node) {
  node.shape = shape_of(node);
  index_[node.shape].insert(id);
  ++kinds_.at(node.node.resources).ready;
}

void Cluster::remove_from_index(NodeId id, const MemberNode& node) {
  const auto alike = index_.find(node.shape);
  alike->second.erase(id);
  if (alike->second.empty()) index_.erase(alike);
  --kinds_.at(node.node.resources).ready;
}

template <class Change>
auto Cluster::change(NodeId id, const Change& change) {
  MemberNode& node = nodes_.at(id);
  if (node.drains) return change(node.ledger);
  const auto alike = index_.find(node.shape);
  auto entry = alike->second.extract(id);
  if (alike->second.empty()) index_.erase(alike);
  auto result = change(node.ledger);
  node.shape = shape_of(node);
  index_[node.shape].insert(std::move(entry));
  return result;
}

bool Cluster::is_as_full(const Shape& a, const Shape& b) { return a[0] == b[0] && a[1] == b[1]; }

// Returns the fullest ready node whose ledger fulfils `fits`.
template <class Fits>
std::optional<NodeId> Cluster::fullest(const Fits& fits) const {
  std::optional<NodeId> found;
  const Shape* shape_of_found = nullptr;
  for (const auto& [shape, alike] : index_) {
    if (found && !is_as_full(shape, *shape_of_found)) break;
    const NodeId id = *alike.begin();
    if ((found && *found < id) || !fits(nodes_.at(id).ledger)) continue;
    found = id;
    shape_of_found = &shape;
  }
  return found;
}

std::optional<NodeId> Cluster::node_for(const Resources& wanted) const {
  return fullest([&](const ResourceLedger& ledger) { return ledger.is_free(wanted); });
}

// ---- One worker

bool Cluster::is_free(const Resources& wanted, const std::optional<Only>& only) const {
  if (!only) return node_for(wanted).has_value();
  return is_ready(only->node) && nodes_.at(only->node).ledger.is_free(wanted, only->gpus);
}

std::optional<Place> Cluster::acquire(const Resources& wanted, const std::optional<Only>& only) {
  if (only && !is_ready(only->node)) return std::nullopt;
  const std::optional<NodeId> node = only ? only->node : node_for(wanted);
  if (!node) return std::nullopt;
  const std::optional<Gpus> of_these = only ? only->gpus : std::nullopt;
  std::optional<Gpus> gpus = change(*node, [&](ResourceLedger& ledger) { return ledger.acquire(wanted, of_these); });
  if (!gpus) return std::nullopt;
  return Place{*node, *std::move(gpus)};
}

void Cluster::occupy(const Resources& held, const Place& place) {
  if (!contains(place.node)) return;
  change(place.node, [&](ResourceLedger& ledger) {
    ledger.occupy(held, place.gpus);
    return true;
  });
}

void Cluster::release(const Resources& held, const Place& place) {
  if (!contains(place.node)) return;
  change(place.node, [&](ResourceLedger& ledger) {
    ledger.release(held, place.gpus);
    return true;
  });
}

// ---- Several workers

std::optional<std::vector<Place>> Cluster::acquire_all(const std::vector<Resources>& bundles,
                                                       PlacementStrategy strategy) {
  switch (strategy) {
    case PlacementStrategy::strict_pack:
      return place_on_one(bundles);
    case PlacementStrategy::strict_spread:
      return place_apart(bundles, true);
    case PlacementStrategy::spread:
      if (auto places = place_apart(bundles, false)) return places;
      break;
    case PlacementStrategy::pack:
      if (auto places = place_on_one(bundles)) return places;
      break;
  }
  return place_on_few(bundles);
}

// Places all on the fullest node that has room for them.
std::optional<std::vector<Place>> Cluster::place_on_one(const std::vector<Resources>& bundles) {
  const std::vector<std::size_t> order = largest_first(bundles);
  const std::optional<NodeId> node = fullest([&](ResourceLedger ledger) {
    return std::ranges::all_of(order, [&](std::size_t i) { return ledger.acquire(bundles[i]).has_value(); });
  });
  if (!node) return std::nullopt;
  std::vector<std::optional<Place>> places(bundles.size());
  for (const std::size_t i : order) places[i] = acquire(bundles[i], Only{*node});
  return all_of(places);
}

// Takes one node after the other, each time the one that has room for most of those that are left.
std::optional<std::vector<Place>> Cluster::place_on_few(const std::vector<Resources>& bundles) {
  std::vector<std::size_t> left = largest_first(bundles);
  std::vector<std::optional<Place>> places(bundles.size());
  while (!left.empty()) {
    std::optional<NodeId> best;
    const Shape* shape_of_best = nullptr;
    std::ptrdiff_t most = 0;
    for (const auto& [shape, alike] : index_) {
      ResourceLedger ledger = nodes_.at(*alike.begin()).ledger;
      const auto room =
          std::ranges::count_if(left, [&](std::size_t i) { return ledger.acquire(bundles[i]).has_value(); });
      const bool is_tie = best && room == most && is_as_full(shape, *shape_of_best) && *alike.begin() < *best;
      if (room <= most && !is_tie) continue;
      most = room;
      best = *alike.begin();
      shape_of_best = &shape;
    }
    if (!best) {
      give_back(bundles, places);
      return std::nullopt;
    }
    std::erase_if(left, [&](std::size_t i) {
      places[i] = acquire(bundles[i], Only{*best});
      return places[i].has_value();
    });
  }
  return all_of(places);
}

// Places each where the fewest of the others are; `strict`: where none is.
std::optional<std::vector<Place>> Cluster::place_apart(const std::vector<Resources>& bundles, bool strict) {
  std::vector<std::optional<Place>> places(bundles.size());
  std::map<NodeId, std::int64_t> uses;  // bundles by node
  for (const std::size_t i : largest_first(bundles)) {
    const std::optional<NodeId> node = emptiest_node(bundles[i], uses, strict);
    if (!node) {
      give_back(bundles, places);
      return std::nullopt;
    }
    places[i] = acquire(bundles[i], Only{*node});
    ++uses[*node];
  }
  return all_of(places);
}

// Returns the node with room that is used least, among those the one with the most free.
std::optional<NodeId> Cluster::emptiest_node(const Resources& wanted, const std::map<NodeId, std::int64_t>& uses,
                                             bool strict) const {
  const auto is_unused = [&](NodeId id) { return !uses.contains(id); };
  std::optional<NodeId> emptiest;
  const Shape* shape_of_emptiest = nullptr;
  for (const auto& [shape, alike] : std::views::reverse(index_)) {
    if (emptiest && !is_as_full(shape, *shape_of_emptiest)) break;
    if (!nodes_.at(*alike.begin()).ledger.is_free(wanted)) continue;
    const auto unused = std::ranges::find_if(alike, is_unused);
    if (unused == alike.end() || (emptiest && *emptiest < *unused)) continue;
    emptiest = *unused;
    shape_of_emptiest = &shape;
  }
  if (emptiest || strict) return emptiest;
  std::optional<NodeId> least;
  for (const auto& [id, count] : uses) {
    if (is_free(wanted, Only{id}) && (!least || count < uses.at(*least))) least = id;
  }
  return least;
}

void Cluster::give_back(const std::vector<Resources>& bundles, const std::vector<std::optional<Place>>& places) {
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    if (places[i]) release(bundles[i], *places[i]);
  }
}

// ---- Texts

std::string Cluster::shortage(const Resources& wanted) const {
  const char* const there = nodes_.size() > 1 ? "the largest node has" : "there are";
  std::optional<std::string> nearest;
  std::tuple<std::ptrdiff_t, double> nearest_by;  // the number of amounts that are missing, what is missing of them
  for (const auto& [machine, kind] : kinds_) {
    if (kind.ready == 0) continue;
    const ResourceLedger ledger(machine);
    std::string missing = ledger.shortage(wanted, there);
    if (missing.empty()) return {};
    std::ptrdiff_t faults = mismatch(machine, wanted).empty() ? 0 : 1;
    double part = 0;
    Amounts totals = amounts_of(machine);
    for (const auto& [name, amount] : amounts_of(wanted)) {
      if (amount <= totals[name]) continue;
      ++faults;
      part += 1 - static_cast<double>(totals[name]) / static_cast<double>(amount);
    }
    const std::tuple by(faults, part);
    if (nearest && nearest_by <= by) continue;
    nearest = std::move(missing);
    nearest_by = by;
  }
  return nearest ? *nearest : ResourceLedger({.cpus = 0}).shortage(wanted, there);
}

std::string Cluster::usage() const {
  Amounts used{{"cpus", 0}, {"gpus", 0}};
  Amounts total{{"cpus", 0}, {"gpus", 0}};
  for (const auto& [id, node] : nodes_) {
    for (const auto& [name, amount] : node.ledger.used()) used[name] += amount;
    for (const auto& [name, amount] : node.ledger.total()) total[name] += amount;
  }
  return usage_text(used, total);
}

}  // namespace cadre::resources
