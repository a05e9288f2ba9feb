// Callbacks: which hooks are called, in which order, and how exceptions of callbacks are handled.
#include "cadre/tune/callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <thread>

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
using ::testing::Not;

// ---- trainables

class Walker : public tune::ClassTrainable {
 public:
  Metrics step() override {
    if (get_config().get<bool>("fails", false) && ++steps_ == 2 && !fs::exists(mark())) {
      std::ofstream(mark()) << "failed once";
      throw std::runtime_error("stumbled");
    }
    return {{"steps_taken", 10}};
  }
  void save_checkpoint(const fs::path& directory) override { std::ofstream(directory / "state") << "here"; }
  void load_checkpoint(const fs::path&) override {}

 private:
  static fs::path mark() { return tune::get_context().get_trial_dir() / "mark"; }
  std::int64_t steps_ = 0;
};

void reports_and_saves(const Config&) {
  for (int i = 1; i <= 3; ++i)
    tune::report({{"score", i}}, [](const fs::path& directory) { std::ofstream(directory / "state") << "here"; });
}

// ---- callbacks

// Records the name of each hook that is called.
class Recorder : public tune::Callback {
 public:
  void setup(const tune::ExperimentInfo& experiment) override {
    calls.push_back("setup " + std::to_string(experiment.total_num_samples));
  }
  void on_step_begin(std::int64_t iteration, const tune::TrialList&) override {
    in_step = true;
    EXPECT_EQ(iteration, iterations);
  }
  void on_step_end(std::int64_t iteration, const tune::TrialList&) override {
    in_step = false;
    EXPECT_EQ(iteration, ++iterations);
  }
  void on_trial_start(std::int64_t, const tune::TrialList& trials, const tune::TrialInfo& trial) override {
    note("start", trial);
    EXPECT_GT(trials.size(), 0U);
  }
  void on_trial_restore(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    note("restore", trial);
    EXPECT_TRUE(trial.checkpoint && fs::exists(trial.checkpoint->path() / "state"));
  }
  void on_trial_result(std::int64_t, const tune::TrialList& trials, const tune::TrialInfo& trial,
                       Metrics& result) override {
    const auto iteration = result.get<std::int64_t>(tune::TRAINING_ITERATION);
    note("result " + std::to_string(iteration), trial);
    EXPECT_EQ(trial.last_result.get<std::int64_t>(tune::TRAINING_ITERATION, 0), iteration - 1);
    EXPECT_EQ(trials[0].trial_id, "00000");
  }
  void on_checkpoint(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial,
                     const Checkpoint& checkpoint) override {
    note("checkpoint", trial);
    EXPECT_TRUE(fs::exists(checkpoint.path() / "state"));
  }
  void on_trial_save(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    note("save", trial);
  }
  void on_trial_complete(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    note("complete", trial);
    EXPECT_EQ(trial.status, tune::TrialStatus::terminated);
  }
  void on_trial_recover(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    note("recover", trial);
    EXPECT_THAT(trial.error, HasSubstr("stumbled"));
  }
  void on_trial_error(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    note("error", trial);
  }
  void on_experiment_end(const tune::TrialList&) override { calls.emplace_back("end"); }

  std::vector<std::string> calls;
  std::int64_t iterations = 0;
  bool in_step = false;

 private:
  void note(const std::string& hook, const tune::TrialInfo& trial) {
    EXPECT_TRUE(in_step) << hook;
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    EXPECT_TRUE(fs::exists(trial.path)) << hook;
    calls.push_back(hook);
  }
  std::thread::id thread_ = std::this_thread::get_id();
};

// Requests a checkpoint after every `each` steps taken; its state is the number of steps taken.
class SavesBySteps : public tune::Callback {
 public:
  explicit SavesBySteps(std::int64_t each) : each_(each) {}
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics& result) override {
    taken += result.get<std::int64_t>("steps_taken");
    result.set("steps_in_all", taken);
    if (taken % each_ == 0) result.set(tune::SHOULD_CHECKPOINT, true);
  }
  Value get_state() const override { return taken; }
  void set_state(const Value& state) override { taken = state.get<std::int64_t>(); }
  std::string name() const override { return "SavesBySteps"; }

  std::int64_t taken = 0;

 private:
  std::int64_t each_;
};

class Throws : public tune::Callback {
 public:
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics& result) override {
    ++calls;
    result.set("half_done", true);
    throw std::runtime_error("no more paper");
  }
  int calls = 0;
};

