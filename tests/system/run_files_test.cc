// Output of a training run for people and their programs: result files that follow from its store, and the output of
// its workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/directory.h"
#include "base/json.h"
#include "cadre/train.h"
#include "scenario.h"
#include "support/event_file.h"
#include "support/stored_results.h"
#include "support/temporary_directory.h"
#include "training.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// ---- Training functions

// Saves with every other report, so that a restarted group repeats a step. Rank 1 fails once in step "fails_at".
void saves_now_and_then(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) step = read_step(*checkpoint);
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    if (rank() == 1 && step == config.get<std::int64_t>("fails_at", -1) &&
        !fs::exists(train::get_context().get_storage() / "failed")) {
      bear_witness("failed", "once");
      throw std::runtime_error("out of luck");
    }
    const Metrics metrics{{"step", step}, {"eval", {{"loss", 1.0 / static_cast<double>(step)}}}};
    if (step % 2 == 0) {
      train::report(metrics, [&](const fs::path& directory) { write_step(directory, step); });
    } else {
      train::report(metrics);
    }
    if (rank() == 0) bear_witness("witness", std::to_string(step));
  }
}

void prints(const Config& config) {
  std::printf("hello from %d\n", static_cast<int>(rank()));
  std::fprintf(stderr, "a warning\n");
  train::report({{"step", 1}});
  if (config.get<bool>("fails", false)) throw std::runtime_error("out of luck");
  if (config.get<bool>("commands", false)) {
    std::printf("\x1b[2Jprinted\n");
    train::report({{"\x1b[31mred", "\x1b[2J"}});
    throw std::runtime_error("\x1b]0;title\x07");
  }
  std::printf("no end");
}

// ---- Contents of the files

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string event_file_in(const fs::path& run) {
  std::string found;
  for (const std::string& name : base::list_directory(run)) {
    if (!name.starts_with("events.out.tfevents.")) continue;
    EXPECT_EQ(found, "") << "there is one";
    found = name;
  }
  return found;
}

// Expects every result of the store in each file, once and in order.
void expect_files_as_the_store(const fs::path& run) {
  const std::vector<std::string> stored = test_support::results_of(run, 0);
  const std::vector<std::string> json = lines_of(run / "result.json");
  const std::vector<std::string> csv = lines_of(run / "progress.csv");
  ASSERT_THAT(json, SizeIs(stored.size()));
  ASSERT_THAT(csv, SizeIs(stored.size() + 1));
  std::vector<std::int64_t> shown;
  for (const auto& value : test_support::event_values(content_of(run / event_file_in(run))))
    if (value.tag == "ray/tune/step") shown.push_back(value.step);
  ASSERT_THAT(shown, SizeIs(stored.size()));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    ASSERT_THAT(json[i], StartsWith(stored[i].substr(0, stored[i].size() - 1) + ", \"timestamp\": "));
    const Config row(base::parse_json(json[i], "result.json").dict());
    ASSERT_EQ(row.get<std::int64_t>("training_iteration"), static_cast<std::int64_t>(i) + 1);
    ASSERT_THAT(csv[i + 1], StartsWith(std::to_string(row.get<std::int64_t>("step")) + ","));
    ASSERT_EQ(shown[i], static_cast<std::int64_t>(i) + 1);
  }
}

TEST(RunFiles, HaveEveryResultOnceAlsoOfStepsThatWereRepeated) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 6}, {"fails_at", 4}});
  options.run_config.failure_config.max_failures = 1;
  const train::Result result = train::Trainer(fn<saves_now_and_then>, options).fit();
  EXPECT_EQ(result.attempts, 2);
  const fs::path run = storage / "run";
  expect_files_as_the_store(run);
  EXPECT_EQ(content_of(run / "params.json"), "{\n  \"fails_at\": 4,\n  \"steps\": 6\n}");
  EXPECT_EQ(content_of(run / "error.txt"), "Attempt 1: rank 1: std::runtime_error: out of luck\n");
  EXPECT_THAT(lines_of(run / "progress.csv").front(),
              "step,timestamp,training_iteration,date,time_this_iter_s,time_total_s,hostname,time_since_restore,"
              "iterations_since_restore,checkpoint_dir_name,eval/loss");
  const std::vector<std::string> rows = lines_of(run / "result.json");
  EXPECT_THAT(rows[2], HasSubstr("\"checkpoint_dir_name\": null, \"config\": {\"steps\": 6, \"fails_at\": 4}}"));
  EXPECT_THAT(rows[3], AllOf(HasSubstr("\"iterations_since_restore\": 2"),
                             HasSubstr("\"checkpoint_dir_name\": \"checkpoint_000001\"")));
}

