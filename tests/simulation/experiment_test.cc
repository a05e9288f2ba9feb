// The controller's core under random results, orders, faults and interruptions. SIMULATION_SEEDS is the number of
// worlds in each test (default 1000), SIMULATION_FIRST_SEED the first seed: a failure names the seed that repeats it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "seeds.h"
#include "world.h"

namespace cadre::tune {
namespace {

using test_support::Seeds;

enum class Kind {
  asynchronous,
  synchronous,
  bandits,
  frequencies,
  replay,
  halving,
  promotion,
  hyperband,
  median,
  resources
};
bool does_exploit(Kind kind) { return kind <= Kind::replay; }

// Returns random changes, some at the same step, from the first checkpoint on (the learners save every third step).
PolicySchedule random_schedule(std::mt19937_64& random) {
  const auto config = [&] {
    return Config{{"lr", std::uniform_real_distribution(0.001, 0.5)(random)}, {"momentum", 0.9}};
  };
  PolicySchedule schedule{.initial_config = config()};
  std::int64_t change_at = 3;
  for (std::uint64_t i = random() % 6; i > 0; --i)
    schedule.changes.push_back({change_at += static_cast<std::int64_t>(random() % 7), config()});
  return schedule;
}

// Returns a random scheduler that ends bad trials early.
AnyScheduler random_stopper(std::mt19937_64& random, Kind kind) {
  const Mode mode = random() % 2 == 0 ? Mode::max : Mode::min;
  const double factor = 2 + static_cast<double>(random() % 4) / 2;
  if (kind == Kind::hyperband)
    return HyperBandScheduler{.metric = "score",
                              .mode = mode,
                              .max_t = static_cast<double>(1 + random() % 20),
                              .reduction_factor = factor,
                              .stop_last_trials = random() % 4 != 0};
  if (kind == Kind::median)
    return MedianStoppingRule{.time_attr = "training_iteration",
                              .metric = "score",
                              .mode = mode,
                              .grace_period = static_cast<double>(random() % 6),
                              .min_samples_required = static_cast<std::int64_t>(1 + random() % 3),
                              .min_time_slice = static_cast<double>(random() % 4),
                              .hard_stop = random() % 3 != 0};
  return ASHAScheduler{.metric = "score",
                       .mode = mode,
                       .max_t = static_cast<double>(4 + random() % 40),
                       .grace_period = static_cast<double>(1 + random() % 3),
                       .reduction_factor = factor,
                       .brackets = 1 + static_cast<std::int64_t>(random() % 2),
                       .stop_last_trials = random() % 4 != 0,
                       .promote = kind == Kind::promotion};
}

// Returns a scheduler that changes the resources of trials, around one of any kind; `pbt` is one of them.
ResourceChangingScheduler random_resource_changer(std::mt19937_64& random, const AnyScheduler& pbt) {
  ResourceChangingScheduler changer{.restart = random() % 3 == 0};
  switch (random() % 6) {
    case 0:
      changer.scheduler = pbt;
      break;
    case 1:
      changer.scheduler = FIFO{};
      break;
    default:
      constexpr std::array kinds{Kind::halving, Kind::promotion, Kind::hyperband, Kind::median};
      changer.scheduler = random_stopper(random, kinds[random() % kinds.size()]);
  }
  std::map<std::string, double> step;
  if (random() % 3 == 0) step = {{"cpus", std::array{0.5, 2.0}[random() % 2]}};
  const auto most = static_cast<std::int64_t>(random() % 4);
  if (random() % 2 == 0) {
    changer.resources_allocation = DistributeResources{.increase_by = step, .increase_by_times = most};
  } else {
    changer.resources_allocation = DistributeResourcesToTopJob{.increase_by = step,
                                                               .increase_by_times = most,
                                                               .reserve_resources = {{"cpus", random() % 2}},
                                                               .metric = "score",
                                                               .mode = Mode::max};
  }
  return changer;
}

// Returns a random searcher that has left its first stage after a few trials.
AnySearcher random_searcher(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
      return TPE{.n_startup_trials = 2};
    case 1:
      return CMAES{.popsize = 3};
    case 2:
      return NSGA2{.population_size = 3};
    case 3:
      return GaussianProcess{.n_startup_trials = 4};
    case 4:
      return QuasiRandom{};
    case 5:
      return BOHB{.max_t = 9, .min_observations = 2};
    case 6:
      return Repeater{.searcher = TPE{.n_startup_trials = 1}, .repeat = 2};
    default:
      return RandomSearch{};
  }
}

// Returns a variant with the same options where it has them.
PB2 with_bandits(const PopulationBasedTraining& pbt, std::mt19937_64& random) {
  return {.time_attr = pbt.time_attr,
          .metric = pbt.metric,
          .perturbation_interval = pbt.perturbation_interval,
          .burn_in_period = pbt.burn_in_period,
          .hyperparam_bounds = {{"lr", loguniform(0.001, 0.5)}, {"momentum", uniform(0.5, 1)}},
          .quantile_fraction = pbt.quantile_fraction,
          .synch = random() % 2 == 0};
}
MultipleFrequenciesPBT with_frequencies(const PopulationBasedTraining& pbt, std::mt19937_64& random) {
  return {.time_attr = pbt.time_attr,
          .metric = pbt.metric,
          .perturbation_interval = pbt.perturbation_interval,
          .burn_in_period = pbt.burn_in_period,
          .interval_factors = {1, 2 + static_cast<std::int64_t>(random() % 3)},
          .hyperparam_mutations = pbt.hyperparam_mutations,
          .quantile_fraction = std::min(pbt.quantile_fraction, 0.3),
          .synch = random() % 2 == 0};
}

// Calls `act` with the options of Population Based Training or of the variant that the scheduler is.
void for_pbt(AnyScheduler& scheduler, const auto& act) {
  if (scheduler.get_if<ResourceChangingScheduler>() != nullptr)
    for_pbt(scheduler.get<ResourceChangingScheduler>().scheduler, act);
  if (scheduler.get_if<PopulationBasedTraining>() != nullptr) act(scheduler.get<PopulationBasedTraining>());
  if (scheduler.get_if<PB2>() != nullptr) act(scheduler.get<PB2>());
  if (scheduler.get_if<MultipleFrequenciesPBT>() != nullptr) act(scheduler.get<MultipleFrequenciesPBT>());
}

// Returns options of a random experiment: population, slots, retention, intervals.
TunerOptions random_options(std::mt19937_64& random, Kind kind) {
  TunerOptions options;
  options.param_space = {{"lr", uniform(0.001, 0.5)}, {"momentum", uniform(0, 1)}};
  options.tune_config.num_samples = static_cast<std::int64_t>(1 + random() % 10);
  options.tune_config.seed = random();
  options.tune_config.scheduler =
      PopulationBasedTraining{.time_attr = "training_iteration",
                              .metric = "score",
                              .perturbation_interval = static_cast<double>(1 + random() % 6),
                              .burn_in_period = random() % 4 == 0 ? 7.0 : 0.0,
                              .hyperparam_mutations = {{"lr", uniform(0.001, 0.5)}, {"momentum", {0.8, 0.9, 0.99}}},
                              .quantile_fraction = static_cast<double>(random() % 6) / 10,
                              .synch = kind == Kind::synchronous};
  options.run_config.stop = {{"training_iteration", static_cast<double>(5 + random() % 40)}};
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (random() % 4 != 0) checkpoints.num_to_keep = static_cast<std::int64_t>(1 + random() % 4);
  if (random() % 2 == 0) checkpoints.checkpoint_score_attribute = "score";
  options.run_config.failure_config.max_failures = static_cast<std::int64_t>(random() % 5) - 1;
  options.run_config.failure_config.max_restore_failures = static_cast<std::int64_t>(random() % 3);
  options.run_config.limits.time_between_reports = std::chrono::seconds(1);
  options.run_config.stop_grace_period = std::chrono::milliseconds(random() % 100);
  Parking& parking = options.tune_config.parking;
  if (random() % 3 == 0) parking.max_workers = static_cast<std::int64_t>(random() % 4);
  parking.with_gpus = random() % 2 == 0;
  AnyScheduler& scheduler = options.tune_config.scheduler;
  if (kind == Kind::bandits) scheduler = with_bandits(scheduler.get<PopulationBasedTraining>(), random);
  if (kind == Kind::frequencies) scheduler = with_frequencies(scheduler.get<PopulationBasedTraining>(), random);
  for_pbt(scheduler, [&](auto& pbt) {
    if (pbt.synch && random() % 2 == 0) pbt.synch_deadline = 0.05;
  });
  if (kind == Kind::replay) {
    options.tune_config.num_samples = 1;
    PopulationBasedTrainingReplay replay{.schedule = random_schedule(random)};
    std::vector<std::string> notes;
    replay.complete(options, notes);
    options.tune_config.scheduler = replay;
  }
  if (!does_exploit(kind)) {
    options.tune_config.scheduler = kind == Kind::resources ? AnyScheduler(random_resource_changer(random, scheduler))
                                                            : random_stopper(random, kind);
    options.tune_config.searcher = random_searcher(random);
    options.tune_config.metric = "score";
    options.tune_config.mode = random() % 2 == 0 ? Mode::max : Mode::min;
  }
  return options;
}

// Returns a function that saves by itself or offers its checkpoints, or one of the possible kinds of classes.
Trainable random_trainable(std::mt19937_64& random, PlacementGroup of_a_trial) {
  Trainable learner = with_resources(Trainable("learner"), std::move(of_a_trial));
  if (random() % 2 == 0)
    learner.methods = {
        .is_class = true, .save_checkpoint = true, .load_checkpoint = true, .reset_config = random() % 2 == 0};
  if (learner.methods.is_class || random() % 2 == 0) learner.parameters.set(kOffers, true);
  return learner;
}

// Raises the perturbation interval to the first checkpoint: a learner that saves by itself does so every third step,
// and Population Based Training fails a trial that reaches its first interval without a checkpoint.
void save_before_the_first_interval(TunerOptions& options) {
  for_pbt(options.tune_config.scheduler,
          [](auto& pbt) { pbt.perturbation_interval = std::max(pbt.perturbation_interval, 3.0); });
}

// Returns nodes of which the first has what a trial needs, as `machine` has it.
Nodes random_nodes(std::uint64_t seed, const Resources& machine) {
  std::mt19937_64 random(seed);
  Nodes nodes{.machines = {machine}, .changes = std::array{0.0, 0.01, 0.05}[random() % 3]};
  for (std::uint64_t more = random() % 4; more > 0; --more) {
    Resources other = machine;
    other.cpus = std::array{0.5, 1.0, 2.0, 8.0}[random() % 4];
    nodes.machines.push_back(other);
  }
  return nodes;
}

// Lets trials start workers of their own, which may be on other nodes.
void add_workers(std::uint64_t seed, PlacementGroup& group, Resources& machine) {
  std::mt19937_64 random(seed);
  using enum PlacementStrategy;
  group.strategy = std::array{pack, spread, strict_pack, strict_spread}[random() % 4];
  for (std::uint64_t more = 1 + random() % 3; more > 0; --more) group.bundles.push_back({.cpus = 1});
  if (random() % 2 == 0) group.bundles.front() = {.cpus = 0};
  machine.cpus += 3;
}

bool ended_well(const Trial& trial) {
  return trial.status == TrialStatus::terminated || trial.status == TrialStatus::stopped;
}

class Simulation : public ::testing::TestWithParam<Kind> {
 protected:
  std::int64_t moves_ = 0;
  std::int64_t nodes_lost_ = 0;
  std::int64_t workers_lost_ = 0;
  std::int64_t parted_ = 0;
  double most_changes_ = 1;  // of nodes
  Seeds seeds_{1000};

