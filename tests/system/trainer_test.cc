// Training runs with real workers: groups, reports, failures, and restores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cadre/train.h"
#include "cadre/train_callback.h"
#include "cadre/tune.h"
#include "scenario.h"
#include "store/experiment_reader.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "train/session.h"
#include "training.h"
#include "worker/group_backend.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// ---- Training functions

struct Optimizer {
  std::string type = "sgd";
};
struct Settings {
  double lr = 0.1;
  std::int64_t steps = 2;
  Optimizer optimizer = {};
};
Value says_its_settings(const Settings& settings) { return list(settings.lr, settings.steps, settings.optimizer.type); }

// Counts steps, saves the count with every report and returns 10 times the count plus the rank.
Value counts(const Config& config) {
  const auto steps = config.get<std::int64_t>("steps");
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) step = read_step(*checkpoint);
  while (step < steps) {
    ++step;
    if (rank() == config.get<std::int64_t>("failing_rank", -1) && step == config.get<std::int64_t>("fails_at", -1)) {
      if (!fs::exists(train::get_context().get_storage() / "failed")) {
        bear_witness("failed", "once");
        if (config.get<bool>("dies", false))
          ::kill(::getpid(), static_cast<int>(config.get<std::int64_t>("signal", SIGKILL)));
        throw std::runtime_error("out of luck");
      }
    }
    const Metrics metrics{{"step", step}, {"rank", rank()}};
    if (rank() == 0) {
      train::report(metrics, [&](const fs::path& directory) { write_step(directory, step); });
    } else {
      train::report(metrics);
    }
    bear_witness("witness", std::to_string(rank()) + " " + std::to_string(step));
  }
  return step * 10 + rank();
}

// Saves a part of the checkpoint in every rank, and one file in all ranks.
void saves_in_all_ranks(const Config&) {
  train::report({{"loss", 1}}, [](const fs::path& directory) {
    std::ofstream(directory / ("rank_" + std::to_string(rank()))) << rank();
    fs::create_directory(directory / "common");
    std::ofstream(directory / "common" / ("of_" + std::to_string(rank()))) << rank();
    std::ofstream(directory / "common" / "who") << rank();
  });
  bear_witness("sees_" + std::to_string(rank()), train::get_checkpoint()->path().filename());
}

void reports_unequally(const Config&) {
  train::report({{"loss", 1}});
  if (rank() == 0) train::report({{"loss", 2}});
}

void hangs_in_rank_1(const Config&) {
  train::report({{"loss", 1}});
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  train::report({{"loss", 2}});
}

Value knows_its_place(const Config& config) {
  const train::TrainContext context = train::get_context();
  train::barrier();
  const Value said = train::broadcast_from_rank_zero(list(context.get_world_rank() + 42, config.at("text")));
  bear_witness("place_" + std::to_string(rank()),
               std::to_string(context.get_world_size()) + " " + std::to_string(context.get_local_rank()) + " " +
                   std::to_string(context.get_local_world_size()) + " " + std::to_string(context.get_node_rank()) +
                   " " + context.get_experiment_name() + " " + to_json(said));
  return {};
}

// In the first attempt all ranks pass a barrier and rank 1 fails; in the second one rank 1 is late for the same
// barrier.
void meets_again() {
  const fs::path storage = train::get_context().get_storage();
  const bool again = fs::exists(storage / "failed");
  if (again && rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    bear_witness("late", "here");
  }
  train::barrier();
  if (again && !fs::exists(storage / "late")) throw std::runtime_error("rank 1 was not waited for");
  if (again) return;
  if (rank() == 0) std::this_thread::sleep_for(std::chrono::hours(1));
  bear_witness("failed", "once");
  throw std::runtime_error("out of luck");
}

std::int64_t meets_often() {
  for (int i = 0; i < 50; ++i) {
    train::barrier();
    train::broadcast_from_rank_zero(i);
  }
  return train::Session::current()->store()->size();
}

void misses_a_barrier() {
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  train::barrier();
}

