// Trainables that write checkpoints on request (classes, and functions that offer them): the order of method calls, and
// the checkpoints that result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- trainables

void leave_call(const std::string& name) {
  std::ofstream(tune::get_context().get_trial_dir() / "calls", std::ios::app) << name << std::endl;
}

void write_score(const fs::path& directory, double score) {
  std::ofstream file(directory / "score");
  file.precision(17);
  file << score;
}

// Learns at a speed set by its lr; its whole state is in its checkpoints. Appends each method call to the file "calls".
class Counter : public tune::ClassTrainable {
 public:
  void setup(const Config& config) override {
    call("setup");
    lr_ = config.get<double>("lr");
  }
  Metrics step() override {
    call("step " + std::to_string(training_iteration() + 1));
    const std::int64_t iteration = training_iteration() + 1;
    score_ += lr_ * (1 - score_) / 10;
    if (iteration == get_config().get<std::int64_t>("throws_at", 0)) throw std::runtime_error("out of luck");
    Metrics result{{"score", score_}, {"lr", lr_}, {"pid", ::getpid()}};
    if (iteration == get_config().get<std::int64_t>("saves_at", 0)) result.set(tune::SHOULD_CHECKPOINT, true);
    if (iteration == get_config().get<std::int64_t>("done_at", 0)) result.set(tune::DONE, true);
    return result;
  }
  void save_checkpoint(const fs::path& directory) override {
    call("save");
    write_score(directory, score_);
  }
  void load_checkpoint(const fs::path& directory) override {
    call("load");
    std::ifstream(directory / "score") >> score_;
  }
  void cleanup() override { call("cleanup"); }

 protected:
  static void call(const std::string& name) { leave_call(name); }
  double lr_ = 0;
  double score_ = 0;
};

// Does the same as a function, which offers a checkpoint with every result.
void count(const Config& config) {
  const struct Cleanup {
    ~Cleanup() { leave_call("cleanup"); }
  } cleanup;
  leave_call("setup");
  double score = 0;
  std::int64_t iteration = 1;
  if (const auto checkpoint = tune::get_checkpoint()) {
    leave_call("load");
    std::ifstream(checkpoint->path() / "score") >> score;
    std::ifstream(checkpoint->path() / "iteration") >> iteration;
  }
  for (;; ++iteration) {
    leave_call("step " + std::to_string(iteration));
    score += config.get<double>("lr") * (1 - score) / 10;
    if (iteration == config.get<std::int64_t>("throws_at", 0)) throw std::runtime_error("out of luck");
    if (iteration == config.get<std::int64_t>("returns_after", 0) + 1 && iteration > 1) return;
    Metrics result{{"score", score}, {"lr", config.get<double>("lr")}, {"pid", ::getpid()}};
    if (iteration == config.get<std::int64_t>("saves_at", 0)) result.set(tune::SHOULD_CHECKPOINT, true);
    if (iteration == config.get<std::int64_t>("done_at", 0)) result.set(tune::DONE, true);
    tune::report(result, [&](const fs::path& directory) {
      leave_call("save");
      write_score(directory, score);
      std::ofstream(directory / "iteration") << iteration + 1;
    });
  }
}

class Resettable : public Counter {
 public:
  bool reset_config(const Config& config) override {
    call("reset");
    lr_ = config.get<double>("lr");
    return lr_ < config.get<double>("largest_reset", 2);
  }
};

class Unsaved : public tune::ClassTrainable {
 public:
  Metrics step() override { return {{"score", 1}, {tune::SHOULD_CHECKPOINT, true}}; }
};

class WritesNothing : public Unsaved {
 public:
  void save_checkpoint(const fs::path&) override {}
  void load_checkpoint(const fs::path&) override {}
};

class SavesOnly : public Unsaved {
 public:
  void save_checkpoint(const fs::path&) override {}
};

// ---- experiments

