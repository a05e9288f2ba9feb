// Experiments that go on with other options, with real workers and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cadre/tune.h"
#include "scenario.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

namespace fs = std::filesystem;
using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// Adds its rate in each step. Its checkpoint has the sum and the number of steps that were computed for it.
void adds(const Config& config) {
  std::int64_t step = 0;
  double sum = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step >> sum;
  while (true) {
    ++step;
    sum += config.get<double>("rate");
    if (config.contains("wait_us")) ::usleep(config.get<useconds_t>("wait_us"));
    tune::report({{"sum", sum}, {"step", step}}, [&](const fs::path& directory) {
      std::ofstream file(directory / "state");
      file.precision(17);
      file << step << ' ' << sum;
    });
  }
}

tune::TunerOptions options_in(const fs::path& storage, std::int64_t samples, double iterations) {
  return {.param_space = {{"rate", tune::uniform(0.1, 1)}},
          .tune_config = {.metric = tune::maximize("sum"), .num_samples = samples},
          .run_config = {
              .name = "it", .storage_path = storage, .stop = {{"training_iteration", iterations}}, .verbose = 0}};
}

std::vector<double> column(const tune::ResultGrid& grid, const std::string& name) {
  std::vector<double> values;
  for (const tune::Result& trial : grid) values.push_back(trial.metrics.get<double>(name));
  return values;
}

std::size_t lines_in(const fs::path& file) {
  const std::string text = content_of(file);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(Extension, AnExtendedExperimentEndsAsOneThatWasBegunSo) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<adds>, options_in(storage.path(), 3, 5)).fit();
  const tune::Extension longer{.num_samples = 6, .stop = tune::Stop{{"training_iteration", 9}}};
  const tune::ResultGrid extended = tune::Tuner::restore(storage / "it", {.extend = longer}).fit();
  const TemporaryDirectory other;
  const tune::ResultGrid at_once = tune::Tuner(fn<adds>, options_in(other.path(), 6, 9)).fit();
  ASSERT_EQ(extended.size(), 6U);
  EXPECT_EQ(column(extended, "sum"), column(at_once, "sum"));
  EXPECT_THAT(column(extended, "step"), Each(9));
  for (const tune::Result& trial : extended) {
    EXPECT_EQ(trial.metrics_history().size(), 9U);
    EXPECT_EQ(lines_in(trial.path / "result.json"), 9U);
    EXPECT_EQ(lines_in(trial.path / "progress.csv"), 10U);
    EXPECT_EQ(trial.attempts, std::stoi(trial.trial_id) < 3 ? 2 : 1);
  }
  EXPECT_EQ(extended.summary().options.get<Dict>("tune_config"), at_once.summary().options.get<Dict>("tune_config"));
  EXPECT_EQ(extended.summary().options.get<Dict>("run_config"), at_once.summary().options.get<Dict>("run_config"));
}

TEST(Extension, LaterRestoresGoOnWithIt) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<adds>, options_in(storage.path(), 2, 3)).fit();
  tune::Tuner::restore(storage / "it", {.extend = {.stop = tune::Stop{{"training_iteration", 5}}}}).fit();
  EXPECT_THAT(column(tune::Tuner::restore(storage / "it").fit(), "step"), Each(5));
  const tune::ResultGrid again =
      tune::Tuner::restore(storage / "it",
                           {.extend = {.num_samples = 3, .stop = tune::Stop{{"training_iteration", 7}}}})
          .fit();
  EXPECT_EQ(again.size(), 3U);
  EXPECT_THAT(column(again, "step"), Each(7));
}

// The program that began the experiment may be started again, and one that knows of the extension, too.
TEST(Extension, AProgramContinuesItWithTheFirstOptionsAndWithThePresentOnes) {
  const TemporaryDirectory storage;
  const tune::TunerOptions first = options_in(storage.path(), 2, 3);
  tune::Tuner(fn<adds>, first).fit();
  const tune::RestoreOptions restore{.extend = {.num_samples = 3, .stop = tune::Stop{{"training_iteration", 5}}}};
  for (int i = 0; i < 2; ++i) {
    const tune::ResultGrid extended = tune::Tuner::restore(storage / "it", fn<adds>, first, restore).fit();
    EXPECT_EQ(extended.size(), 3U);
    EXPECT_THAT(column(extended, "step"), Each(5));
  }
  EXPECT_EQ(tune::Tuner::restore(storage / "it", fn<adds>, first).fit().size(), 3U);
  const tune::TunerOptions present = options_in(storage.path(), 3, 5);
  EXPECT_EQ(tune::Tuner::restore(storage / "it", fn<adds>, present).fit().size(), 3U);
  tune::TunerOptions automatic = first;
  automatic.run_config.if_exists = IfExists::restore;
  EXPECT_EQ(tune::Tuner(fn<adds>, automatic).fit().size(), 3U);
  const tune::TunerOptions others = options_in(storage.path(), 4, 5);
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner::restore(storage / "it", fn<adds>, others); }),
              AllOf(HasSubstr("tune_config/num_samples"), HasSubstr("3"), HasSubstr("4")));
}