void reports_what_cannot_be_stored() {
  try {
    train::report({{"good", 1}, {"large", std::string(2 << 20, 'x')}});
  } catch (const InvalidArgument& error) {
    bear_witness("refused_" + std::to_string(rank()), error.what());
  }
  train::report({{"good", 1}});
}

// ---- Reports and checkpoints

TEST(TrainerWithAStruct, ItsMembersAreTheKeysOfTheConfigAndKeepTheirDefaults) {
  const TemporaryDirectory storage;
  const Config config{{"steps", 5}, {"optimizer", {{"type", "adam"}}}};
  const train::Result result = train::Trainer(fn<says_its_settings>, options_in(storage.path(), 2, config)).fit();
  EXPECT_EQ(result.return_value, list(0.1, 5, "adam"));
}

TEST(TrainerWithAStruct, KeysAndTypesThatDoNotFitAreRefusedAllAtOnceBeforeAnythingRuns) {
  const TemporaryDirectory storage;
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                train::Trainer(fn<says_its_settings>, options_in(storage.path(), 1, {{"step", 5}, {"lr", "high"}}));
              }),
              AllOf(HasSubstr("train_loop_config \"step\": the struct that says_its_settings takes has no such member; "
                              "it has: lr, steps, optimizer"),
                    HasSubstr("says_its_settings cannot take it: key \"lr\": ")));
  EXPECT_TRUE(fs::is_empty(storage.path()));
}

TEST(Trainer, RunsTheFunctionInEveryRankAndKeepsWhatRankZeroReports) {
  const TemporaryDirectory storage;
  train::Trainer trainer(fn<counts>, options_in(storage.path(), 3, {{"steps", 4}}));
  const train::Result result = trainer.fit();
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(result.metrics.get<std::int64_t>("rank"), 0);
  EXPECT_EQ(result.return_value.get<std::int64_t>(), 40);
  EXPECT_EQ(result.error, std::nullopt);
  EXPECT_EQ(result.attempts, 1);
  EXPECT_EQ(result.path, storage / "run");
  ASSERT_TRUE(result.checkpoint);
  EXPECT_EQ(read_step(*result.checkpoint), 4);
  EXPECT_EQ(result.best_checkpoints.size(), 4u);
}

TEST(Trainer, CheckpointsOfAllRanksBecomeOne) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<saves_in_all_ranks>, options_in(storage.path(), 3)).fit();
  const fs::path checkpoint = result.checkpoint->path();
  for (const char* name : {"rank_0", "rank_1", "rank_2", "common/of_0", "common/of_1", "common/of_2"})
    EXPECT_EQ(content_of(checkpoint / name), std::string(name).substr(std::string(name).size() - 1)) << name;
  EXPECT_EQ(content_of(checkpoint / "common/who"), "0") << "that of the lowest rank stays";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(content_of(storage / "run" / ("sees_" + std::to_string(i))), "checkpoint_000000\n");
  for (const auto& entry : fs::directory_iterator(storage / "run"))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".reporting"))) << "of another rank";
}

TEST(Trainer, KeepsTheBestCheckpointsAndTheLatest) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 6}});
  options.run_config.checkpoint_config = {.num_to_keep = 2, .checkpoint_score_attribute = minimize("step")};
  const train::Result result = train::Trainer(fn<counts>, options).fit();
  std::vector<std::int64_t> kept;
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    EXPECT_TRUE(fs::exists(one.checkpoint.path() / "step"));
    kept.push_back(one.metrics.get<std::int64_t>("step"));
  }
  EXPECT_THAT(kept, ElementsAre(6, 2, 1)) << "best last; the latest is kept in any case";
  EXPECT_EQ(read_step(result.get_best_checkpoint(minimize("step"))), 1);
}

TEST(Trainer, AMetricThatCannotBeStoredIsNamedAtTheCallAndNothingIsLost) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<reports_what_cannot_be_stored>, options_in(storage.path(), 2)).fit();
  EXPECT_EQ(result.metrics_history.size(), 1u);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(content_of(storage / "run" / ("refused_" + std::to_string(i))), HasSubstr("\"large\""));
}

