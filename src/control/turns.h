// The turns of a controller: events from the engine go into a functional core, and its actions into the store, the
// files and the engine.
//
// A turn waits for messages, passes all that have arrived to the core, commits the events and decisions in one
// transaction, and only then answers workers and acts. So everything that a worker was told is in the store. Result
// files are derived from the store: they are written after the answers, many results at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/seconds.h"
#include "control/shell.h"
#include "control/timers.h"

namespace cadre::control {

// Calls `act` at the end of a scope, also when it is left by an exception.
template <class Act>
class AtTheEnd {
 public:
  explicit AtTheEnd(Act act) : act_(std::move(act)) {}
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { act_(); }

 private:
  Act act_;
};

// Core: tune::Experiment or train::Run. It names its types Event, Actions and Timer; the events that the shell makes
// itself: TimerFired, Interrupted, CheckpointsSynced and, if it counts time, TimeLost; and the actions RecordDecision,
// MarkSynced, CommitCheckpoint, DeleteCheckpoint and StartTimer. It has handle(), finished(), awaits() and demand().
template <class Core>
class Turns : protected Shell {
 public:
  // Runs until the core has finished, or until it is interrupted and no worker is left. Waits while the disk is full.
  // Throws EngineError if the engine is lost and StorageError if the store or a file cannot be written; what was begun
  // can then be continued from the store.
  void run() {
    const AtTheEnd at_the_end([this] { session_ends(); });
    resumably([this] { take_turns(); });
  }

 protected:
  using Event = typename Core::Event;
  using Actions = typename Core::Actions;
  using Action = typename Actions::value_type;
  using Timer = typename Core::Timer;

  // An event and the actions that followed from it.
  struct Step {
    Event event;
    double time = 0;        // seconds since 1970
    bool repeated = false;  // true for a report that adds no result
    Actions actions = {};
  };

  Turns(Core& core, Setting setting, store::ExperimentStore& store, engine::Engine& engine)
      : Shell(std::move(setting), store, engine), core_(core) {}
  ~Turns() = default;

  // ---- Implemented by the controllers, in the order of a session

  // Begins the session; returns its first events.
  virtual std::vector<Event> begin() = 0;
  // Converts an event of the engine to events of the core. Not called when a worker is lost: that ends the session.
  virtual void translate(engine::Event event, std::vector<Event>& events) = 0;
  // Adds events of other sources than the engine.
  virtual void add_other_events(std::vector<Event>&) {}
  // Adds events of deadlines that are no timers of the core, and these deadlines. Neither is called while the end of a
  // worker is held back, nor are timers handled then.
  virtual void add_deadline_events(std::vector<Event>&) {}
  virtual void add_event_deadlines(Earliest&) const {}
  virtual void turn_begins() {}
  // Called before and after the core handles an event. receive() may change it, and returns true for a report that adds
  // no result.
  virtual bool receive(Event& event) = 0;
  virtual void handled(const Step&) {}
  virtual void all_handled() {}
  // Parts of the transaction. They must be able to start over after an error.
  virtual void write_facts() {}
  virtual std::int64_t record(const Step& step) = 0;  // returns the event's sequence number
  virtual void prepare(const Action& action) = 0;
  // Returns true if a loss of power must not undo the action once a worker has been answered.
  virtual bool must_be_synced(const Action& action) const = 0;
  // Answers workers, if the action is an answer.
  virtual void answer(const Action& action) = 0;
  // Adds a step to the result files. Waits while the disk is full, as write_urgent_files() does.
  virtual void log(const Step& step) = 0;
  // Writes the result files that must not be delayed.
  virtual void write_urgent_files() {}
  // Carries out an action outside the store.
  virtual void perform(const Action& action) = 0;
  virtual void turn_ends(const std::vector<Step>&) {}
  virtual void write_files() = 0;
  // Called after every turn, and then about as often as add_deadlines() asks for.
  virtual void tick(TimePoint) {}
  virtual void add_deadlines(Earliest&) const {}
  // Called after the last turn, before the store is complete; is_complete(): nothing can be continued any more.
  virtual void end_turns() {}
  virtual bool is_complete() const = 0;
  virtual void end() {}
  // Called last, also when an error ends the session.
  virtual void session_ends() {}
  // Returns the checkpoints, by directory, that must stay on the local disk when all are published.
  virtual std::set<std::string> checkpoints_to_keep() const = 0;

