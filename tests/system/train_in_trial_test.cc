// A trial whose function trains with workers of its own: their reports and checkpoints are the trial's. This program's
// machine has 4 CPUs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "cadre/train.h"
#include "cadre/tune.h"
#include "scenario.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// ---- Training functions

std::int64_t rank() { return train::get_context().get_world_rank(); }

// Returns the trial's directory, two above the rank's own directory.
fs::path trial_of_rank() { return train::get_context().get_storage().path().parent_path(); }

struct State {
  std::int64_t step = 0;
  double score = 0;
};

State read_state(const fs::path& checkpoint) {
  State state;
  std::ifstream(checkpoint / "state") >> state.step >> state.score;
  return state;
}

void append(const fs::path& file, const std::string& line) { std::ofstream(file, std::ios::app) << line << std::endl; }

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Appends the rank to the file "unwound" at the end of its function, also if that is unwound.
struct SaysGoodbye {
  ~SaysGoodbye() { append(trial_of_rank() / "unwound", std::to_string(rank())); }
};

// Adds its lr to a score; each rank saves a part. Rank 1 dies once in step "dies_at".
std::int64_t learns(const Config& config) {
  const SaysGoodbye goodbye;
  State state;
  if (const auto checkpoint = train::get_checkpoint()) {
    state = read_state(checkpoint->path());
    if (!fs::exists(checkpoint->path() / "of_rank_1")) throw std::runtime_error("the part of rank 1 is missing");
    append(trial_of_rank() / "begins_at", fmt::format("{} {}", rank(), state.step));
  }
  while (state.step < config.get<std::int64_t>("steps", 1000)) {
    ++state.step;
    state.score += config.get<double>("lr", 1);
    const fs::path died = trial_of_rank() / "died";
    if (rank() == 1 && state.step == config.get<std::int64_t>("dies_at", -1) && !fs::exists(died)) {
      append(died, "once");
      ::kill(::getpid(), SIGKILL);
    }
    const auto write = [&](const fs::path& directory) {
      if (rank() == 0) std::ofstream(directory / "state") << state.step << " " << state.score;
      if (rank() == 1) std::ofstream(directory / "of_rank_1") << state.step;
    };
    train::report({{"score", state.score}, {"step", state.step}}, write,
                  {.validation = config.get<bool>("validates", false)});
  }
  return state.step;
}

Metrics doubles_the_score(const Checkpoint& checkpoint) {
  return {{"score", 2 * read_state(checkpoint.path()).score}, {"validated_step", read_state(checkpoint.path()).step}};
}

// ---- Trainables

void trains(const Config& config) {
  train::Trainer trainer(
      fn<learns>, {.train_loop_config = config,
                   .scaling_config = {.num_workers = config.get<std::int64_t>("workers", 2)},
                   .run_config = {.name = "inner",
                                  .failure_config = {.max_failures = config.get<std::int64_t>("inner_failures", 0)},
                                  .checkpoint_config = {.num_to_keep = 1}},
                   .validation = {.function = fn<doubles_the_score>, .resources = {.cpus = 0.5}}});
  const train::Result result = trainer.fit();
  append(tune::get_context().get_trial_dir() / "returned", to_json(result.return_value));
}

// Trains; once, the trial's own process is killed as soon as "checkpoint_000002" exists.
void trains_and_dies(const Config& config) {
  const fs::path died = tune::get_context().get_trial_dir() / "trial_died";
  if (!fs::exists(died)) {
    append(died, "once");
    if (::fork() == 0) {  // in the process group of the trial, ended with it
      const fs::path checkpoint = tune::get_context().get_trial_dir() / "checkpoint_000002";
      while (!fs::exists(checkpoint)) ::usleep(1000);
      ::kill(::getppid(), SIGKILL);
      ::_exit(0);
    }
  }
  trains(config);
}

