#include "control/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/experiment_store.h"
#include "store/run_directory.h"
#include "support/temporary_directory.h"
#include "train/events.h"
#include "train/journal.h"

namespace cadre::control {
namespace {

using ::testing::ElementsAre;

// Starts a timer, and has finished when its worker has ended.
class CoreWithTimer {
 public:
  using Event = train::Event;
  using Actions = train::Actions;
  using Timer = train::Timer;
  using TimerFired = train::TimerFired;
  using Interrupted = train::RunInterrupted;
  using CheckpointsSynced = train::CheckpointsSynced;
  using RecordDecision = train::RecordDecision;
  using CommitCheckpoint = train::CommitCheckpoint;
  using MarkSynced = train::MarkSynced;
  using DeleteCheckpoint = train::DeleteCheckpoint;
  using StartTimer = train::StartTimer;

  void handle(const Event& event, Actions& actions) {
    if (std::holds_alternative<train::ControllerStarted>(event))
      actions.emplace_back(StartTimer{{.kind = Timer::Kind::retry}, 0.2});
    if (std::holds_alternative<TimerFired>(event)) handled.emplace_back("timer");
    if (std::holds_alternative<train::WorkerEnded>(event)) handled.emplace_back("end");
  }
  bool finished() const { return !handled.empty(); }
  bool awaits(const Timer&) const { return true; }
  std::vector<engine::Demand> demand() const { return {}; }

  std::vector<std::string> handled;
};

// An engine whose only worker is ended by SIGTERM at once, in virtual time.
class EngineOfOneEnd final : public engine::Engine {
 public:
  Resources resources() const override { return {}; }
  void start(engine::WorkerId, const engine::WorkerSpec&) override {}
  void answer(engine::WorkerId, const channel::Answer&) override {}
  void reply(engine::WorkerId, const channel::StoreReply&) override {}
  void reply(engine::WorkerId, const channel::Reply&) override {}
  void kill(engine::WorkerId) override {}
  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds> timeout) override {
    constexpr int enough = 100;
    if (++waits_ > enough) throw std::logic_error("it does not wait until something is to be done");
    if (waits_ == 1) return {engine::Exited{1, {engine::Exit::Kind::signal, SIGTERM, {}}}};
    now_ += timeout.value();
    return {};
  }
  void wake() noexcept override {}
  Clock::time_point now() const override { return Clock::time_point(now_); }
  double wall_seconds() const override { return std::chrono::duration<double>(now_).count(); }

 private:
  int waits_ = 0;
  std::chrono::nanoseconds now_{0};
};

class TurnsWithTimer final : public Turns<CoreWithTimer> {
 public:
  TurnsWithTimer(CoreWithTimer& core, std::filesystem::path directory, store::ExperimentStore& store,
                 engine::Engine& engine)
      : Turns(core,
              {.directory = std::move(directory),
               .tenant = store::training_run_tenant,
               .print = [](const std::string&, bool) {}},
              store, engine) {}

 private:
  std::vector<Event> begin() override { return {train::ControllerStarted{}}; }
  void translate(engine::Event event, std::vector<Event>& events) override {
    events.emplace_back(train::WorkerEnded{.exit = std::get<engine::Exited>(event).exit});
  }
  bool receive(Event&) override { return false; }
  std::int64_t record(const Step& step) override { return train::record(store_, step.event, step.time, step.repeated); }
  void prepare(const Action&) override {}
  bool must_be_synced(const Action&) const override { return false; }
  void answer(const Action&) override {}
  void log(const Step&) override {}
  void perform(const Action&) override {}
  void write_files() override {}
  bool is_complete() const override { return true; }
  std::set<std::string> checkpoints_to_keep() const override { return {}; }
};

TEST(Turns, ATimerThatIsDueWhileAnEndIsHeldBackIsHandledAfterItWithoutLookingAgainAndAgain) {
  const test_support::TemporaryDirectory directory;
  store::ExperimentStore store = store::ExperimentStore::create(directory.path(), {});
  CoreWithTimer core;
  EngineOfOneEnd engine;
  TurnsWithTimer(core, directory.path(), store, engine).run();
  EXPECT_THAT(core.handled, ElementsAre("end", "timer"));
  EXPECT_EQ(engine.now(), engine::Engine::Clock::time_point(SignalledEnds::patience));
}

}  // namespace
}  // namespace cadre::control