tune::TunerOptions options_of(const fs::path& storage, double iterations, tune::Callbacks callbacks) {
  return {.run_config = {.name = "called",
                         .storage_path = storage,
                         .stop = {{tune::TRAINING_ITERATION, iterations}},
                         .verbose = 0,
                         .callbacks = std::move(callbacks)}};
}

TEST(Callback, HooksOfAFunctionComeInOrder) {
  const TemporaryDirectory storage;
  const auto recorder = std::make_shared<Recorder>();
  tune::Tuner(fn<reports_and_saves>, options_of(storage.path(), 2, {recorder})).fit();
  EXPECT_THAT(recorder->calls, ElementsAre("setup 1", "start", "result 1", "checkpoint", "save", "result 2",
                                           "checkpoint", "save", "complete", "end"));
}

TEST(Callback, HooksOfAClassComeInOrder) {
  const TemporaryDirectory storage;
  const auto recorder = std::make_shared<Recorder>();
  tune::TunerOptions options = options_of(storage.path(), 2, {recorder});
  options.param_space = {{"fails", true}};
  options.run_config.checkpoint_config.checkpoint_frequency = 1;
  options.run_config.failure_config.max_failures = 1;
  tune::Tuner(tune::trainable<Walker>(), options).fit();
  EXPECT_THAT(recorder->calls, ElementsAre("setup 1", "start", "result 1", "checkpoint", "save", "recover", "start",
                                           "restore", "result 2", "checkpoint", "save", "complete", "end"));
}

TEST(Callback, AFailureForGoodIsTold) {
  const TemporaryDirectory storage;
  const auto recorder = std::make_shared<Recorder>();
  tune::TunerOptions options = options_of(storage.path(), 2, {recorder});
  options.param_space = {{"fails", true}};
  tune::Tuner(tune::trainable<Walker>(), options).fit();
  EXPECT_THAT(recorder->calls, ElementsAre("setup 1", "start", "result 1", "error", "end"));
}

TEST(Callback, ItCanAskForACheckpointAndChangeAResult) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 7, {std::make_shared<SavesBySteps>(30)});
  options.run_config.checkpoint_config.checkpoint_at_end = false;
  const tune::ResultGrid results = tune::Tuner(tune::trainable<Walker>(), options).fit();
  std::vector<std::int64_t> saved;
  for (const auto& [checkpoint, metrics] : results[0].best_checkpoints) {
    EXPECT_TRUE(fs::exists(checkpoint.path() / "state"));
    saved.push_back(metrics.get<std::int64_t>("steps_in_all"));
  }
  EXPECT_THAT(saved, ElementsAre(30, 60));
  EXPECT_EQ(results[0].metrics.get<std::int64_t>("steps_in_all"), 70);
  EXPECT_EQ(results[0].num_results(), 7U);
}

TEST(Callback, ItsStateGoesOnAfterARestore) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 5, {std::make_shared<SavesBySteps>(30)});
  options.param_space = {{"fails", true}};  // in its second step
  tune::Tuner(tune::trainable<Walker>(), options).fit();
  const auto again = std::make_shared<SavesBySteps>(30);
  const tune::ResultGrid results =
      tune::Tuner::restore(storage / "called", tune::RestoreOptions{.restart_errored = true, .callbacks = {again}})
          .fit();
  EXPECT_EQ(again->taken, 10 + 50) << "one result before the failure, five afterwards";
  EXPECT_EQ(results[0].metrics.get<std::int64_t>("steps_in_all"), 60);
}

TEST(Callback, OneThatThrowsIsReportedAndSwitchedOff) {
  const TemporaryDirectory storage;
  const auto throws = std::make_shared<Throws>();
  const auto recorder = std::make_shared<Recorder>();
  tune::TunerOptions options = options_of(storage.path(), 3, {throws, recorder});
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  const tune::ResultGrid results = tune::Tuner(tune::trainable<Walker>(), options).fit();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("Throws failed in on_trial_result, and is switched off"), HasSubstr("no more paper")));
  EXPECT_EQ(throws->calls, 1);
  EXPECT_EQ(results.num_terminated(), 1U);
  EXPECT_EQ(results[0].num_results(), 3U);
  EXPECT_FALSE(results[0].metrics_history().at(0).contains("half_done")) << "what it changed does not count";
  EXPECT_THAT(recorder->calls, Contains("complete"));
}

class ThrowsAtTheEnd : public tune::Callback {
 public:
  void on_experiment_end(const tune::TrialList&) override { throw std::runtime_error("no way out"); }
};