TEST(Extension, FaultsAreNamedBeforeAnythingChanges) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<adds>, options_in(storage.path(), 4, 2)).fit();
  const auto message = [&](const tune::Extension& extension) {
    return message_of<InvalidArgument>([&] { tune::Tuner::restore(storage / "it", {.extend = extension}).fit(); });
  };
  EXPECT_THAT(message({.num_samples = 3}), HasSubstr("num_samples is 3, and the experiment has 4 samples already"));
  EXPECT_THAT(message({.num_samples = 0}), HasSubstr("num_samples"));
  EXPECT_THAT(message({.stop = tune::Stop{{"some_metric", 3}}}), HasSubstr("some_metric"));
  EXPECT_THAT(message({.time_budget = tune::Seconds(-1)}), HasSubstr("time_budget"));
  EXPECT_THAT(message({.param_space = tune::Space{{"rate", tune::uniform(2, 1)}},
                       .searcher = tune::TPE{.n_startup_trials = -1}}),
              HasSubstr("n_startup_trials"));
  EXPECT_THAT(message({.scheduler = tune::ASHAScheduler{.max_t = -1}}), HasSubstr("max_t"));
  EXPECT_EQ(tune::Tuner::restore(storage / "it", fn<adds>, options_in(storage.path(), 4, 2)).fit().size(), 4U);
}

TEST(Extension, ALostCheckpointOfATrialThatGoesOnIsNoticed) {
  const TemporaryDirectory storage;
  const tune::ResultGrid before = tune::Tuner(fn<adds>, options_in(storage.path(), 1, 4)).fit();
  ASSERT_TRUE(before[0].checkpoint);
  std::ofstream(before[0].checkpoint->path() / "state") << "9 1000";
  const tune::ResultGrid extended =
      tune::Tuner::restore(storage / "it", {.extend = {.stop = tune::Stop{{"training_iteration", 6}}}}).fit();
  EXPECT_EQ(column(extended, "step"), std::vector<double>{6});  // from the checkpoint before
  EXPECT_LT(column(extended, "sum")[0], 6.1);
}

void weighs(const Config& config) {
  while (true) tune::report({{"weight", static_cast<std::int64_t>(get_object(config, "data").text().size())}});
}

TEST(Extension, ObjectsOfAnEndedExperimentComeFromTheProgram) {
  const TemporaryDirectory storage;
  const auto options = [&](const ObjectRef& data) {
    tune::TunerOptions made = options_in(storage.path(), 1, 2);
    made.param_space = {{"data", data}};
    made.tune_config.metric = {};
    return made;
  };
  {
    const ObjectRef data = put("12345");
    tune::Tuner(fn<weighs>, options(data)).fit();
  }
  const tune::RestoreOptions restore{.extend = {.num_samples = 2, .stop = tune::Stop{{"training_iteration", 3}}}};
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(storage / "it", restore).fit(); }),
              HasSubstr("param_space/data"));
  const ObjectRef data = put("12345");
  const tune::ResultGrid extended = tune::Tuner::restore(storage / "it", fn<weighs>, options(data), restore).fit();
  EXPECT_EQ(column(extended, "weight"), (std::vector<double>{5, 5}));
  EXPECT_EQ(extended[0].metrics_history().size(), 3U);
}

const bool extension_runs = register_scenario("extension runs", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  say("begins");
  tune::RestoreOptions restore;
  if (std::getenv("CADRE_TEST_EXTENDS") != nullptr)
    restore.extend = {.num_samples = 8,
                      .stop = tune::Stop{{"training_iteration", 40}},
                      .param_space = tune::Space{{"rate", tune::uniform(3, 4)}, {"wait_us", 500}},
                      .scheduler = tune::ASHAScheduler{.max_t = 40, .grace_period = 10}};
  tune::Tuner::restore(storage / "it", restore).fit();
  return 0;
});

// Kills come before the event is in the store and after it, before the first snapshot and after it.
TEST(Extension, AKilledExtensionGoesOnAndEndsAsOneThatWasNot) {
  std::vector<std::string> configs;
  for (const bool kills : {false, true}) {
    const TemporaryDirectory storage;
    ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
    tune::Tuner(fn<adds>, options_in(storage.path(), 4, 10)).fit();
    bool extends = true;  // until the extension is in the store
    for (int i = 0; kills && i < 8; ++i) {
      extends ? ::setenv("CADRE_TEST_EXTENDS", "1", 1) : ::unsetenv("CADRE_TEST_EXTENDS");
      ScenarioProcess process("extension runs");
      process.line();
      ::usleep(static_cast<useconds_t>(2'000 + 6'000 * i * i));
      ::kill(process.process(), SIGKILL);
      process.wait();
      const Config present = tune::ResultGrid::from_directory(storage / "it").summary().options;
      extends = present.at("tune_config/num_samples") == Value(4);
    }
    ::setenv("CADRE_TEST_EXTENDS", "1", 1);
    ScenarioProcess process("extension runs");
    EXPECT_EQ(process.wait(), 0);
    const tune::ResultGrid results = tune::ResultGrid::from_directory(storage / "it");
    EXPECT_EQ(results.size(), 8U);
    for (const tune::Result& trial : results) {
      configs.resize(results.size());
      std::string& config = configs[static_cast<std::size_t>(std::stoi(trial.trial_id))];
      const std::string now = to_json(trial.config.dict());
      if (!config.empty()) EXPECT_EQ(now, config);
      config = now;
      // Each step once, in order.
      std::vector<std::int64_t> counted;
      for (const Metrics& result : trial.metrics_history()) counted.push_back(result.get<std::int64_t>("step"));
      for (std::size_t i = 0; i < counted.size(); ++i) EXPECT_EQ(counted[i], static_cast<std::int64_t>(i + 1));
    }
    EXPECT_GT(results[7].config.get<double>("rate"), 2.9);
    EXPECT_LT(results[3].config.get<double>("rate"), 1.1);
  }
}

}  // namespace
}  // namespace cadre::system_tests