  // Calls `act` with many worlds, each from a seed.
  template <class Act>
  void in_many_worlds(Mishaps faults, Act act, const std::optional<FailureConfig>& failure_config = {},
                      void (*change)(TunerOptions&, std::mt19937_64&) = nullptr) {
    int events = 0;
    const std::uint64_t first = seeds_.first();
    std::uint64_t count = seeds_.count();
    if (GetParam() == Kind::bandits) count = std::max<std::uint64_t>(count / 25, 1);  // each choice takes milliseconds
    for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      TunerOptions options = random_options(random, GetParam());
      if (random() % 2 == 0) options.run_config.checkpoint_config.checkpoint_at_end = true;
      if (change != nullptr) change(options, random);
      if (failure_config) options.run_config.failure_config = *failure_config;
      Resources machine{.cpus = static_cast<double>(1 + random() % 6)};
      Resources of_a_trial;
      if (random() % 4 == 0) {
        machine.gpus = static_cast<double>(1 + random() % 3);
        of_a_trial.gpus = std::array{0.3, 0.5, 1.0}[random() % 3];
      }
      PlacementGroup group{.bundles = {of_a_trial}};
      if (seed % 9 == 2) add_workers(seed, group, machine);
      try {
        const Trainable learner = random_trainable(random, group);
        if (!learner.parameters.contains(kOffers)) save_before_the_first_interval(options);
        Nodes nodes = seed % 3 == 2 ? random_nodes(seed, machine) : Nodes{};
        nodes.changes = std::min(nodes.changes, most_changes_);
        if (!nodes.machines.empty() && group.strategy == PlacementStrategy::strict_spread)
          nodes.machines.insert(nodes.machines.begin(), group.bundles.size(), machine);
        World world(seed, options, machine, learner, faults, nodes);
        act(world, random);
        moves_ += world.moves;
        nodes_lost_ += world.nodes_lost;
        workers_lost_ += world.workers_lost;
        parted_ += world.parted;
        events += static_cast<int>(world.recorded().size());
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();  // with the seed, which an exception would not show
      }
    }
    RecordProperty("events", events);  // in the XML report
  }
};