TEST(Callback, OneThatThrowsAtTheVeryEndIsReportedToo) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 1, {std::make_shared<ThrowsAtTheEnd>()});
  options.run_config.verbose = 1;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(tune::Tuner(tune::trainable<Walker>(), options).fit().num_terminated(), 1U);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("ThrowsAtTheEnd failed in on_experiment_end"), HasSubstr("no way out")));
}

TEST(Callback, ANullPointerIsRefused) {
  const TemporaryDirectory storage;
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { tune::Tuner(tune::trainable<Walker>(), options_of(storage.path(), 1, {nullptr})); }),
              HasSubstr("callbacks: one of them is a null pointer"));
}

TEST(Loggers, EachCanBeSwitchedOff) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 2, {});
  options.run_config.loggers = {.csv = false, .tensorboard = false};
  const tune::Result trial = tune::Tuner(tune::trainable<Walker>(), options).fit()[0];
  EXPECT_TRUE(fs::exists(trial.path / "result.json"));
  EXPECT_FALSE(fs::exists(trial.path / "progress.csv"));
  for (const auto& entry : fs::directory_iterator(trial.path))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("tfevents")));
}

// ---- ends of an experiment

void walks_for_ever(const Config&) {
  for (int i = 1;; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    tune::report({{"loss", 1.0 / i}});
  }
}

bool is_near_zero(const std::string&, const Metrics& result) { return result.get<double>("loss") < 0.3; }

TEST(Stop, ATimeBudgetEndsAllTrialsLikeAnyOther) {
  const TemporaryDirectory storage;
  const auto recorder = std::make_shared<Recorder>();
  tune::TunerOptions options = options_of(storage.path(), 1e9, {recorder});
  options.tune_config.num_samples = 8;  // more than there are slots
  options.tune_config.time_budget = std::chrono::milliseconds(200);
  const tune::ResultGrid results = tune::Tuner(fn<walks_for_ever>, options).fit();
  EXPECT_EQ(results.num_terminated(), results.size());
  EXPECT_THAT(recorder->calls, Contains("complete").Times(static_cast<int>(results.size())));
  EXPECT_EQ(results.summary().state, tune::ExperimentState::finished);
}

double parabola(const Config& config) {
  const double distance = config.get<double>("x") - 0.3;
  return distance * distance;
}

TEST(Stop, ASmallRegretEndsTheExperimentWhichSaysSo) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), 1e9, {});
  options.param_space = {{"x", tune::uniform(0, 1)}};
  options.tune_config = {.metric = tune::minimize("loss"), .num_samples = 200, .max_concurrent_trials = 2};
  options.run_config.stop = tune::RegretBoundTerminator{.error = tune::StaticError{0.2}};
  const tune::ResultGrid results = tune::Tuner(fn<parabola>, options).fit();
  EXPECT_GE(results.size(), 20U);
  EXPECT_LT(results.size(), 60U);
  EXPECT_EQ(results.num_terminated(), results.size());
  EXPECT_EQ(results.summary().state, tune::ExperimentState::finished);
  EXPECT_THAT(results.summary().stop_reason, testing::StartsWith("the regret of the best trial is at most "));
  EXPECT_EQ(tune::Tuner::restore(results.experiment_path()).fit().size(), results.size()) << "nothing is left to do";
  const tune::ResultGrid read = tune::ResultGrid::from_directory(results.experiment_path());
  EXPECT_EQ(read.summary().stop_reason, results.summary().stop_reason);
}

TEST(Stop, ThresholdsFromAboveFunctionsAndPlateausEndTrials) {
  const TemporaryDirectory storage;
  const auto results_until = [&](const char* name, tune::Stop stop) {
    tune::TunerOptions options = options_of(storage.path(), 1, {});
    options.run_config.name = name;
    options.run_config.stop = std::move(stop);
    return tune::Tuner(fn<walks_for_ever>, options).fit()[0].num_results();
  };
  EXPECT_EQ(results_until("threshold", {{"loss", tune::at_most(0.5)}}), 2U);
  EXPECT_EQ(results_until("function", fn<is_near_zero>), 4U);
  EXPECT_EQ(results_until("count", tune::MaximumIterationStopper{3}), 3U);
  EXPECT_EQ(
      results_until("either", tune::any_of(tune::Stop{{"loss", tune::at_most(0.5)}}, tune::MaximumIterationStopper{3})),
      2U);
  EXPECT_EQ(
      results_until("plateau", tune::ExperimentPlateauStopper{.metric = tune::minimize("loss"), .std = 10, .top = 5}),
      5U);
  EXPECT_LT(results_until("timeout", tune::TimeoutStopper{tune::Seconds(0.1)}), 1000U);
}

}  // namespace
}  // namespace cadre::system_tests
