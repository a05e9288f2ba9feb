#include "cli/node_history.h"

#include <algorithm>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "control/event_rows.h"
#include "resources/cluster.h"

namespace cadre::cli {
namespace {

template <class Event>
bool is_a(const store::EventRow& row) {
  return row.kind == control::event_kind<Event>();
}

std::int64_t integer_in(const Dict& data, const char* name, const std::string& source) {
  const Value* const value = find_entry(data, name);
  if (value == nullptr) throw StorageError(source + " has no " + name);
  return from_stored<std::int64_t>(*value, source);
}

}  // namespace

std::string NodeHistory::state() const {
  if (left) return is_lost ? "lost" : "left";
  return draining ? "draining" : "ready";
}

void NodeLog::on(const store::EventRow& row) {
  if (row.kind == "controller_started") end_session("its controller has ended");  // when it was heard of last
  time_ = row.time;
  const std::string source = "event " + std::to_string(row.sequence) + " of the store";
  const auto data = [&] { return base::parse_json(row.data, source); };
  if (row.kind == "controller_started") {
    ++sessions_;
    const Value started = data();
    resources::NodeList list;
    if (const Value* const nodes = find_entry(started.dict(), "nodes"))
      list = from_stored<resources::NodeList>(*nodes, source);
    for (engine::Node& node : list.nodes) join(std::move(node), row.time);
    for (const engine::NodeId node : list.draining) {
      if (NodeHistory* const history = find(node)) history->draining = row.time;
    }
  } else if (is_a<engine::NodeJoined>(row)) {
    join(from_stored<engine::NodeJoined>(data(), source).node, row.time);
  } else if (is_a<engine::NodeDraining>(row)) {
    const auto event = from_stored<engine::NodeDraining>(data(), source);
    if (NodeHistory* const history = find(event.node)) {
      history->draining = row.time;
      history->reason = event.reason;
    }
  } else if (is_a<engine::NodeLeft>(row)) {
    const auto event = from_stored<engine::NodeLeft>(data(), source);
    if (NodeHistory* const history = find(event.node)) {
      history->left = row.time;
      history->is_lost = !history->draining;
      if (history->is_lost) history->reason = event.reason;
    }
    leave(event.node);
    present_.erase(event.node);
    for (auto& [worker, nodes] : workers_) std::erase(nodes, event.node);
    std::erase_if(validators_, [&](const auto& entry) { return entry.second.node == event.node; });
  } else if (row.kind == "worker_ended") {
    const auto worker =
        workers_.extract({is_training_run_ ? integer_in(data().dict(), "rank", source) : row.trial, row.attempt});
    if (!worker.empty()) std::ranges::for_each(worker.mapped(), [this](engine::NodeId node) { ends_on(node); });
  } else if (row.kind == "validator_ended") {
    const auto validator = validators_.extract({integer_in(data().dict(), "checkpoint", source), row.attempt});
    if (!validator.empty()) ends_on(validator.mapped().node);
  }
}

void NodeLog::begins_on(engine::NodeId node) {
  Busy& busy = busy_[node];
  if (busy.workers++ == 0) busy.since = time_;
}

void NodeLog::ends_on(engine::NodeId node) {
  const auto busy = busy_.find(node);
  if (busy != busy_.end() && --busy->second.workers == 0) leave(node);
}

// Nothing runs on a node any more.
void NodeLog::leave(engine::NodeId node) {
  const auto busy = busy_.extract(node);
  NodeHistory* const history = find(node);
  if (!busy.empty() && history != nullptr) history->busy += time_ - busy.mapped().since;
}

void NodeLog::on(const store::DecisionRow& row) {
  const bool is_launch = row.kind == "launch";
  if (present_.empty() || (!is_launch && row.kind != "validate")) return;
  const std::string source = "decision " + std::to_string(row.id) + " of the store";
  const Value data = base::parse_json(row.data, source);
  is_launch ? launch(data.dict(), row.trial, source) : validate(data.dict(), source);
}

void NodeLog::launch(const Dict& data, std::int64_t trial, const std::string& source) {
  const std::int64_t attempt = integer_in(data, "attempt", source);
  if (const Value* const node = find_entry(data, "node"))
    start({trial, attempt}, from_stored<engine::NodeId>(*node, source));
  if (const Value* const further = find_entry(data, "further_nodes")) {
    for (const auto node : from_stored<std::vector<engine::NodeId>>(*further, source)) start({trial, attempt}, node);
  }
  if (const Value* const nodes = find_entry(data, "nodes")) {
    std::int64_t rank = 0;
    for (const auto node : from_stored<std::vector<engine::NodeId>>(*nodes, source)) start({rank++, attempt}, node);
  }
}

void NodeLog::validate(const Dict& data, const std::string& source) {
  const Value* const node = find_entry(data, "node");
  if (node == nullptr) return;  // an earlier version did not record it
  const auto id = from_stored<engine::NodeId>(*node, source);
  const Value* const checkpoint = find_entry(data, "checkpoint");
  NodeHistory* const history = find(id);
  if (history == nullptr || checkpoint == nullptr) return;
  ++history->workers;
  begins_on(id);
  validators_[{integer_in(data, "id", source), integer_in(data, "try", source)}] = {
      from_stored<std::string>(*checkpoint, source), id};
}

void NodeLog::end_session(const std::string& reason) {
  for (const auto& [id, index] : present_) leave(id);
  busy_.clear();
  for (const auto& [id, index] : present_) {
    NodeHistory& history = nodes_[index];
    history.left = time_;
    history.left_with_run = !history.draining;
    if (history.left_with_run) history.reason = reason;
  }
  present_.clear();
  workers_.clear();
  validators_.clear();
}

std::vector<NodeHistory> NodeLog::nodes() const {
  std::vector<NodeHistory> nodes = nodes_;
  for (const auto& [worker, places] : workers_) {
    for (const engine::NodeId node : places) nodes[present_.at(node)].running.push_back(worker.first);
  }
  for (const auto& [worker, validator] : validators_)
    nodes[present_.at(validator.node)].validated.push_back(validator.checkpoint);
  for (const auto& [node, busy] : busy_) nodes[present_.at(node)].busy += time_ - busy.since;
  return nodes;
}

void NodeLog::join(engine::Node node, double time) {
  const engine::NodeId id = node.id;
  present_[id] = nodes_.size();
  nodes_.push_back({.session = sessions_, .node = std::move(node), .joined = time});
}

NodeHistory* NodeLog::find(engine::NodeId node) {
  const auto found = present_.find(node);
  return found == present_.end() ? nullptr : &nodes_[found->second];
}

void NodeLog::start(Worker worker, engine::NodeId node) {
  NodeHistory* const history = find(node);
  if (history == nullptr) return;
  ++history->workers;
  begins_on(node);
  workers_[worker].push_back(node);
}

}  // namespace cadre::cli