TEST_P(Simulation, EveryTrialReachesItsEndAndNothingIsMissing) {
  std::int64_t exploits = 0;
  std::int64_t saves = 0;
  std::int64_t takeovers = 0;
  std::int64_t changes = 0;
  std::int64_t restarts = 0;
  in_many_worlds({}, [&](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    for (const Trial& trial : world.experiment().trials()) EXPECT_TRUE(ended_well(trial)) << trial.id;
    EXPECT_EQ(world.experiment().trials_to_come(), 0);
    exploits += world.exploits;
    saves += world.saves;
    takeovers += world.takeovers;
    changes += world.changes;
    restarts += world.restarts;
  });
  if (GetParam() != Kind::resources) {
    EXPECT_EQ(changes, 0);
    EXPECT_EQ(restarts, 0);
  }
  if (!seeds_.are_many()) return;
  EXPECT_GT(saves, 0);
  if (GetParam() != Kind::bandits) {  // of which there are few worlds
    EXPECT_GT(moves_, 0);
    EXPECT_GT(nodes_lost_, 0);
    EXPECT_GT(workers_lost_, 0);
    EXPECT_GT(parted_, 0);
  }
  if (GetParam() == Kind::resources) {
    EXPECT_GT(changes, 0);
    EXPECT_GT(restarts, 0);
  }
  if (!does_exploit(GetParam())) return;
  EXPECT_GT(exploits, 0);
  EXPECT_GT(takeovers, 0);
}

