// An engine without processes, in virtual time: a week of ten thousand workers fits into a test. What a worker does is
// a Behaviour; everything that happens is a function of the behaviours and the calls, so a test can be repeated
// exactly.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <variant>

#include "engine/engine.h"

namespace cadre::engine::simulated {

// What a worker does next, after computing for a while.
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
  struct Decline {};  // of what is to be taken over
  using What = std::variant<channel::Report, Return, Throw, Die, Hang, Decline>;

  std::chrono::nanoseconds after = {};
  What what;
};

class Behaviour {
 public:
  virtual ~Behaviour() = default;
  // Asked at the start, and after each report with its answer (never after a stop). Asked to save, it is to say the
  // same report with a checkpoint.
  virtual Step next(const channel::Answer& answer) = 0;
  // A function that swallows the stop, and then hangs.
  virtual bool ignores_stop() { return false; }
};

class SimulatedEngine final : public Engine {
 public:
  using MakeBehaviour = std::function<std::unique_ptr<Behaviour>(const WorkerSpec&)>;

  SimulatedEngine(Resources resources, MakeBehaviour make_behaviour)
      : resources_(std::move(resources)), make_behaviour_(std::move(make_behaviour)) {}

  Resources resources() const override { return resources_; }
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  // Nobody here asks the store.
  void reply(WorkerId, const channel::StoreReply&) override {}
  void reply(WorkerId, const channel::Reply&) override {}
  void kill(WorkerId worker) override;
  // Everything that happens at the next moment at which anything does; the clock is then there. Throws std::logic_error
  // when nothing will ever happen and there is no timeout: whoever waits has forgotten somebody.
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;
  void wake() noexcept override { woken_ = true; }
  Clock::time_point now() const override { return Clock::time_point(now_); }
  double wall_seconds() const override;

  std::size_t workers() const { return workers_.size(); }  // that have not ended

 private:
  struct Happening {
    std::chrono::nanoseconds at;
    std::uint64_t order;  // of those at the same moment
    WorkerId worker;
    std::uint64_t plan;  // of the worker; an older one was overtaken by a kill
    Event event;
    bool operator>(const Happening& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  struct Worker {
    std::unique_ptr<Behaviour> behaviour;
    std::uint64_t plan = 0;
  };

  void plan_next(WorkerId id, Worker& worker, const channel::Answer& answer);
  void plan(WorkerId id, const Worker& worker, std::chrono::nanoseconds after, Event event);

  Resources resources_;
  MakeBehaviour make_behaviour_;
  std::map<WorkerId, Worker> workers_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  std::chrono::nanoseconds now_ = {};
  std::uint64_t order_ = 0;
  std::atomic<bool> woken_ = false;
};

}  // namespace cadre::engine::simulated