TEST(Trainer, EveryRankKnowsItsPlaceAndHearsRankZero) {
  const TemporaryDirectory storage;
  train::Trainer(fn<knows_its_place>, options_in(storage.path(), 3, {{"text", "said"}})).fit();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(content_of(storage / "run" / ("place_" + std::to_string(i))),
              "3 " + std::to_string(i) + " 3 0 run [42, \"said\"]\n");
}

// ---- Failures

class GroupFailure : public ::testing::TestWithParam<bool> {};

TEST_P(GroupFailure, OfOneRankStartsAllAgainFromTheLastCheckpoint) {
  const TemporaryDirectory storage;
  train::TrainerOptions options =
      options_in(storage.path(), 3, {{"steps", 6}, {"failing_rank", 1}, {"fails_at", 4}, {"dies", GetParam()}});
  options.run_config.failure_config.max_failures = 1;
  const train::Result result = train::Trainer(fn<counts>, options).fit();
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(result.attempts, 2);
  for (int i = 0; i < 3; ++i) {
    for (int step = 1; step <= 6; ++step) {
      const std::string line = std::to_string(i) + " " + std::to_string(step) + "\n";
      const std::string witness = content_of(storage / "run/witness");
      const auto first = witness.find(line);
      EXPECT_NE(first, witness.npos) << line;
      EXPECT_EQ(witness.find(line, first + 1), witness.npos) << "done again: " << line;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Trainer, GroupFailure, ::testing::Bool(),
                         [](const auto& dies) { return dies.param ? "Death" : "Exception"; });

TEST(Trainer, CollectivesLeaveNothingBehindButTheLastOnes) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<meets_often>, options_in(storage.path(), 2)).fit();
  EXPECT_LE(result.return_value.get<std::int64_t>(), 10) << "of 250 keys";
}

TEST(Trainer, AnotherAttemptIsAnotherGroup) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 2);
  options.run_config.failure_config.max_failures = 1;
  EXPECT_EQ(train::Trainer(fn<meets_again>, options).fit().attempts, 2);
}

TEST(Trainer, AFailureBeyondTheBudgetIsToldWithItsRankAndCause) {
  const TemporaryDirectory storage;
  const auto run = [&](bool dies, const char* name) {
    train::TrainerOptions options =
        options_in(storage.path(), 2, {{"steps", 6}, {"failing_rank", 1}, {"fails_at", 2}, {"dies", dies}});
    options.run_config.name = name;
    return message_of<train::TrainingFailed>([&] { train::Trainer(fn<counts>, options).fit(); });
  };
  EXPECT_THAT(run(false, "throws"), AllOf(HasSubstr("rank 1"), HasSubstr("out of luck")));
  EXPECT_THAT(run(true, "dies"), AllOf(HasSubstr("rank 1"), HasSubstr("SIGKILL")));
  const train::Result left = train::Result::from_directory(storage / "throws");
  EXPECT_THAT(left.error.value_or(""), HasSubstr("out of luck"));
  EXPECT_THAT(steps_of(left), ElementsAre(1));
  const train::Result again = train::Trainer::restore(storage / "throws").fit();
  EXPECT_THAT(steps_of(again), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(again.return_value.get<std::int64_t>(), 60);
}

TEST(Trainer, RanksThatReportUnequallyOftenFailTheRunAndAreNamed) {
  const TemporaryDirectory storage;
  EXPECT_THAT(message_of<train::TrainingFailed>(
                  [&] { train::Trainer(fn<reports_unequally>, options_in(storage.path(), 2)).fit(); }),
              AllOf(HasSubstr("rank 1 has returned after 1 calls"), HasSubstr("rank 0")));
}

TEST(Trainer, ARankThatDoesNotComeFailsTheRunAfterTheTimeoutAndIsNamed) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 3);
  options.run_config.collective_timeout = std::chrono::milliseconds(300);
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { train::Trainer(fn<hangs_in_rank_1>, options).fit(); }),
              HasSubstr("rank 1 has not called report()"));
  options.run_config.name = "barrier";
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { train::Trainer(fn<misses_a_barrier>, options).fit(); }),
              AllOf(HasSubstr("train::barrier"), HasSubstr("rank 1")));
}

