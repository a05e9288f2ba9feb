// An engine without processes, in virtual time: a test can simulate a week of ten thousand workers. A Behaviour
// replaces each worker; all events are a function of the behaviours and the calls, so tests are reproducible.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.h"

namespace cadre::engine::simulated {

// A worker's next step, after some time of computing.
struct Step {
  struct Return {
    Value value = {};
  };
  struct Throw {
    std::string message;
  };
  struct Die {
    Exit exit;
  };
  struct Hang {};     // until it is killed
  struct Decline {};  // refuses the assignment to take over
  using What = std::variant<channel::Report, Return, Throw, Die, Hang, Decline>;

  std::chrono::nanoseconds after = {};
  What what;
};

class Behaviour {
 public:
  virtual ~Behaviour() = default;
  // Returns the next step; called at the start and after the answer to each report (never after a stop). For a `save`
  // answer it must return the same report with a checkpoint.
  virtual Step next(const channel::Answer& answer) = 0;
  // Returns true for a function that ignores the stop and then hangs.
  virtual bool ignores_stop() { return false; }
};

class SimulatedEngine final : public Engine {
 public:
  using MakeBehaviour = std::function<std::unique_ptr<Behaviour>(const WorkerSpec&)>;

  SimulatedEngine(Resources resources, MakeBehaviour make_behaviour)
      : SimulatedEngine({{.resources = std::move(resources)}}, std::move(make_behaviour)) {}
  SimulatedEngine(const std::vector<Node>& nodes, MakeBehaviour make_behaviour)
      : make_behaviour_(std::move(make_behaviour)) {
    for (const Node& node : nodes) nodes_.emplace(node.id, node);
  }

  std::vector<Node> nodes() const override;
  Resources resources() const override;
  // Let a node join, drain or leave after some time. Workers of a node that leaves are lost with it.
  void join(const Node& node, std::chrono::nanoseconds after) { plan(after, NodeJoined{node}); }
  void drain(NodeId node, std::chrono::nanoseconds after) { plan(after, NodeDraining{.node = node}); }
  void leave(NodeId node, std::chrono::nanoseconds after) { plan(after, NodeLeft{.node = node}); }
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  // Simulated workers send neither StoreRequest nor Request.
  void reply(WorkerId, const channel::StoreReply&) override {}
  void reply(WorkerId, const channel::Reply&) override {}
  void kill(WorkerId worker) override;
  // Returns all events of the next moment that has any and advances the clock to it. Throws std::logic_error if there
  // is no timeout and no event will ever come: the controller waits without a reason.
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;
  void wake() noexcept override { woken_ = true; }
  Clock::time_point now() const override { return Clock::time_point(now_); }
  double wall_seconds() const override;

  std::size_t workers() const { return workers_.size(); }  // number of workers that have not ended

 private:
  struct Happening {
    std::chrono::nanoseconds at;
    std::uint64_t order;             // orders events of the same moment
    std::optional<WorkerId> worker;  // empty: it happens to a node
    std::uint64_t plan;              // the worker's plan; an outdated event, as after a kill, is skipped
    Event event;
    bool operator>(const Happening& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  struct Worker {
    std::unique_ptr<Behaviour> behaviour;
    std::uint64_t plan = 0;
    NodeId node = 0;
  };

  void plan_next(WorkerId id, Worker& worker, const channel::Answer& answer);
  void plan(WorkerId id, const Worker& worker, std::chrono::nanoseconds after, Event event);
  void plan(std::chrono::nanoseconds after, Event event);
  // Adds an event of a node, after those of workers that are lost with it.
  void happen(const Event& event, std::vector<Event>& events);

  MakeBehaviour make_behaviour_;
  std::map<NodeId, Node> nodes_;
  std::map<WorkerId, Worker> workers_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  std::chrono::nanoseconds now_ = {};
  std::uint64_t order_ = 0;
  std::atomic<bool> woken_ = false;
};

}  // namespace cadre::engine::simulated