std::vector<std::string> calls_of(const tune::Result& trial) {
  std::ifstream file(trial.path / "calls");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::set<std::int64_t> saved_iterations(const tune::Result& trial) {
  std::set<std::int64_t> iterations;
  for (const auto& [checkpoint, metrics] : trial.best_checkpoints) {
    EXPECT_TRUE(fs::exists(checkpoint.path() / "score")) << checkpoint.path();
    iterations.insert(metrics.get<std::int64_t>(tune::TRAINING_ITERATION));
  }
  return iterations;
}

tune::TunerOptions options_of(const fs::path& storage, double iterations, tune::Space space = {}) {
  space.emplace_back("lr", 0.5);
  return {
      .param_space = std::move(space),
      .run_config = {
          .name = "classes", .storage_path = storage, .stop = {{tune::TRAINING_ITERATION, iterations}}, .verbose = 0}};
}

// Returns options of Population Based Training without a checkpoint interval of the trainable's own.
tune::TunerOptions pbt_options(const fs::path& storage, bool synch) {
  return {.param_space = {{"lr", tune::uniform(0.01, 1)}},
          .tune_config = {.num_samples = 6,
                          .scheduler =
                              tune::PopulationBasedTraining{.time_attr = tune::TRAINING_ITERATION,
                                                            .metric = tune::maximize("score"),
                                                            .perturbation_interval = 4,
                                                            .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}},
                                                            .synch = synch},
                          .seed = 3},
          .run_config = {
              .name = "population", .storage_path = storage, .stop = {{tune::TRAINING_ITERATION, 24}}, .verbose = 0}};
}

tune::Result run_one(tune::Trainable trainable, tune::TunerOptions options) {
  return tune::Tuner(std::move(trainable), std::move(options)).fit()[0];
}

std::string error_of(tune::Trainable trainable, tune::TunerOptions options) {
  return run_one(std::move(trainable), std::move(options)).error.value_or("");
}

// Tests with a class, and with a function that is asked for checkpoints in the same way.
class WhatCanBeAsked : public ::testing::TestWithParam<bool> {
 protected:
  static tune::Trainable trainable() { return GetParam() ? tune::trainable<Counter>() : fn<count>; }
  // Sets checkpoint_frequency to 0 for the function, which would save every result by default.
  static tune::TunerOptions asked(tune::TunerOptions options) {
    auto& frequency = options.run_config.checkpoint_config.checkpoint_frequency;
    if (!GetParam() && !frequency) frequency = 0;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, WhatCanBeAsked, ::testing::Bool(),
                         [](const auto& is_class) { return is_class.param ? "Class" : "Function"; });

TEST_P(WhatCanBeAsked, MethodsAreCalledInOrderAndACheckpointIsLeftAtTheEnd) {
  const TemporaryDirectory storage;
  const tune::Result trial = run_one(trainable(), asked(options_of(storage.path(), 2)));
  EXPECT_THAT(calls_of(trial), ElementsAre("setup", "step 1", "step 2", "save", "cleanup"));
  EXPECT_THAT(saved_iterations(trial), ElementsAre(2));
  EXPECT_EQ(trial.num_results(), 2U);
  EXPECT_EQ(trial.metrics.get<std::int64_t>(tune::TRAINING_ITERATION), 2);
}

TEST_P(WhatCanBeAsked, ACheckpointIsMadeEveryCheckpointFrequencyIterations) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 8);
  options.run_config.checkpoint_config.checkpoint_frequency = 3;
  EXPECT_THAT(saved_iterations(run_one(trainable(), asked(options))), ElementsAre(3, 6, 8));
  options.run_config.name = "not at the end";
  options.run_config.checkpoint_config.checkpoint_at_end = false;
  EXPECT_THAT(saved_iterations(run_one(trainable(), asked(options))), ElementsAre(3, 6));
}

TEST_P(WhatCanBeAsked, AResultCanAskForACheckpoint) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 8, {{"saves_at", 5}});
  options.run_config.checkpoint_config.checkpoint_at_end = false;
  const tune::Result trial = run_one(trainable(), asked(options));
  EXPECT_THAT(saved_iterations(trial), ElementsAre(5));
  EXPECT_EQ(trial.best_checkpoints.at(0).second.get<bool>(tune::SHOULD_CHECKPOINT), true);
}

TEST_P(WhatCanBeAsked, AResultThatSaysDoneIsTheLastAndIsSavedOnce) {
  const TemporaryDirectory storage;
  const tune::Result trial = run_one(trainable(), asked(options_of(storage.path(), 100, {{"done_at", 3}})));
  EXPECT_THAT(calls_of(trial), ElementsAre("setup", "step 1", "step 2", "step 3", "save", "cleanup"));
  EXPECT_THAT(saved_iterations(trial), ElementsAre(3));
}