// More nanoseconds than 64 bits hold.
TEST(Trainer, RanksMayWaitForEachOtherForCenturies) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 3, {{"steps", 4}});
  options.run_config.collective_timeout = train::Seconds(1e10);
  EXPECT_THAT(steps_of(train::Trainer(fn<counts>, options).fit()), ElementsAre(1, 2, 3, 4));
}

// A backend whose group cannot be formed in the first "failures" attempts; a file of the run counts the attempts.
class Unwilling final : public worker::GroupBackend {
 public:
  Unwilling() { worker::register_group_backend("unwilling", *this); }
  void check(const Config&) const override {}
  void join(std::shared_ptr<worker::KeyValueStore>, const worker::GroupPlace& place, const Config& options) override {
    const fs::path tries = train::get_context().get_storage() / "tries";
    if (place.world_rank == 0) bear_witness("tries", "once");
    if (static_cast<std::int64_t>(content_of(tries).size() / 5) <= options.get<std::int64_t>("failures"))
      throw EngineError("there is no network");
  }
  void leave() override {}
};
const Unwilling unwilling;

class UnwillingTrainer : public train::Trainer {
 public:
  UnwillingTrainer(train::TrainerOptions options, std::int64_t failures)
      : Trainer(fn<counts>, std::move(options), "unwilling", {{"failures", failures}}) {}
};

TEST(Trainer, AGroupThatCannotBeFormedHasABudgetOfItsOwn) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 1, {{"steps", 1}});
  options.run_config.failure_config.max_start_failures = 1;
  EXPECT_EQ(UnwillingTrainer(options, 1).fit().attempts, 2);
  options.run_config.name = "in vain";
  options.run_config.failure_config = {.max_failures = 5, .max_start_failures = 0};
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { UnwillingTrainer(options, 1).fit(); }),
              HasSubstr("there is no network"));
}

TEST(Trainer, AWorkerThatIsTerminatedCostsNoFailure) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(
      storage.path(), 3, {{"steps", 6}, {"failing_rank", 1}, {"fails_at", 4}, {"dies", true}, {"signal", SIGTERM}});
  const train::Result result = train::Trainer(fn<counts>, options).fit();
  EXPECT_EQ(result.attempts, 2);
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2, 3, 4, 5, 6));
  options.run_config.name = "no more";
  options.run_config.failure_config = {.max_failures = 5, .max_preemption_failures = 0};
  EXPECT_THAT(message_of<train::TrainingFailed>([&] { train::Trainer(fn<counts>, options).fit(); }),
              HasSubstr("SIGTERM"));
}

// Returns the status as `cadre show` reads it.
std::string status_of(const fs::path& run) {
  return store::ExperimentReader(run, store::ExperimentReader::Check::rows).trials().at(0).status;
}

std::string knows_its_status() { return status_of(train::get_context().get_storage()); }

TEST(Trainer, ARunSaysInItsStoreHowItStands) {
  const TemporaryDirectory storage;
  const train::Result result = train::Trainer(fn<knows_its_status>, options_in(storage.path(), 1)).fit();
  EXPECT_THAT(result.return_value.get<std::string>(), ::testing::AnyOf("SCHEDULING", "RUNNING"));
  EXPECT_EQ(status_of(storage / "run"), "FINISHED");
  train::TrainerOptions options = options_in(storage.path(), 1, {{"steps", 2}, {"failing_rank", 0}, {"fails_at", 2}});
  options.run_config.name = "fails";
  EXPECT_THROW(train::Trainer(fn<counts>, options).fit(), train::TrainingFailed);
  EXPECT_EQ(status_of(storage / "fails"), "ERRORED");
}

// ---- Callbacks

class Listener final : public train::Callback {
 public:
  explicit Listener(std::string throws_in = {}) : throws_in_(std::move(throws_in)) {}
  std::vector<std::string> heard;

