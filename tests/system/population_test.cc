// Populations that are larger than the machine: which trials run, which wait, and on which GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/json.h"
#include "cadre/tune.h"
#include "scenario.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

namespace fs = std::filesystem;
using cadre::test_support::TemporaryDirectory;

constexpr std::int64_t kInterval = 5;
constexpr std::int64_t kSteps = 20;

void counts_up(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "step") >> step;
  const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto pause = std::chrono::milliseconds(config.get<int>("milliseconds", 0));
  for (++step;; ++step) {
    std::this_thread::sleep_for(pause);
    tune::report({{"score", config.get<double>("skill") * static_cast<double>(step)},
                  {"devices", devices == nullptr ? "none" : devices}},
                 [&](const fs::path& directory) { std::ofstream(directory / "step") << step; });
  }
}

tune::TunerOptions population(const TemporaryDirectory& storage, std::int64_t trials) {
  return {.param_space = {{"skill", tune::uniform(0, 1)}},
          .tune_config = {.num_samples = trials,
                          .scheduler =
                              tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                                            .metric = tune::maximize("score"),
                                                            .perturbation_interval = kInterval,
                                                            .hyperparam_mutations = {{"skill", tune::uniform(0, 1)}}}},
          .run_config = {.name = "population",
                         .storage_path = storage.path(),
                         .stop = {{"training_iteration", kSteps}},
                         .checkpoint_config = {.num_to_keep = 1},
                         .verbose = 0}};
}

tune::PopulationBasedTraining& pbt_of(tune::TunerOptions& options) {
  return options.tune_config.scheduler.get<tune::PopulationBasedTraining>();
}

// An experiment's number of decisions by kind, and the trial of each result, in the order of the store.
struct Course {
  std::map<std::string, int> decisions;
  std::vector<std::int64_t> reports;
};

Course course_of(const fs::path& experiment) {
  Course course;
  store::ExperimentStore::open(experiment)
      .visit({.result = [&](const store::ResultRow& row) { course.reports.push_back(row.trial); },
              .event = [](const store::EventRow&) {},
              .decision = [&](const store::DecisionRow& row) { ++course.decisions[row.kind]; }});
  return course;
}

// Reads the experiment's results when the first trial starts, as another program could.
class Onlooker final : public tune::Callback {
 public:
  explicit Onlooker(fs::path experiment) : experiment_(std::move(experiment)) {}
  void on_trial_start(std::int64_t, const tune::TrialList&, const tune::TrialInfo&) override {
    if (!statuses.empty()) return;
    for (const tune::Result& result : tune::ResultGrid::from_directory(experiment_)) statuses.push_back(result.status);
  }

  std::vector<tune::TrialStatus> statuses;

 private:
  fs::path experiment_;
};

TEST(Population, TrialsThatHaveNotRunYetAreAmongTheResults) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = population(storage, 6);
  const auto onlooker = std::make_shared<Onlooker>(storage / "population");
  options.run_config.callbacks.push_back(onlooker);
  tune::Tuner(fn<counts_up>, options).fit();
  using enum tune::TrialStatus;
  EXPECT_THAT(onlooker->statuses, ::testing::ElementsAre(running, running, running, running, pending, pending));
}

TEST(Population, SixteenTrialsOnFourSlotsAdvanceEvenlyAndNobodyIsRestarted) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = population(storage, 16);
  pbt_of(options).quantile_fraction = 0;  // no exploits
  const tune::ResultGrid results = tune::Tuner(fn<counts_up>, options).fit();
  EXPECT_EQ(results.num_terminated(), 16u) << ::testing::PrintToString(results.errors());
  Course course = course_of(results.experiment_path());
  EXPECT_EQ(course.decisions["launch"], 16);
  EXPECT_EQ(course.decisions["pause"], 16 * (kSteps / kInterval - 1));
  // A trial that begins a quantum has done at most one more quantum than any other trial.
  std::map<std::int64_t, std::int64_t> steps;
  for (std::int64_t trial = 0; trial < 16; ++trial) steps[trial] = 0;
  for (const std::int64_t trial : course.reports) {
    const std::int64_t quanta = steps[trial]++ / kInterval;
    for (const auto& [other, done] : steps)
      ASSERT_LE(quanta, done / kInterval + 1) << trial << " is ahead of " << other;
  }
}

TEST(Population, WithExploitsOnlyThoseWhoExploitAreRestarted) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<counts_up>, population(storage, 16)).fit();
  EXPECT_EQ(results.num_terminated(), 16u) << ::testing::PrintToString(results.errors());
  Course course = course_of(results.experiment_path());
  EXPECT_GT(course.decisions["exploit"], 0);
  EXPECT_EQ(course.decisions["launch"], 16 + course.decisions["exploit"]);
}

TEST(Population, WorkersThatWaitGiveTheirMemoryBackWhenItRunsShort) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = population(storage, 8);
  pbt_of(options).quantile_fraction = 0;
  options.param_space.emplace_back("milliseconds", 50);
  options.tune_config.parking.min_free_memory = 1;  // more than is ever free
  const tune::ResultGrid results = tune::Tuner(fn<counts_up>, options).fit();
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  Course course = course_of(results.experiment_path());
  EXPECT_GT(course.decisions["unpark"], 0);
  EXPECT_EQ(course.decisions["launch"], 8 + course.decisions["unpark"]);
  for (const tune::Result& result : results) {
    const std::vector<Metrics> history = result.metrics_history();
    ASSERT_EQ(history.size(), kSteps) << result.trial_id;
    for (std::size_t i = 0; i < history.size(); ++i)
      EXPECT_EQ(history[i].get<std::size_t>("training_iteration"), i + 1);
  }
}

TEST(Population, OneOfSixtyNeedsMoreOpenFilesThanASmallLimitAllows) {
  ScenarioProcess process("sixty live trials", {few_open_files});
  EXPECT_EQ(process.line(), "60 trials terminated");
  EXPECT_EQ(process.wait(), 0);
}
[[maybe_unused]] const bool sixty_live_trials = register_scenario("sixty live trials", [] {
  const TemporaryDirectory storage;
  tune::TunerOptions options = population(storage, 60);
  pbt_of(options).synch = true;  // all trials wait for each other
  const tune::ResultGrid results = tune::Tuner(fn<counts_up>, options).fit();
  say(std::to_string(results.num_terminated()) + " trials terminated");
  return 0;
});

TEST(Population, SharesOfTwoGpusAreFilledOneAfterTheOther) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = population(storage, 8);
  const auto trainable = tune::with_resources(fn<counts_up>, {.cpus = 0.5, .gpus = 0.5});
  const tune::ResultGrid results = tune::Tuner(trainable, options).fit();
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  std::set<std::string> devices;
  for (const tune::Result& result : results) {
    for (const Metrics& metrics : result.metrics_history()) devices.insert(metrics.get<std::string>("devices"));
  }
  EXPECT_THAT(devices, ::testing::ElementsAre("0", "1"));
}

TEST(Population, WhoAsksForNoGpuSeesNoneAndWhoAsksForTwoSeesBoth) {
  for (const auto& [gpus, devices] : {std::pair{0.0, ""}, {2.0, "0,1"}}) {
    const TemporaryDirectory storage;
    const auto trainable = tune::with_resources(fn<counts_up>, {.cpus = 1, .gpus = gpus});
    const tune::ResultGrid results = tune::Tuner(trainable, population(storage, 2)).fit();
    for (const tune::Result& result : results) EXPECT_EQ(result.metrics.get<std::string>("devices"), devices);
  }
}

}  // namespace
}  // namespace cadre::system_tests