// In spite of faults and interruptions the trial makes all changes that it reaches, and ends with the last one's
// config.
TEST(ReplaySimulation, EveryChangeIsMadeOnce) {
  const Seeds seeds(1000);
  const std::uint64_t first = seeds.first();
  for (std::uint64_t seed = first; seed < first + seeds.count() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    TunerOptions options = random_options(random, Kind::replay);
    options.run_config.stop = {{"training_iteration", 60}};  // beyond the last change
    options.run_config.failure_config.max_failures = -1;
    const PolicySchedule schedule = *options.tune_config.scheduler.get<PopulationBasedTrainingReplay>().schedule;
    const Mishaps faults{.throws = 0.02, .dies = 0.02, .declines = 0.3};
    World world(seed, options, {.cpus = 1}, random_trainable(random, {.bundles = {{.cpus = 1}}}), faults);
    for (int interruptions = 0; interruptions < 3; ++interruptions) {
      for (std::uint64_t steps = random() % 60; steps > 0 && world.step(); --steps) {
      }
      random() % 2 == 0 ? world.kill_controller() : world.interrupt();
    }
    world.run_to_the_end();
    EXPECT_EQ(world.exploits, static_cast<std::int64_t>(schedule.changes.size()));
    const Config& last = schedule.changes.empty() ? schedule.initial_config : schedule.changes.back().config;
    EXPECT_EQ(world.experiment().trials().at(0).config, last);
    EXPECT_EQ(world.experiment().trials().at(0).status, TrialStatus::terminated);
  }
}