  void on_start(const train::RunContext& run) override { hear("on_start", run.name); }
  void after_report(const train::RunContext& run, const Metrics& metrics,
                    const std::optional<Checkpoint>& checkpoint) override {
    const std::string step = std::to_string(metrics.get<std::int64_t>("step"));
    hear("after_report", step + " of " + std::to_string(run.world_size) +
                             (checkpoint ? " " + checkpoint->path().filename().string() : ""));
  }
  void on_checkpoint(const train::RunContext&, const Checkpoint& checkpoint) override {
    hear("on_checkpoint", std::to_string(read_step(checkpoint)));
  }
  void after_exception(const train::RunContext& run, const std::map<std::int64_t, std::string>& failures) override {
    std::string text = std::to_string(run.attempt);
    for (const auto& [rank, cause] : failures) text += " " + std::to_string(rank) + ": " + cause;
    hear("after_exception", text);
  }
  void on_end(const train::RunContext& run) override { hear("on_end", std::to_string(run.attempt)); }
  std::string name() const override { return "Listener"; }

 private:
  void hear(const std::string& hook, const std::string& text) {
    heard.push_back(hook + " " + text);
    if (hook == throws_in_) throw std::runtime_error("no more");
  }
  std::string throws_in_;
};

TEST(Trainer, CallbacksHearOfEverythingOnceAndOneThatThrowsIsSwitchedOff) {
  const TemporaryDirectory storage;
  const auto listener = std::make_shared<Listener>();
  const auto weak = std::make_shared<Listener>("after_report");
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 3}, {"failing_rank", 1}, {"fails_at", 2}});
  options.run_config.failure_config.max_failures = 1;
  options.run_config.callbacks = {weak, listener};
  train::Trainer(fn<counts>, options).fit();
  EXPECT_THAT(listener->heard, ElementsAre("on_start run", "on_checkpoint 1", "after_report 1 of 2 checkpoint_000000",
                                           "after_exception 1 1: std::runtime_error: out of luck", "on_checkpoint 2",
                                           "after_report 2 of 2 checkpoint_000001", "on_checkpoint 3",
                                           "after_report 3 of 2 checkpoint_000002", "on_end 2"));
  EXPECT_THAT(weak->heard, ElementsAre("on_start run", "on_checkpoint 1", "after_report 1 of 2 checkpoint_000000"));
  options.run_config.name = "other";
  options.run_config.callbacks = {nullptr};
  EXPECT_THAT(message_of<InvalidArgument>([&] { train::Trainer(fn<counts>, options); }), HasSubstr("callbacks"));
  const auto late = std::make_shared<Listener>();
  train::Trainer::restore(storage / "run", {.callbacks = {late}}).fit();
  EXPECT_THAT(late->heard, ElementsAre("on_start run", "on_end 2"));
}

// Has no name any more once a hook has thrown.
class LosesItsName final : public train::Callback {
 public:
  void after_report(const train::RunContext&, const Metrics&, const std::optional<Checkpoint>&) override {
    has_thrown_ = true;
    throw std::runtime_error("no more");
  }
  std::string name() const override {
    if (has_thrown_) throw std::runtime_error("no name");
    return "LosesItsName";
  }

 private:
  bool has_thrown_ = false;
};

TEST(Trainer, ACallbackThatThrowsAndWhoseNameThrowsThenDoesNotEndTheRun) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 1, {{"steps", 2}});
  options.run_config.verbose = 1;
  options.run_config.callbacks = {std::make_shared<LosesItsName>()};
  ::testing::internal::CaptureStdout();
  const train::Result result = train::Trainer(fn<counts>, options).fit();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("the callback LosesItsName failed in after_report, and is switched off: "
                        "std::runtime_error: no more"));
  EXPECT_TRUE(result.finished);
  EXPECT_THAT(steps_of(result), ElementsAre(1, 2));
}

void reports_its_rank(const Config&) { train::report({{"rank", train::get_context().get_world_rank()}}); }