  // ---- Called by the controllers

  // Marks the published state, if there is one, as one that this store does not continue.
  void publish_anew() { publishes_anew_ = true; }
  // Adds an event to the next turn.
  void add_event(Event event) { added_.push_back(std::move(event)); }
  void write_files_now() {
    const TimePoint begin = engine_.now();
    patiently([this] { write_files(); });
    files_delay_ =
        std::clamp<std::chrono::nanoseconds>(kWritesPart * (engine_.now() - begin), kFilesDelay, kMostFilesDelay);
    files_due_.reset();
  }

 private:
  // Results are in the store when report() returns. Their lines in the result files may come later.
  // Files that are many or slow are written less often, so that writing them takes a twentieth of the time at most.
  static constexpr auto kFilesDelay = std::chrono::milliseconds(100);
  static constexpr auto kMostFilesDelay = std::chrono::seconds(1);
  static constexpr int kWritesPart = 20;
  static constexpr std::size_t kUsualActions = 4;                        // that follow from one event
  static constexpr auto kDemandPeriod = std::chrono::milliseconds(100);  // the core may look at many trials for it

  void take_turns();
  std::vector<Event> next_events();
  std::vector<Event> due_timers();
  void add_sealed(std::vector<Event>& events);
  void take_turn(std::vector<Event> events);
  void tell_demand(TimePoint now);
  void write(const std::vector<Step>& turn);
  void prepare_always(const Action& action, std::int64_t cause);
  void perform_always(const Action& action);
  std::optional<std::chrono::nanoseconds> time_to_wait() const;