TEST_P(Simulation, OnAPlateauEverybodyReachesItsEnd) {
  in_many_worlds({.plateau = true}, [](World& world, std::mt19937_64&) {
    std::int64_t steps = 0;
    while (steps < 20'000 && world.step()) ++steps;
    EXPECT_TRUE(world.experiment().finished()) << "it goes round in circles";
  });
}

TEST_P(Simulation, FailingTrialsHarmNobodyElse) {
  const Mishaps faults{.throws = 0.01, .dies = 0.01, .returns = 0.01, .no_metric = 0.01};
  in_many_worlds(faults, [](World& world, std::mt19937_64&) {
    world.run_to_the_end();
    for (const Trial& trial : world.experiment().trials()) EXPECT_TRUE(trial.ended()) << trial.id;
  });
}

TEST_P(Simulation, InterruptedAtAnyMomentItGoesOnAsItWas) {
  const Mishaps faults{.throws = 0.005, .dies = 0.005, .declines = 0.2};
  in_many_worlds(faults, [](World& world, std::mt19937_64& random) {
    for (int interruptions = 0; interruptions < 5; ++interruptions) {
      for (std::uint64_t steps = random() % 40; steps > 0 && world.step(); --steps) {
      }
      random() % 2 == 0 ? world.kill_controller() : world.interrupt();
    }
    world.run_to_the_end();
    for (const Trial& trial : world.experiment().trials()) EXPECT_TRUE(trial.ended()) << trial.id;
  });
}

TEST_P(Simulation, WorkersThatHangOrIgnoreTheirStopAreEnded) {
  std::int64_t kills = 0;
  in_many_worlds({.hangs = 0.01, .ignores_stop = 0.2, .lacks_memory = 0.05, .declines = 0.1},
                 [&](World& world, std::mt19937_64& random) {
                   for (std::uint64_t steps = random() % 40; steps > 0 && world.step(); --steps) {
                   }
                   world.interrupt();
                   world.run_to_the_end();
                   for (const Trial& trial : world.experiment().trials()) EXPECT_TRUE(trial.ended()) << trial.id;
                   kills += world.kills;
                 });
  if (seeds_.are_many()) EXPECT_GT(kills, 0);
}

TEST_P(Simulation, LostCheckpointsCostStepsAndNothingElse) {
  std::int64_t lost = 0;
  in_many_worlds({.loses_checkpoint = 0.3, .lacks_memory = 0.02}, [&](World& world, std::mt19937_64& random) {
    for (int interruptions = 0; interruptions < 3; ++interruptions) {
      for (std::uint64_t steps = random() % 60; steps > 0 && world.step(); --steps) {
      }
      world.kill_controller();
    }
    world.run_to_the_end();
    for (const Trial& trial : world.experiment().trials()) EXPECT_TRUE(ended_well(trial)) << trial.id;
    lost += world.lost;
  });
  if (seeds_.are_many()) EXPECT_GT(lost, 0);
}

TEST_P(Simulation, ErroredTrialsCanBeTakenUpAgain) {
  const Mishaps faults{.throws = 0.02, .dies = 0.02};
  in_many_worlds(faults, [](World& world, std::mt19937_64& random) {
    world.run_to_the_end();
    for (int times = 0; times < 3; ++times) {
      const bool resume = random() % 2 == 0;
      world.restore_errored(resume ? ControllerStarted::Errored::resume : ControllerStarted::Errored::restart);
      for (const Trial& trial : world.experiment().trials()) EXPECT_NE(trial.status, TrialStatus::error) << trial.id;
      world.run_to_the_end();
    }
  });
}

TEST_P(Simulation, FailFastEndsEverybody) {
  std::int64_t failed = 0;
  in_many_worlds(
      {.throws = 0.01, .ignores_stop = 0.1},
      [&](World& world, std::mt19937_64&) {
        world.run_to_the_end();
        std::int64_t errors = 0;
        for (const Trial& trial : world.experiment().trials()) {
          EXPECT_TRUE(trial.ended()) << trial.id;
          errors += trial.status == TrialStatus::error ? 1 : 0;
        }
        EXPECT_LE(errors, 1);
        failed += errors;
      },
      FailureConfig{.fail_fast = true});
  if (seeds_.are_many()) EXPECT_GT(failed, 0);
}

// Includes parked trials.
TEST_P(Simulation, AnInterruptionCostsNothingWhereEveryResultCanBeSaved) {
  most_changes_ = 0;  // a lost node costs what it had
  std::int64_t interruptions = 0;
  in_many_worlds(
      {.declines = 0.1},
      [&](World& world, std::mt19937_64& random) {
        for (std::uint64_t steps = random() % 150; steps > 0 && world.step(); --steps) {
        }
        interruptions += world.experiment().finished() ? 0 : 1;
        world.interrupt();
        world.check_all_saved();
        world.run_to_the_end();
      },
      {},
      [](TunerOptions& options, std::mt19937_64&) {
        options.run_config.stop_grace_period = std::chrono::hours(1);
        options.run_config.checkpoint_config.checkpoint_at_end = true;
      });
  if (seeds_.are_many()) EXPECT_GT(interruptions, 0);
}

// Stops by the time budget, at a plateau or once the regret is small, in some worlds with an interruption while all
// trials are stopping.
TEST_P(Simulation, WhatStopsTheExperimentEndsEverybody) {
  std::int64_t early = 0;
  in_many_worlds(
      {.throws = 0.01, .hangs = 0.005, .ignores_stop = 0.1, .declines = 0.2},
      [&](World& world, std::mt19937_64& random) {
        for (std::uint64_t steps = random() % 60; steps > 0 && world.step(); --steps) {
        }
        if (random() % 2 == 0) random() % 2 == 0 ? world.kill_controller() : world.interrupt();
        world.run_to_the_end();
        for (const Trial& trial : world.experiment().trials()) {
          EXPECT_TRUE(trial.ended()) << trial.id;
          early += trial.last_result.number("training_iteration").value_or(0) < 5 ? 1 : 0;
        }
      },
      {},
      [](TunerOptions& options, std::mt19937_64& random) {
        std::vector<AnyStopper>& stoppers = options.run_config.stop.stoppers;
        switch (random() % 3) {
          case 0:
            options.tune_config.time_budget = std::chrono::milliseconds(10 + random() % 300);
            break;
          case 1:
            stoppers = {ExperimentPlateauStopper{.metric = "score", .std = 0.02, .top = 3, .mode = Mode::max}};
            break;
          default:  // by the ends of trials; lr and momentum decide about the score
            stoppers = {RegretBoundTerminator{
                .metric = "score", .mode = Mode::max, .error = StaticError{1}, .min_n_trials = 2}};
        }
      });
  if (seeds_.are_many()) EXPECT_GT(early, 0);
}

// Includes trials that are parked when the experiment stops.
TEST_P(Simulation, WhoIsStoppedWithAllOthersIsSavedFirstWhereItCanBe) {
  most_changes_ = 0;
  std::int64_t stopped = 0;
  in_many_worlds(
      {.declines = 0.1},
      [&](World& world, std::mt19937_64&) {
        world.run_to_the_end();
        world.check_all_saved();
        for (const Trial& trial : world.experiment().trials())
          stopped += trial.last_result.number("training_iteration").value_or(0) < 5 ? 1 : 0;
      },
      {},
      [](TunerOptions& options, std::mt19937_64& random) {
        options.run_config.stop_grace_period = std::chrono::hours(1);
        options.run_config.checkpoint_config.checkpoint_at_end = true;
        options.tune_config.time_budget = std::chrono::milliseconds(10 + random() % 300);
      });
  if (seeds_.are_many()) EXPECT_GT(stopped, 0);
}

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  constexpr const char* names[] = {"Asynchronous", "Synchronous", "Bandits",   "Frequencies", "Replay",
                                   "Halving",      "Promotion",   "HyperBand", "Median",      "Resources"};
  return names[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Pbt, Simulation,
                         ::testing::Values(Kind::asynchronous, Kind::synchronous, Kind::bandits, Kind::frequencies,
                                           Kind::replay, Kind::halving, Kind::promotion, Kind::hyperband, Kind::median,
                                           Kind::resources),
                         name_of);

}  // namespace
}  // namespace cadre::tune