TEST(Trainer, ACallbackMayHearTheMetricsOfAllRanks) {
  class Hears final : public train::Callback {
   public:
    void after_reports(const train::RunContext&, const std::vector<Metrics>& metrics,
                       const std::optional<Checkpoint>&) override {
      for (const Metrics& one : metrics) ranks.push_back(one.get<int>("rank"));
    }
    std::vector<int> ranks = {};
  };
  const TemporaryDirectory storage;
  const auto hears = std::make_shared<Hears>();
  train::TrainerOptions options = options_in(storage.path(), 3, {});
  options.run_config.callbacks = {hears};
  train::Trainer(fn<reports_its_rank>, options).fit();
  EXPECT_THAT(hears->ranks, ElementsAre(0, 1, 2));
}

// ---- Bad input

TEST(Trainer, BadInputIsNamedBeforeAnythingRuns) {
  const TemporaryDirectory storage;
  const auto message = [&](auto change) {
    train::TrainerOptions options = options_in(storage.path(), 2);
    change(options);
    return message_of<InvalidArgument>([&] { train::Trainer(fn<misses_a_barrier>, options).fit(); });
  };
  EXPECT_THAT(message([](auto& options) { options.scaling_config.num_workers = 0; }), HasSubstr("num_workers"));
  EXPECT_THAT(message([](auto& options) { options.scaling_config.resources_per_worker = Resources{.cpus = 1e6}; }),
              HasSubstr("2 workers need more than this machine has"));
  EXPECT_THAT(message([](auto& options) {
                options.scaling_config.resources_per_worker = Resources{.cpus = 0.01, .gpus = 1000};
                options.scaling_config.use_gpu = true;
              }),
              HasSubstr("gpus"));
  EXPECT_THAT(
      message([](auto& options) { options.scaling_config.resources_per_worker = Resources{.cpus = 1, .gpus = 1}; }),
      HasSubstr("use_gpu"));
  EXPECT_THAT(message([](auto& options) { options.scaling_config.accelerator_type = "A100"; }),
              HasSubstr("accelerator type A100 (it is H100)"));
  EXPECT_THAT(message([](auto& options) { options.scaling_config.label_selector = {{"zone", "!eu"}}; }),
              HasSubstr("label zone=!eu (it is eu)"));
  EXPECT_THAT(message([](auto& options) { options.scaling_config.label_selector = {{"zone", ""}}; }),
              HasSubstr("label_selector: \"\" of zone is none of"));
  EXPECT_THAT(message([](auto& options) {
                options.scaling_config.accelerator_type = "H100";
                options.scaling_config.resources_per_worker = Resources{.accelerator_type = "A100"};
              }),
              HasSubstr("the accelerator type is asked to be A100 and H100"));
  EXPECT_THAT(
      message([](auto& options) { options.scaling_config.placement_strategy = PlacementStrategy::strict_spread; }),
      HasSubstr("strict_spread needs 2 machines"));
  EXPECT_THAT(message([](auto& options) { options.run_config.collective_timeout = train::Seconds(0); }),
              HasSubstr("collective_timeout"));
  EXPECT_THAT(message([](auto& options) { options.run_config.failure_config.max_failures = -2; }),
              HasSubstr("max_failures"));
  EXPECT_THAT(message([](auto& options) { options.run_config.failure_config.max_start_failures = -2; }),
              HasSubstr("max_start_failures"));
  EXPECT_THAT(message([](auto& options) { options.run_config.checkpoint_config.checkpoint_frequency = 1; }),
              HasSubstr("checkpoint_frequency"));
  EXPECT_THAT(message([](auto& options) { options.run_config.name = "a/b"; }), HasSubstr("name"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { train::Trainer(train::Loop("nobody"), options_in(storage.path(), 1)); }),
      HasSubstr("no function \"nobody\""));
  EXPECT_FALSE(fs::exists(storage / "run"));
}