// Reports by the function of the other kind of worker.
void reports_as_a_rank(const Config&) { train::report({{"score", 1}}); }
void reports_as_a_trial(const Config&) { tune::report({{"score", 1}}); }

tune::Trainable with_workers(tune::Trainable trainable, int workers = 2) {
  PlacementGroup group{.bundles = {{.cpus = 0}}};
  for (int i = 0; i < workers; ++i) group.bundles.push_back({.cpus = 1});
  return tune::with_resources(std::move(trainable), group);
}

tune::TunerOptions options_of(const fs::path& storage, tune::Space space) {
  return {.param_space = std::move(space), .run_config = {.name = "nested", .storage_path = storage, .verbose = 0}};
}

std::vector<std::int64_t> steps_of(const tune::Result& result) {
  std::vector<std::int64_t> steps;
  for (const Metrics& metrics : result.metrics_history()) steps.push_back(metrics.get<std::int64_t>("step"));
  return steps;
}

TEST(TrainInTrial, ReportsAndCheckpointsAreTheTrials) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(with_workers(fn<trains>), options_of(storage.path(), {{"steps", 3}})).fit();
  const tune::Result& trial = results[0];
  ASSERT_EQ(trial.error, std::nullopt);
  EXPECT_THAT(steps_of(trial), ElementsAre(1, 2, 3));
  EXPECT_EQ(trial.metrics.get<std::int64_t>("training_iteration"), 3);
  ASSERT_TRUE(trial.checkpoint);
  EXPECT_EQ(trial.checkpoint->path().parent_path(), trial.path);
  EXPECT_EQ(read_state(trial.checkpoint->path()).step, 3);
  EXPECT_TRUE(fs::exists(trial.checkpoint->path() / "of_rank_1"));
  EXPECT_THAT(lines_of(trial.path / "returned"), ElementsAre("3"));
  const train::Result inner = train::Result::from_directory(trial.path / "inner");
  EXPECT_EQ(inner.metrics_history.size(), 3U);
  for (const fs::path& directory : {trial.path, inner.path}) {  // each directory has files of its own
    EXPECT_THAT(lines_of(directory / "result.json"), ::testing::SizeIs(3)) << directory;
    EXPECT_THAT(lines_of(directory / "progress.csv"), ::testing::SizeIs(4)) << directory;
  }
}

// The results would be lost, and the trial or run successful.
TEST(TrainInTrial, AReportByTheFunctionOfTheOtherKindOfWorkerIsAnError) {
  const TemporaryDirectory storage;
  const tune::Result trial = tune::Tuner(fn<reports_as_a_rank>, options_of(storage.path(), {})).fit()[0];
  ASSERT_TRUE(trial.error);
  EXPECT_THAT(*trial.error, HasSubstr("train::report records nothing here: this worker reports with tune::report"));
  EXPECT_THAT(message_of<train::TrainingFailed>([&] {
                train::Trainer(fn<reports_as_a_trial>,
                               {.run_config = {.name = "run", .storage_path = storage.path(), .verbose = 0}})
                    .fit();
              }),
              HasSubstr("tune::report records nothing here: this worker reports with train::report"));
}