  Core& core_;
  Timers<Timer> timers_;
  std::vector<Event> added_ = {};
  std::optional<TimePoint> files_due_ = {};   // when buffered results must be written
  std::optional<TimePoint> demand_due_ = {};  // when the engine must be told what waits for nodes
  TimePoint demand_told_ = {};
  std::chrono::nanoseconds files_delay_ = kFilesDelay;
  bool publishes_anew_ = false;
};

template <class Core>
void Turns<Core>::take_turns() {
  prepare_work_place();
  take_turn(begin());
  publishing_.begin(publishes_anew_);  // what has ended by now cannot change any more
  while (!core_.finished()) {
    take_turn(next_events());
    take_turn(due_timers());
    const TimePoint now = engine_.now();
    if (const auto due = store_.sync_due(); due && now >= *due) sync();
    if (files_due_ && now >= *files_due_) write_files_now();
    tell_demand(now);
    tick(now);
    warn_of_errors();
    publishing_.tick([this] { return checkpoints_to_keep(); });
  }
  file_worker_.finish_sealing();
  std::vector<Event> last;
  add_sealed(last);
  take_turn(std::move(last));
  write_files_now();
  end_turns();
  if (is_complete()) patiently([this] { store_.finish(); });
  sync();
  end();
  finish_publishing(checkpoints_to_keep());
}

template <class Core>
auto Turns<Core>::next_events() -> std::vector<Event> {
  std::vector<Event> events = std::exchange(added_, {});
  std::vector<engine::Event> arrived = clock_.wait(events.empty() ? time_to_wait() : std::chrono::nanoseconds(0));
  if constexpr (requires { typename Core::TimeLost; }) {
    if (const double seconds = clock_.take_lost_seconds(); seconds != 0)
      events.emplace_back(typename Core::TimeLost{seconds});
  }
  // First: failures around an interrupt do not count.
  if (takes_interrupt()) events.emplace_back(typename Core::Interrupted());
  for (engine::Event& event : signalled_ends_.pass(std::move(arrived), told_of_interrupt_, engine_.now())) {
    const auto* exited = std::get_if<engine::Exited>(&event);
    if (exited != nullptr && exited->exit.kind == engine::Exit::Kind::lost) {
      // The worker has not failed, and no failure is recorded: a restore continues from the store.
      take_turn(std::move(events));
      throw EngineError("a worker " + engine::to_string(exited->exit));
    }
    translate(std::move(event), events);
  }
  add_sealed(events);
  add_other_events(events);
  return events;
}

// Called after the events that had arrived were handled: a report that came in time has restarted its timer.
template <class Core>
auto Turns<Core>::due_timers() -> std::vector<Event> {
  std::vector<Event> events;
  if (signalled_ends_.due()) return events;
  add_deadline_events(events);
  for (const Timer& timer : timers_.take_due(clock_.last_reading())) {
    if (core_.awaits(timer)) events.emplace_back(typename Core::TimerFired{timer});
  }
  return events;
}

template <class Core>
void Turns<Core>::add_sealed(std::vector<Event>& events) {
  if (auto checkpoints = take_sealed(); !checkpoints.empty())
    events.emplace_back(typename Core::CheckpointsSynced{std::move(checkpoints)});
}

template <class Core>
void Turns<Core>::take_turn(std::vector<Event> events) {
  if (events.empty()) return;
  turn_begins();
  std::vector<Step> turn;
  for (Event& event : events) {
    const bool repeated = receive(event);
    Step& step = turn.emplace_back(Step{std::move(event), engine_.wall_seconds(), repeated});
    step.actions.reserve(kUsualActions);
    core_.handle(step.event, step.actions);
    handled(step);
  }
  all_handled();
  patiently([&] { write(turn); });
  sealed_.clear();
  const auto actions = turn | std::views::transform(&Step::actions) | std::views::join;
  if (std::ranges::any_of(actions, [this](const Action& action) { return must_be_synced(action); })) sync();
  for (const Action& action : actions) answer(action);  // workers go on meanwhile
  for (const Step& step : turn) log(step);
  write_urgent_files();
  if (!files_due_) files_due_ = engine_.now() + files_delay_;
  for (const Action& action : actions) {
    perform_always(action);
    perform(action);
  }
  if (!demand_due_ && engine_.follows_demand()) demand_due_ = std::max(engine_.now(), demand_told_ + kDemandPeriod);
  turn_ends(turn);
}

template <class Core>
void Turns<Core>::tell_demand(TimePoint now) {
  if (!demand_due_ || now < *demand_due_) return;
  engine_.set_demand(core_.demand());
  demand_told_ = now;
  demand_due_.reset();
}

template <class Core>
void Turns<Core>::write(const std::vector<Step>& turn) {
  try {
    write_facts();
    for (const Step& step : turn) {
      last_event_ = record(step);
      for (const Action& action : step.actions) {
        prepare_always(action, last_event_);
        prepare(action);
      }
    }
    store_.commit();
  } catch (...) {
    store_.roll_back();  // the failure may have been a directory that could not be renamed
    throw;
  }
}

template <class Core>
void Turns<Core>::prepare_always(const Action& action, std::int64_t cause) {
  if (const auto* decision = std::get_if<typename Core::RecordDecision>(&action)) {
    store_.add(to_row(*decision, cause));
  } else if (const auto* mark = std::get_if<typename Core::MarkSynced>(&action)) {
    store_.set_checkpoint_synced(mark->id, base::to_json(sealed_.at(mark->id)));
  } else if (const auto* checkpoint = std::get_if<typename Core::DeleteCheckpoint>(&action)) {
    store_.remove_checkpoint(checkpoint->id);
  }
}

template <class Core>
void Turns<Core>::perform_always(const Action& action) {
  if (const auto* committed = std::get_if<typename Core::CommitCheckpoint>(&action)) {
    file_worker_.seal(committed->id, committed->directory);
  } else if (const auto* checkpoint = std::get_if<typename Core::DeleteCheckpoint>(&action)) {
    delete_after_sync(checkpoint->id, checkpoint->directory);
  } else if (const auto* start = std::get_if<typename Core::StartTimer>(&action)) {
    timers_.start(start->timer, clock_.now() + base::to_nanoseconds(std::chrono::duration<double>(start->seconds)));
  }
}

template <class Core>
std::optional<std::chrono::nanoseconds> Turns<Core>::time_to_wait() const {
  Earliest earliest;
  earliest.add(store_.sync_due());
  earliest.add(files_due_);
  earliest.add(demand_due_);
  add_deadlines(earliest);
  if (const auto held = signalled_ends_.due()) {
    earliest.add(held);
  } else {
    if (const auto due = timers_.next()) earliest.add(clock_.on_engine(*due));
    add_event_deadlines(earliest);
  }
  if (!earliest.due()) return std::nullopt;
  return std::max(std::chrono::nanoseconds(*earliest.due() - engine_.now()), std::chrono::nanoseconds(0));
}

}  // namespace cadre::control