TEST(RunFiles, ARunWithoutFailuresHasNoErrors) {
  const TemporaryDirectory storage;
  train::Trainer(fn<saves_now_and_then>, options_in(storage.path(), 2, {{"steps", 2}})).fit();
  EXPECT_FALSE(fs::exists(storage / "run/error.txt"));
}

TEST(RunFiles, ThoseThatAreSwitchedOffAreNotWrittenAlsoAfterARestore) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 4}, {"fails_at", 3}});
  options.run_config.logging_config.loggers = {.csv = false, .tensorboard = false};
  EXPECT_THROW(train::Trainer(fn<saves_now_and_then>, options).fit(), train::TrainingFailed);
  train::Trainer::restore(storage / "run").fit();
  EXPECT_THAT(lines_of(storage / "run/result.json"), SizeIs(4));
  EXPECT_FALSE(fs::exists(storage / "run/progress.csv"));
  EXPECT_EQ(event_file_in(storage / "run"), "");
}

TEST(RunFiles, MlflowsStoreHasEachStepOnceAlsoAfterAFailureAndARestore) {
  const TemporaryDirectory storage;
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 6}, {"fails_at", 4}});
  options.run_config.logging_config.loggers = {.csv = false, .json = false, .tensorboard = false, .mlflow = true};
  EXPECT_THROW(train::Trainer(fn<saves_now_and_then>, options).fit(), train::TrainingFailed);
  const auto folder_of_run = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(storage / "run/mlruns")) {
      if (entry.path().filename() == "metrics") return entry.path().parent_path();
    }
    return fs::path();
  };
  const fs::path folder = folder_of_run();
  EXPECT_THAT(content_of(folder / "meta.yaml"), AllOf(HasSubstr("\nstatus: 4\n"), HasSubstr("run_name: \"run\"\n")));
  EXPECT_THAT(content_of(folder / "tags/cadre.error"), HasSubstr("out of luck"));
  train::Trainer::restore(storage / "run").fit();
  EXPECT_EQ(folder_of_run(), folder);
  EXPECT_THAT(content_of(folder / "meta.yaml"), HasSubstr("\nstatus: 3\n"));
  EXPECT_EQ(content_of(folder / "params/steps"), "6");
  const std::vector<std::string> points = lines_of(folder / "metrics/step");
  ASSERT_THAT(points, SizeIs(6));
  for (std::size_t i = 0; i < points.size(); ++i)
    EXPECT_THAT(points[i], EndsWith(" " + std::to_string(i + 1) + " " + std::to_string(i + 1)));
  EXPECT_THAT(lines_of(folder / "metrics/eval/loss"), SizeIs(6));
}

// ---- After the controller's end

const bool trains = register_scenario("leaves files", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  if (train::Trainer::can_restore(storage / "run")) {
    train::Trainer::restore(storage / "run").fit();
  } else {
    train::Trainer(fn<saves_now_and_then>, options_in(storage, 2, {{"steps", 300}})).fit();
  }
  return 0;
});