TEST(TrainInTrial, CheckpointsMayBeValidatedWithTheBundlesOfTheTrial) {
  for (const int bundles : {2, 3}) {  // as many as the ranks take, and one more
    const TemporaryDirectory storage;
    const tune::Result trial =
        tune::Tuner(with_workers(fn<trains>, bundles), options_of(storage.path(), {{"steps", 4}, {"validates", true}}))
            .fit()[0];
    ASSERT_EQ(trial.error, std::nullopt);
    EXPECT_THAT(steps_of(trial), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(trial.metrics.get<double>("score"), 4) << "a trial's results are what was reported";
    const train::Result inner = train::Result::from_directory(trial.path / "inner");
    ASSERT_THAT(inner.best_checkpoints, ::testing::SizeIs(1));
    EXPECT_EQ(inner.best_checkpoints[0].status, train::ReportedCheckpointStatus::validated);
    EXPECT_EQ(inner.best_checkpoints[0].metrics, (Metrics{{"score", 8.0}, {"step", 4}, {"validated_step", 4}}));
    EXPECT_THAT(lines_of(inner.path / "validations.json"), ::testing::SizeIs(4));
  }
}

TEST(TrainInTrial, AStopCriterionOfTheExperimentStopsTheRanksInOrder) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {});
  options.run_config.stop = {{"training_iteration", 4}};
  const tune::Result trial = tune::Tuner(with_workers(fn<trains>), options).fit()[0];
  EXPECT_EQ(trial.error, std::nullopt);
  EXPECT_THAT(steps_of(trial), ElementsAre(1, 2, 3, 4));
  std::vector<std::string> unwound = lines_of(trial.path / "unwound");
  std::ranges::sort(unwound);
  EXPECT_THAT(unwound, ElementsAre("0", "1"));
  EXPECT_FALSE(fs::exists(trial.path / "returned")) << "fit() went on after the stop";
  EXPECT_EQ(train::Result::from_directory(trial.path / "inner").metrics_history.size(), 4U)
      << "ranks have gone on after the stop";
}

TEST(TrainInTrial, AnExploitGoesOnFromTheDonorsCheckpointInAllRanks) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {{"lr", tune::grid_search({0.001, 1.0})}, {"steps", 1000}});
  options.tune_config.scheduler = tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                                                .metric = tune::maximize("score"),
                                                                .perturbation_interval = 4,
                                                                .hyperparam_mutations = {{"lr", {0.001, 1.0}}},
                                                                .quantile_fraction = 0.5,
                                                                .synch = true};
  options.run_config.stop = {{"training_iteration", 8}};
  const tune::ResultGrid results = tune::Tuner(with_workers(fn<trains>), options).fit();
  const tune::Result& target = results[0];
  ASSERT_EQ(target.error, std::nullopt);
  EXPECT_GT(target.metrics.get<double>("score"), 4) << "it has not got the donor's score";
  std::vector<std::string> begins = lines_of(target.path / "begins_at");
  std::ranges::sort(begins);
  EXPECT_THAT(begins, ElementsAre("0 4", "1 4"));
  EXPECT_THAT(steps_of(target), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(TrainInTrial, ARankThatDiesIsTheRunsOwnBusiness) {
  const TemporaryDirectory storage;
  const tune::Result trial =
      tune::Tuner(with_workers(fn<trains>),
                  options_of(storage.path(), {{"steps", 5}, {"dies_at", 3}, {"inner_failures", 1}}))
          .fit()[0];
  ASSERT_EQ(trial.error, std::nullopt);
  EXPECT_THAT(steps_of(trial), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(train::Result::from_directory(trial.path / "inner").attempts, 2);
}

TEST(TrainInTrial, ARunThatFailsFailsItsTrialWhichIsTriedAgainFromItsCheckpoint) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {{"steps", 5}, {"dies_at", 3}});
  options.run_config.failure_config.max_failures = 1;
  const tune::Result trial = tune::Tuner(with_workers(fn<trains>), options).fit()[0];
  ASSERT_EQ(trial.error, std::nullopt);
  EXPECT_THAT(steps_of(trial), ElementsAre(1, 2, 3, 4, 5));
  std::vector<std::string> begins = lines_of(trial.path / "begins_at");
  std::ranges::sort(begins);
  EXPECT_THAT(begins, ElementsAre("0 2", "1 2"));
}