// Each mechanism leaves a checkpoint to continue from.
TEST_P(WhatCanBeAsked, AFailedTrialGoesOnFromEachCheckpoint) {
  const TemporaryDirectory storage;
  tune::TunerOptions options =
      options_of(storage.path(), 9, {{"throws_at", tune::grid_search({4, 6, 7})}, {"saves_at", 5}});
  options.run_config.checkpoint_config.checkpoint_frequency = 3;
  const tune::ResultGrid failed = tune::Tuner(trainable(), asked(options)).fit();
  ASSERT_EQ(failed.num_errors(), 3U);
  for (const tune::Result& trial : failed) EXPECT_THAT(calls_of(trial), Contains("cleanup"));
  const tune::ResultGrid again =
      tune::Tuner::restore(failed.experiment_path(), tune::RestoreOptions{.resume_errored = true}).fit();
  EXPECT_EQ(calls_of(again[0]).at(8), "load");
  EXPECT_THAT(calls_of(again[0]), Contains("step 4").Times(2));
  EXPECT_THAT(calls_of(again[1]), AllOf(Contains("step 5").Times(1), Contains("step 6").Times(2)));
  EXPECT_THAT(calls_of(again[2]), AllOf(Contains("step 6").Times(1), Contains("step 7").Times(2)));
}

class ClassPopulation : public ::testing::TestWithParam<bool> {};

TEST_P(WhatCanBeAsked, PopulationBasedTrainingAsksForTheCheckpointsThatItNeeds) {
  for (const bool synch : {false, true}) {
    const TemporaryDirectory storage;
    const tune::ResultGrid results = tune::Tuner(trainable(), asked(pbt_options(storage.path(), synch))).fit();
    EXPECT_EQ(results.num_terminated(), 6U) << ::testing::PrintToString(results.errors());
    std::size_t exploits = 0;
    for (const tune::Result& trial : results) exploits += trial.exploits.size();
    EXPECT_GT(exploits, 0U);
  }
}

TEST(OfferedCheckpoints, EveryResultIsSavedUnlessAFrequencySaysOtherwise) {
  const TemporaryDirectory storage;
  const tune::Result trial = run_one(fn<count>, options_of(storage.path(), 3));
  EXPECT_THAT(calls_of(trial), ElementsAre("setup", "step 1", "save", "step 2", "save", "step 3", "save", "cleanup"));
  EXPECT_THAT(saved_iterations(trial), ElementsAre(1, 2, 3));
}

TEST(OfferedCheckpoints, WhatIsOfferedWithTheLastResultBeforeAReturnIsNotWrittenAndThatIsSaid) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 9, {{"returns_after", 5}});
  options.run_config.checkpoint_config.checkpoint_frequency = 3;
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  const tune::Result trial = run_one(fn<count>, options);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStdout(),
      HasSubstr("Warning: trial 00000 returned after iteration 5, and its checkpoint of that iteration was never "
                "written: report \"done\" as true with the last result"));
  EXPECT_THAT(saved_iterations(trial), ElementsAre(3));
}

TEST_P(ClassPopulation, APerturbationDoesNotRestartTheProcess) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(tune::trainable<Resettable>(), pbt_options(storage.path(), GetParam())).fit();
  EXPECT_EQ(results.num_terminated(), 6U) << ::testing::PrintToString(results.errors());
  std::size_t exploits = 0;
  for (const tune::Result& trial : results) {
    exploits += trial.exploits.size();
    EXPECT_EQ(trial.attempts, 1) << trial.trial_id;
    EXPECT_THAT(calls_of(trial), Contains("reset").Times(trial.exploits.size()));
    EXPECT_THAT(calls_of(trial), Contains("load").Times(trial.exploits.size()));
    EXPECT_THAT(calls_of(trial), Contains("cleanup").Times(1));
    std::set<std::int64_t> processes;
    for (const Metrics& row : trial.metrics_history()) processes.insert(row.get<std::int64_t>("pid"));
    EXPECT_EQ(processes.size(), 1U);
    EXPECT_EQ(trial.metrics.get<double>("lr"), trial.config.get<double>("lr"));
  }
  EXPECT_GT(exploits, 0U);
}

TEST_P(ClassPopulation, AClassThatCannotTakeAnotherConfigGetsANewProcess) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = pbt_options(storage.path(), GetParam());
  options.param_space.emplace_back("largest_reset", 0);
  const tune::ResultGrid results = tune::Tuner(tune::trainable<Resettable>(), options).fit();
  EXPECT_EQ(results.num_terminated(), 6U) << ::testing::PrintToString(results.errors());
  std::int64_t exploits = 0;
  for (const tune::Result& trial : results) {
    exploits += static_cast<std::int64_t>(trial.exploits.size());
    EXPECT_EQ(trial.attempts, 1 + static_cast<std::int64_t>(trial.exploits.size())) << trial.trial_id;
    EXPECT_EQ(trial.failures, 0) << trial.trial_id;
  }
  EXPECT_GT(exploits, 0);
}
INSTANTIATE_TEST_SUITE_P(Pbt, ClassPopulation, ::testing::Bool(),
                         [](const auto& synch) { return synch.param ? "Synchronous" : "Asynchronous"; });

