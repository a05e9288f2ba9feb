#include "engine/simulated/simulated_engine.h"

#include <csignal>
#include <stdexcept>

#include "base/overload.h"

namespace cadre::engine::simulated {
namespace {

const Exit kClean{Exit::Kind::code, 0, {}};
const Exit kNodeLost{Exit::Kind::node_lost, 0, {}};

}  // namespace

std::vector<Node> SimulatedEngine::nodes() const {
  std::vector<Node> nodes;
  for (const auto& [id, node] : nodes_) nodes.push_back(node);
  return nodes;
}

Resources SimulatedEngine::resources() const {
  if (nodes_.size() == 1) return nodes_.begin()->second.resources;
  Resources sum{.cpus = 0};
  for (const auto& [id, node] : nodes_) {
    sum.cpus += node.resources.cpus;
    sum.gpus += node.resources.gpus;
    for (const auto& [name, amount] : node.resources.custom) sum.custom[name] += amount;
  }
  return sum;
}

void SimulatedEngine::start(WorkerId id, const WorkerSpec& spec) {
  Worker& worker = workers_[id];
  worker.behaviour = make_behaviour_(spec);
  worker.node = spec.node;
  if (!nodes_.contains(spec.node)) return plan(id, worker, {}, Exited{id, kNodeLost});
  plan_next(id, worker, {});
}

void SimulatedEngine::answer(WorkerId id, const channel::Answer& answer) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  if (answer.verdict != channel::Verdict::stop) return plan_next(id, found->second, answer);
  ++found->second.plan;
  if (found->second.behaviour->ignores_stop()) return;
  plan(id, found->second, {}, Received{id, channel::Finished{}});
  plan(id, found->second, {}, Exited{id, kClean});
}

void SimulatedEngine::kill(WorkerId id) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  ++found->second.plan;
  plan(id, found->second, {}, Exited{id, {Exit::Kind::signal, SIGKILL, {}}});
}

std::vector<Event> SimulatedEngine::wait(std::optional<std::chrono::nanoseconds> timeout) {
  if (woken_.exchange(false)) return {};
  const std::chrono::nanoseconds end = timeout ? now_ + *timeout : std::chrono::nanoseconds::max();
  std::vector<Event> events;
  while (!happenings_.empty() && happenings_.top().at <= end && (events.empty() || happenings_.top().at == now_)) {
    const Happening happening = happenings_.top();
    happenings_.pop();
    if (!happening.worker) {
      now_ = happening.at;
      happen(happening.event, events);
      continue;
    }
    const auto worker = workers_.find(*happening.worker);
    if (worker == workers_.end() || worker->second.plan != happening.plan) continue;
    now_ = happening.at;
    if (std::holds_alternative<Exited>(happening.event)) workers_.erase(worker);
    events.push_back(happening.event);
  }
  if (!events.empty()) return events;
  if (!timeout) throw std::logic_error("simulated engine: waiting for what will never happen");
  now_ = end;
  return events;
}

double SimulatedEngine::wall_seconds() const {
  constexpr double some_day = 1.8e9;
  return some_day + std::chrono::duration<double>(now_).count();
}

void SimulatedEngine::plan_next(WorkerId id, Worker& worker, const channel::Answer& answer) {
  Step step = worker.behaviour->next(answer);
  ++worker.plan;
  std::visit(
      base::Overload{[&](channel::Report& report) { plan(id, worker, step.after, Received{id, std::move(report)}); },
                     [&](Step::Return& returned) {
                       plan(id, worker, step.after, Received{id, channel::Finished{std::move(returned.value)}});
                       plan(id, worker, step.after, Exited{id, kClean});
                     },
                     [&](Step::Throw& thrown) {
                       plan(id, worker, step.after, Received{id, channel::Failed{std::move(thrown.message)}});
                       plan(id, worker, step.after, Exited{id, kClean});
                     },
                     [&](Step::Decline&) {
                       plan(id, worker, step.after, Received{id, channel::Declined{}});
                       plan(id, worker, step.after, Exited{id, kClean});
                     },
                     [&](Step::Die& death) { plan(id, worker, step.after, Exited{id, std::move(death.exit)}); },
                     [](Step::Hang&) {}},
      step.what);
}

void SimulatedEngine::plan(std::chrono::nanoseconds after, Event event) {
  happenings_.push({now_ + after, order_++, std::nullopt, 0, std::move(event)});
}

void SimulatedEngine::happen(const Event& event, std::vector<Event>& events) {
  if (const auto* joined = std::get_if<NodeJoined>(&event)) nodes_.emplace(joined->node.id, joined->node);
  if (const auto* left = std::get_if<NodeLeft>(&event)) {
    nodes_.erase(left->node);
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const bool is_lost = worker->second.node == left->node;
      if (is_lost) events.emplace_back(Exited{worker->first, kNodeLost});
      worker = is_lost ? workers_.erase(worker) : std::next(worker);
    }
  }
  events.push_back(event);
}

void SimulatedEngine::plan(WorkerId id, const Worker& worker, std::chrono::nanoseconds after, Event event) {
  happenings_.push({now_ + after, order_++, id, worker.plan, std::move(event)});
}

}  // namespace cadre::engine::simulated