TEST(TrainInTrial, ATrialThatIsKilledTakesItsRanksAlongAndGoesOnFromItsCheckpoint) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {{"steps", 60}});
  options.run_config.failure_config.max_failures = 1;
  const tune::Result trial = tune::Tuner(with_workers(fn<trains_and_dies>), options).fit()[0];
  ASSERT_EQ(trial.error, std::nullopt);
  std::vector<std::int64_t> expected(60);
  std::ranges::generate(expected, [step = 0]() mutable { return ++step; });
  EXPECT_EQ(steps_of(trial), expected);
  EXPECT_EQ(lines_of(trial.path / "begins_at").size(), 2U);
}

TEST(TrainInTrial, ATrialThatIsKilledHasItsLastCheckpointsValidatedAfterwards) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {{"steps", 40}, {"validates", true}});
  options.run_config.failure_config.max_failures = 1;
  const tune::Result trial = tune::Tuner(with_workers(fn<trains_and_dies>, 3), options).fit()[0];
  ASSERT_EQ(trial.error, std::nullopt);
  EXPECT_EQ(steps_of(trial).size(), 40U);
  const train::Result inner = train::Result::from_directory(trial.path / "inner");
  EXPECT_EQ(inner.best_checkpoints.back().status, train::ReportedCheckpointStatus::validated);
  EXPECT_EQ(inner.best_checkpoints.back().metrics.get<std::int64_t>("validated_step"), 40);
}

TEST(TrainInTrial, ATrialWithoutBundlesForWorkersIsToldWhatToDo) {
  const TemporaryDirectory storage;
  const tune::Result trial = tune::Tuner(fn<trains>, options_of(storage.path(), {{"steps", 3}})).fit()[0];
  ASSERT_TRUE(trial.error);
  EXPECT_THAT(*trial.error, AllOf(HasSubstr("cannot start workers of its own"), HasSubstr("PlacementGroup")));
}

TEST(TrainInTrial, MoreWorkersThanItsBundlesAreRefused) {
  const TemporaryDirectory storage;
  const tune::Result trial =
      tune::Tuner(with_workers(fn<trains>), options_of(storage.path(), {{"steps", 3}, {"workers", 3}})).fit()[0];
  ASSERT_TRUE(trial.error);
  EXPECT_THAT(*trial.error, AllOf(HasSubstr("3 workers need more than"), HasSubstr("2")));
}

[[maybe_unused]] const bool trains_until_killed = register_scenario("trains until killed", [] {
  tune::Tuner(with_workers(fn<trains>),
              options_of(std::getenv("CADRE_TEST_STORAGE"), {{"steps", 150}, {"lr", tune::grid_search({1, 2})}}))
      .fit();
  return 0;
});

TEST(TrainInTrial, AnExperimentThatIsKilledGoesOnWithItsRuns) {
  const TemporaryDirectory storage;
  const fs::path experiment = storage.path() / "nested";
  {
    ScenarioProcess process("trains until killed", {}, {"CADRE_TEST_STORAGE=" + storage.path().string()});
    const auto has_checkpoint = [&] {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(experiment, none)) {
        if (fs::exists(entry.path() / "checkpoint_000005", none)) return true;
      }
      return false;
    };
    while (!has_checkpoint()) ::usleep(10'000);
    ::kill(process.process(), SIGKILL);
    process.wait();
  }
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  for (const tune::Result& trial : results) {
    ASSERT_EQ(trial.error, std::nullopt);
    EXPECT_EQ(steps_of(trial).size(), 150U);
    EXPECT_EQ(trial.metrics.get<std::int64_t>("step"), 150);
  }
}

TEST(TrainInTrial, ARunOfATrialIsNotContinuedByItself) {
  const TemporaryDirectory storage;
  const tune::Result trial = tune::Tuner(with_workers(fn<trains>), options_of(storage.path(), {{"steps", 2}})).fit()[0];
  EXPECT_THAT(message_of<InvalidArgument>([&] { train::Trainer::restore(trial.path / "inner"); }),
              AllOf(HasSubstr("a trial"), HasSubstr("Tuner::restore")));
}

}  // namespace
}  // namespace cadre::system_tests
