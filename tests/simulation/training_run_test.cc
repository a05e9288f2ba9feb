// The core of a training run under random reports, failures, orders and interruptions. SIMULATION_SEEDS says how many
// worlds it goes through (default 1000), SIMULATION_FIRST_SEED where it begins: a failure names the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "base/archive.h"
#include "base/json.h"
#include "train/report_barrier.h"
#include "train/run.h"

namespace cadre::train {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

constexpr std::int64_t kSteps = 12;

// A controller without processes: each step one of its ranks does something, chosen at random.
class World {
 public:
  World(std::uint64_t seed, TrainerOptions options, double failures)
      : random_(seed), options_(std::move(options)), failures_(failures), run_(std::make_unique<Run>(options_)) {
    begin();
  }

  // False when the run has come to an end.
  bool step() {
    if (run_->finished()) return false;
    if (workers_.empty()) {
      if (timers_.empty()) throw std::logic_error("nothing will ever happen");
      fire_timer();
    } else if (!timers_.empty() && random_() % 8 == 0) {
      fire_timer();
    } else {
      act(random_worker());
    }
    return true;
  }
  void run_to_the_end() {
    for (int steps = 0; step(); ++steps) {
      if (steps > 100'000) throw std::logic_error("it does not come to an end");
    }
  }
  void interrupt() {
    handle(RunInterrupted{});
    run_to_the_end();
  }
  // Everything of it is gone; another controller feeds a new Run what was recorded.
  void kill_controller() {
    auto again = std::make_unique<Run>(options_);
    for (const Event& event : recorded_) {
      Actions ignored;
      again->handle(event, ignored);
    }
    ASSERT_EQ(state_of(*again), state_of(*run_)) << "the same events led to another state";
    run_ = std::move(again);
    begin();
  }

  const Run& run() const { return *run_; }
  const std::vector<std::int64_t>& shown() const { return shown_; }
  std::int64_t retries = 0;
  bool may_lose_checkpoints = false;

 private:
  struct Worker {
    std::int64_t step = 0;
    bool waits = false;  // in report()
    bool unwound = false;
    bool silent = false;  // it has said its last word, or was killed
  };

  static std::string state_of(const Run& run) { return base::to_json(base::SaveArchive::to_value(run).dict()); }

  void begin() {
    workers_.clear();
    timers_.clear();
    ControllerStarted started;
    for (const auto& [id, directory] : existing_) {
      if (may_lose_checkpoints && random_() % 4 == 0) started.lost_checkpoints.push_back(id);
    }
    handle(started);
  }

  Rank random_worker() {
    auto it = workers_.begin();
    std::advance(it, random_() % workers_.size());
    return it->first;
  }

  bool chance(double probability) { return std::uniform_real_distribution(0.0, 1.0)(random_) < probability; }

  void act(Rank rank) {
    Worker& worker = workers_.at(rank);
    const std::int64_t attempt = run_->attempt();
    if (worker.silent || chance(failures_ / 2)) {  // its process ends
      const engine::Exit exit = worker.silent ? engine::Exit{engine::Exit::Kind::code, 0, {}}
                                              : engine::Exit{engine::Exit::Kind::signal, 9, {}};
      workers_.erase(rank);
      return handle(WorkerEnded{rank, attempt, exit});
    }
    if (worker.unwound) {
      worker.silent = true;
      return handle(FunctionReturned{rank, attempt, {}});
    }
    if (worker.waits) return;
    if (chance(failures_ / 2)) {
      worker.silent = true;
      return handle(FunctionThrew{rank, attempt, "out of luck"});
    }
    if (worker.step >= kSteps) {
      worker.silent = true;
      handle(FunctionReturned{rank, attempt, worker.step});
      if (run_->is_present(attempt)) take(barrier_.returned(rank));
      return;
    }
    ++worker.step;
    if (!run_->is_present(attempt)) return stop(worker);
    worker.waits = true;
    channel::Report report{.step = worker.step, .metrics = {{"step", worker.step}}, .checkpoint = {}};
    if ((worker.step + rank) % 3 == 0) report.checkpoint = ".reporting_" + std::to_string(rank);
    take(barrier_.reported(rank, std::move(report), {}));
  }

  void take(std::optional<Event> event) {
    if (event) handle(*event);
  }
  // It is unwound: its last word is that it has finished.
  static void stop(Worker& worker) {
    worker.waits = false;
    worker.unwound = true;
  }

  void fire_timer() {
    auto it = timers_.begin();
    std::advance(it, random_() % timers_.size());
    const Timer timer = it->second;
    timers_.erase(it);
    if (run_->awaits(timer)) handle(TimerFired{timer});
  }

  void handle(const Event& event) {
    recorded_.push_back(event);
    Actions actions;
    run_->handle(event, actions);
    for (const Action& action : actions) perform(action);
    for (const run::CheckpointId id : run_->checkpoint_registry().all()) ASSERT_TRUE(existing_.contains(id)) << id;
    ASSERT_EQ(run_->checkpoint_registry().size(), existing_.size()) << "a checkpoint that nobody lists";
    if (run_->latest_checkpoint()) {
      ASSERT_TRUE(existing_.contains(*run_->latest_checkpoint()));
    }
    if (!workers_.empty() && !started_from_.empty()) {
      ASSERT_TRUE(std::ranges::any_of(existing_, [this](const auto& one) { return one.second == started_from_; }))
          << "the present group may still read " << started_from_;
    }
  }

  void perform(const Action& action) {
    if (const auto* group = std::get_if<LaunchGroup>(&action)) {
      ASSERT_TRUE(workers_.empty()) << "two groups at a time";
      ASSERT_EQ(group->step, group->checkpoint.empty() ? 0 : steps_.at(group->checkpoint));
      started_from_ = group->checkpoint;
      for (Rank rank = 0; rank < run_->world_size(); ++rank) workers_[rank] = Worker{.step = group->step};
      barrier_.begin(group->attempt, run_->world_size(), {});
    } else if (const auto* answer = std::get_if<AnswerGroup>(&action)) {
      for (const Rank rank : barrier_.take_waiting()) {
        if (!workers_.contains(rank)) continue;
        Worker& worker = workers_.at(rank);
        worker.waits = false;
        if (answer->stop) stop(worker);
      }
    } else if (const auto* kill = std::get_if<KillWorker>(&action)) {
      if (workers_.contains(kill->rank)) workers_.at(kill->rank).silent = true;
    } else if (const auto* start = std::get_if<StartTimer>(&action)) {
      timers_[start->timer.kind] = start->timer;
    } else if (const auto* committed = std::get_if<CommitCheckpoint>(&action)) {
      ASSERT_TRUE(existing_.emplace(committed->id, committed->directory).second);
      ASSERT_TRUE(steps_.emplace(committed->directory, committed->step).second) << "a name comes twice";
    } else if (const auto* deleted = std::get_if<DeleteCheckpoint>(&action)) {
      ASSERT_EQ(existing_.erase(deleted->id), 1u);
    } else if (const auto* result = std::get_if<ShowResult>(&action)) {
      shown_.push_back(result->step);
    } else if (const auto* decision = std::get_if<RecordDecision>(&action)) {
      retries += decision->kind == DecisionKind::retry ? 1 : 0;
    }
  }

  std::mt19937_64 random_;
  TrainerOptions options_;
  double failures_;
  std::unique_ptr<Run> run_;
  ReportBarrier barrier_;
  std::vector<Event> recorded_;
  std::map<Rank, Worker> workers_;
  std::map<Timer::Kind, Timer> timers_;
  std::map<run::CheckpointId, std::string> existing_;
  std::string started_from_;                   // by the present group
  std::map<std::string, std::int64_t> steps_;  // of all checkpoints that ever were, by directory
  std::vector<std::int64_t> shown_;
};

TrainerOptions random_options(std::mt19937_64& random, std::int64_t max_failures) {
  TrainerOptions options;
  options.scaling_config.num_workers = static_cast<std::int64_t>(1 + random() % 5);
  options.run_config.failure_config.max_failures = max_failures;
  if (random() % 2 == 0) options.run_config.checkpoint_config.num_to_keep = static_cast<std::int64_t>(1 + random() % 3);
  return options;
}

template <class Act>
void in_many_worlds(double failures, std::int64_t max_failures, Act act) {
  const std::uint64_t first = number_from_environment("SIMULATION_FIRST_SEED", 0);
  const std::uint64_t count = number_from_environment("SIMULATION_SEEDS", 1000);
  for (std::uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    try {
      World world(seed, random_options(random, max_failures), failures);
      act(world, random);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Every step was shown once, in order.
void expect_whole(const World& world) {
  EXPECT_EQ(world.run().status(), RunStatus::finished);
  ASSERT_EQ(world.shown().size(), static_cast<std::size_t>(kSteps));
  for (std::size_t i = 0; i < world.shown().size(); ++i) EXPECT_EQ(world.shown()[i], static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(world.run().return_value().get<std::int64_t>(), kSteps);
}

TEST(TrainingRunSimulation, WithoutFailuresEveryReportIsShownOnce) {
  in_many_worlds(0, 0, [](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    expect_whole(world);
    EXPECT_EQ(world.run().attempt(), 1);
  });
}

TEST(TrainingRunSimulation, WhateverFailsItGoesOnFromItsLastCheckpoint) {
  std::int64_t retries = 0;
  in_many_worlds(0.01, -1, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    expect_whole(world);
    retries += world.retries;
  });
  EXPECT_GT(retries, 0);
}

TEST(TrainingRunSimulation, ItFailsWhenItsBudgetIsUsedUp) {
  std::int64_t failed = 0;
  in_many_worlds(0.05, 2, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    EXPECT_LE(world.run().attempt(), 3);
    if (world.run().status() != RunStatus::failed) return;
    ++failed;
    EXPECT_EQ(world.run().attempt(), 3);
    EXPECT_NE(world.run().error(), "");
  });
  EXPECT_GT(failed, 0);
}

TEST(TrainingRunSimulation, InterruptedAtAnyMomentItGoesOnAsItWas) {
  in_many_worlds(0.01, -1, [](World& world, std::mt19937_64& random) {
    world.may_lose_checkpoints = random() % 2 == 0;
    for (int interruptions = 0; interruptions < 4; ++interruptions) {
      for (std::uint64_t steps = random() % 80; steps > 0 && world.step(); --steps) {
      }
      if (random() % 2 == 0) world.interrupt();
      world.kill_controller();
      if (::testing::Test::HasFatalFailure()) return;
    }
    world.run_to_the_end();
    expect_whole(world);
  });
}

}  // namespace
}  // namespace cadre::train