TEST(RunFiles, AKilledControllersFilesAreMadeWholeByTheNextOne) {
  const TemporaryDirectory storage;
  const fs::path run = storage / "run";
  const std::vector<std::string> environment{"CADRE_TEST_STORAGE=" + storage.path().string()};
  const auto spoil = [&](std::size_t kills) {
    if (kills == 0) std::ofstream(run / "result.json", std::ios::app) << R"({"step": 1)";
    if (kills == 0) std::ofstream(run / event_file_in(run), std::ios::app) << "torn";
    if (kills == 1) fs::remove(run / "progress.csv");
    if (kills == 1) std::ofstream(run / "result.json") << "";
  };
  for (std::size_t kills = 0; kills < 2; ++kills) {
    ScenarioProcess process("leaves files", {}, environment);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (lines_of(run / "witness").size() < 40 * (kills + 1) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(process.process(), SIGKILL);
    ASSERT_EQ(process.wait(), -SIGKILL);
    spoil(kills);
  }
  EXPECT_EQ(ScenarioProcess("leaves files", {}, environment).wait(), 0);
  expect_files_as_the_store(run);
  EXPECT_THAT(lines_of(run / "result.json"), SizeIs(300));
}

TEST(RunFiles, ARestoreOfAFinishedRunLeavesThemAsTheyAre) {
  const TemporaryDirectory storage;
  const fs::path run = storage / "run";
  train::TrainerOptions options = options_in(storage.path(), 2, {{"steps", 6}, {"fails_at", 4}});
  options.run_config.failure_config.max_failures = 1;
  train::Trainer(fn<saves_now_and_then>, options).fit();
  std::map<std::string, std::string> contents;
  for (const std::string& name : {std::string("params.json"), std::string("result.json"), std::string("progress.csv"),
                                  std::string("error.txt"), event_file_in(run)})
    contents[name] = content_of(run / name);
  train::Trainer::restore(run).fit();
  for (const auto& [name, content] : contents) EXPECT_EQ(content_of(run / name), content) << name;
}

// ---- Output of workers

train::TrainerOptions printing_options(bool log_to_driver, Config config = {}) {
  train::TrainerOptions options = options_in(std::getenv("CADRE_TEST_STORAGE"), 2, std::move(config));
  options.run_config.logging_config.log_to_driver = log_to_driver;
  options.run_config.verbose = 1;
  return options;
}
const bool repeats = register_scenario("repeats what workers print", [] {
  train::Trainer(fn<prints>, printing_options(true)).fit();
  say("end");
  return 0;
});
const bool repeats_before_failure = register_scenario("repeats what workers print before they fail", [] {
  try {
    train::TrainerOptions options = printing_options(true, {{"fails", true}});
    options.run_config.failure_config.max_failures = 1;
    train::Trainer(fn<prints>, options).fit();
  } catch (const train::TrainingFailed&) {
  }
  say("end");
  return 0;
});
const bool commands = register_scenario("repeats what would command a terminal", [] {
  try {
    train::Trainer(fn<prints>, printing_options(true, {{"commands", true}})).fit();
  } catch (const train::TrainingFailed&) {
  }
  say("end");
  return 0;
});
const bool is_silent = register_scenario("does not repeat what workers print", [] {
  train::Trainer(fn<prints>, printing_options(false)).fit();
  say("end");
  return 0;
});

std::vector<std::string> output_of(const std::string& scenario, const fs::path& storage) {
  ScenarioProcess process(scenario, {}, {"CADRE_TEST_STORAGE=" + storage.string()});
  std::vector<std::string> lines;
  while (!::testing::Test::HasFailure() && (lines.empty() || lines.back() != "end")) lines.push_back(process.line());
  EXPECT_EQ(process.wait(), 0);
  return lines;
}

TEST(WorkerOutput, IsRepeatedWithItsRank) {
  const TemporaryDirectory storage;
  const std::vector<std::string> lines = output_of("repeats what workers print", storage.path());
  for (const char* line : {"(rank 0) hello from 0", "(rank 1) hello from 1", "(rank 0) no end", "(rank 1) no end"})
    EXPECT_EQ(std::ranges::count(lines, line), 1) << line;
  EXPECT_THAT(lines, Not(Contains(HasSubstr("a warning")))) << "of standard error";
  EXPECT_EQ(content_of(storage / "run/rank_1/stdout"), "hello from 1\nno end");
}

TEST(WorkerOutput, OfAGroupThatFailsComesBeforeTheFailure) {
  const TemporaryDirectory storage;
  const std::vector<std::string> lines = output_of("repeats what workers print before they fail", storage.path());
  std::vector<std::string> in_order;
  for (const std::string& line : lines) {
    if (line == "(rank 0) hello from 0" || line.starts_with("Attempt ") || line == "end") in_order.push_back(line);
  }
  EXPECT_THAT(in_order,
              ElementsAre("(rank 0) hello from 0", StartsWith("Attempt 1 has failed"), "(rank 0) hello from 0", "end"));
}

TEST(WorkerOutput, CommandsNoTerminal) {
  const TemporaryDirectory storage;
  const std::vector<std::string> lines = output_of("repeats what would command a terminal", storage.path());
  EXPECT_THAT(lines, Contains("(rank 0) \\x1b[2Jprinted"));
  EXPECT_THAT(lines, Contains(EndsWith(": \\x1b[31mred=\\x1b[2J")));
  EXPECT_THAT(lines, Each(Not(HasSubstr("\x1b"))));
}

TEST(WorkerOutput, IsInItsFilesOnlyWhereNobodyAsksForMore) {
  const TemporaryDirectory storage;
  EXPECT_THAT(output_of("does not repeat what workers print", storage.path()), Not(Contains(HasSubstr("hello"))));
  EXPECT_THAT(content_of(storage / "run/rank_0/stdout"), StartsWith("hello from 0\n"));
}

}  // namespace
}  // namespace cadre::system_tests