// There are more trials than slots, and no process may be parked.
TEST_P(WhatCanBeAsked, ATrialThatCannotBeParkedIsSavedBeforeItsPause) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = pbt_options(storage.path(), false);
  options.tune_config.max_concurrent_trials = 2;
  options.tune_config.parking.max_workers = 0;
  options.tune_config.scheduler.get<tune::PopulationBasedTraining>().quantile_fraction = 0;  // no exploits
  const tune::ResultGrid results = tune::Tuner(trainable(), asked(options)).fit();
  EXPECT_EQ(results.num_terminated(), 6U) << ::testing::PrintToString(results.errors());
  for (const tune::Result& trial : results) {
    EXPECT_GT(trial.attempts, 1) << trial.trial_id;
    for (int step = 1; step <= 24; ++step) {
      EXPECT_THAT(calls_of(trial), Contains("step " + std::to_string(step)).Times(1)) << trial.trial_id;
    }
  }
}

// Sends SIGINT to its own process at the first result of iteration 10.
class Interrupter final : public tune::Callback {
 public:
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics& result) override {
    if (result.get<std::int64_t>(tune::TRAINING_ITERATION) == 10 && !std::exchange(sent_, true))
      ::kill(::getpid(), SIGINT);  // the second one would end the program
  }

 private:
  bool sent_ = false;
};

// Two trials are running then, between two checkpoints; the others are parked.
TEST_P(WhatCanBeAsked, AnInterruptionSavesEveryTrialWhereItIs) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = pbt_options(storage.path(), false);
  options.tune_config.max_concurrent_trials = 2;
  options.run_config.callbacks = {std::make_shared<Interrupter>()};
  options.tune_config.scheduler.get<tune::PopulationBasedTraining>().quantile_fraction = 0;  // no exploits
  EXPECT_THROW(tune::Tuner(trainable(), asked(options)).fit(), Interrupted);
  const tune::ResultGrid results = tune::Tuner::restore(storage / "population").fit();
  EXPECT_EQ(results.num_terminated(), 6U) << ::testing::PrintToString(results.errors());
  for (const tune::Result& trial : results) {
    EXPECT_EQ(trial.attempts, 2) << trial.trial_id;
    for (int step = 1; step <= 24; ++step) {
      EXPECT_THAT(calls_of(trial), Contains("step " + std::to_string(step)).Times(1)) << trial.trial_id;
    }
  }
}

TEST(ClassTrainable, WhatItsConfigNeedsAndItDoesNotHaveIsRefused) {
  const TemporaryDirectory storage;
  const auto message = [&](tune::Trainable trainable, auto change) {
    tune::TunerOptions options = options_of(storage.path(), 2);
    change(options);
    return message_of<InvalidArgument>([&] { tune::Tuner(std::move(trainable), std::move(options)); });
  };
  const auto every_iteration = [](tune::TunerOptions& options) {
    options.run_config.checkpoint_config.checkpoint_frequency = 1;
  };
  const auto at_end = [](tune::TunerOptions& options) {
    options.run_config.checkpoint_config.checkpoint_at_end = true;
  };
  const auto population = [&](tune::TunerOptions& options) { options = pbt_options(storage.path(), false); };
  const auto nothing = [](tune::TunerOptions&) {};
  EXPECT_THAT(message(tune::trainable<Unsaved>(), every_iteration),
              HasSubstr("checkpoint_config checkpoint_frequency: Unsaved has no save_checkpoint()"));
  EXPECT_THAT(message(tune::trainable<Unsaved>(), at_end), HasSubstr("checkpoint_at_end: Unsaved has no save"));
  EXPECT_THAT(message(tune::trainable<Unsaved>(), population), HasSubstr("scheduler: its trials continue from"));
  EXPECT_THAT(message(tune::trainable<SavesOnly>(), nothing),
              HasSubstr("SavesOnly has save_checkpoint() and not load_checkpoint(): both or none"));
  EXPECT_TRUE(fs::is_empty(storage.path()));
}

TEST(ClassTrainable, ACheckpointMethodThatIsMissingOrWritesNothingFailsItsTrial) {
  const TemporaryDirectory storage;
  EXPECT_THAT(error_of(tune::trainable<Unsaved>(), options_of(storage.path(), 2)),
              HasSubstr("should_checkpoint, and Unsaved has no save_checkpoint()"));
  tune::TunerOptions options = options_of(storage.path(), 2);
  options.run_config.name = "nothing";
  EXPECT_THAT(error_of(tune::trainable<WritesNothing>(), options),
              HasSubstr("save_checkpoint() of WritesNothing has written nothing into "));
}

}  // namespace
}  // namespace cadre::system_tests