TEST(Trainer, ControlCharactersInOptionsDoNotReachTheTerminal) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 1, {});
  options.run_config.name = "../\x1b[2J";
  const std::string fault = message_of<InvalidArgument>([&] { train::Trainer(fn<counts>, options); });
  EXPECT_THAT(fault, AllOf(HasSubstr("cannot name a directory"), Not(HasSubstr("\x1b"))));
}

TEST(Trainer, ANameInUseIsRefusedAndAFinishedRunStaysAsItIs) {
  const TemporaryDirectory storage;
  const train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 2}});
  train::Trainer(fn<counts>, options).fit();
  EXPECT_THAT(message_of<InvalidArgument>([&] { train::Trainer(fn<counts>, options).fit(); }),
              HasSubstr("exists already"));
  EXPECT_TRUE(train::Trainer::can_restore(storage / "run"));
  EXPECT_FALSE(train::Trainer::can_restore(storage.path()));
  EXPECT_FALSE(tune::Tuner::can_restore(storage / "run")) << "a training run is no experiment";
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(storage / "run"); }),
              HasSubstr("a training run, which train::Trainer::restore continues"));
  const std::string before = content_of(storage / "run/witness");
  const train::Result again = train::Trainer::restore(storage / "run").fit();
  EXPECT_EQ(again.return_value.get<std::int64_t>(), 20);
  EXPECT_EQ(content_of(storage / "run/witness"), before);
}

// ---- The controller's end

train::TrainerOptions slow_options(const fs::path& storage) { return options_in(storage, 2, {{"steps", 400}}); }
const bool trains = register_scenario("trains", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  const fs::path run = storage / "run";
  if (train::Trainer::can_restore(run)) {
    train::Trainer::restore(run).fit();
  } else {
    train::Trainer(fn<counts>, slow_options(storage)).fit();
  }
  return 0;
});
const bool is_interrupted = register_scenario("training is interrupted", [] {
  try {
    train::Trainer(fn<counts>, slow_options(std::getenv("CADRE_TEST_STORAGE"))).fit();
  } catch (const Interrupted&) {
    return 0;
  }
  return 1;
});

void wait_for_witness(const fs::path& run) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (content_of(run / "witness").size() < 100 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Expects one result for each step, in order, and the return value of rank 0.
void expect_whole(const fs::path& run) {
  const train::Result result = train::Result::from_directory(run);
  EXPECT_EQ(result.metrics_history.size(), 400u);
  EXPECT_EQ(result.return_value.get<std::int64_t>(), 4000);
  for (std::size_t i = 0; i < result.metrics_history.size(); ++i)
    ASSERT_EQ(result.metrics_history[i].get<std::int64_t>("step"), static_cast<std::int64_t>(i) + 1);
}

TEST(Trainer, AKilledControllerLosesNothing) {
  const TemporaryDirectory storage;
  const std::vector<std::string> environment{"CADRE_TEST_STORAGE=" + storage.path().string()};
  ScenarioProcess first("trains", {}, environment);
  wait_for_witness(storage / "run");
  ::kill(first.process(), SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  ScenarioProcess second("trains", {}, environment);
  EXPECT_EQ(second.wait(), 0);
  expect_whole(storage / "run");
}

TEST(Trainer, CtrlCEndsItInAnOrderlyWayAndARestoreGoesOn) {
  const TemporaryDirectory storage;
  const std::vector<std::string> environment{"CADRE_TEST_STORAGE=" + storage.path().string()};
  ScenarioProcess first("training is interrupted", {}, environment);
  wait_for_witness(storage / "run");
  ::kill(first.process(), SIGINT);
  EXPECT_EQ(first.wait(), 0);
  const std::size_t reports = train::Result::from_directory(storage / "run").metrics_history.size();
  EXPECT_GT(reports, 0u);
  EXPECT_LT(reports, 400u);
  EXPECT_EQ(status_of(storage / "run"), "ABORTED");
  ScenarioProcess second("trains", {}, environment);
  EXPECT_EQ(second.wait(), 0);
  expect_whole(storage / "run");
}

}  // namespace
}  // namespace cadre::system_tests
