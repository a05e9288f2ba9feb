// The Tuner with real workers, files and kills.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "cadre/tune.h"
#include "channel/worker_end.h"
#include "scenario.h"
#include "store/experiment_store.h"
#include "support/event_file.h"
#include "support/message_of.h"
#include "support/sanitized.h"
#include "support/temporary_directory.h"
#include "tune/description.h"
#include "worker/entries.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// ---- trainables

// Appends a line that is in the file as soon as this returns, even if the process is killed afterwards.
void append_line(const fs::path& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  ::close(fd);
}

// Learns at a speed set by its lr; its whole state is in its checkpoints. Appends to "witness" after each acknowledged
// report.
void learner(const Config& config) {
  double score = 0;
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint())
    std::ifstream(checkpoint->as_directory().path() / "state") >> step >> score;
  const fs::path witness = tune::get_context().get_trial_dir() / "witness";
  const char* const last_step = std::getenv("CADRE_TEST_LAST_STEP");  // nullptr: there is none
  for (;;) {
    ++step;
    while (last_step != nullptr && step > std::atoi(last_step)) ::pause();
    score += config.get<double>("lr") * (1 - score) / 10;
    const Metrics metrics{{"score", score}, {"lr", config.get<double>("lr")}};
    if (step % config.get<std::int64_t>("checkpoint_interval") == 0) {
      tune::report(metrics, [&](const fs::path& directory) {
        std::ofstream(directory / "state").precision(17);
        std::ofstream file(directory / "state");
        file.precision(17);
        file << step << ' ' << score;
      });
    } else {
      tune::report(metrics);
    }
    append_line(witness, std::to_string(step));
  }
}

void fails_by_number(const Config&) {
  const std::string id = tune::get_context().get_trial_id();
  if (id == "00001") throw std::runtime_error("the data are gone");
  tune::report({{"score", 1}});
  if (id == "00002") ::raise(SIGSEGV);
  if (id == "00003") ::_exit(0);
}

// Allocates 32 MiB in the first trial and 200 MiB in the others.
void allocates_by_number(const Config&) {
  const std::size_t mebibytes = tune::get_context().get_trial_id() == "00000" ? 32 : 200;
  const std::string memory(mebibytes << 20, 'x');
  tune::report({{"score", memory.back() == 'x'}});
}

void speaks(const Config&) {
  std::puts("a word on standard output");
  std::fputs("a word on standard error\n", stderr);
}

void copies_a_directory_of_its_own(const Config& config) {
  const fs::path own = config.get<std::string>("own");
  tune::report({{"score", 1}}, Checkpoint::from_directory(own));
  if (!fs::exists(own / "weights")) throw std::runtime_error("the user's directory was moved");
  const auto committed = tune::get_checkpoint();
  if (!committed || !fs::exists(committed->path() / "weights")) throw std::runtime_error("no checkpoint");
}

void writer_throws(const Config&) {
  try {
    tune::report({{"score", 1}}, [](const fs::path& directory) {
      std::ofstream(directory / "half") << "half";
      throw std::runtime_error("out of ideas");
    });
  } catch (const std::runtime_error&) {
    tune::report({{"score", 2}});
  }
}

void reports_from_another_thread(const Config&) {
  std::string message;
  std::thread([&] {
    try {
      tune::report({{"score", 1}});
    } catch (const Error& error) {
      message = error.what();
    }
  }).join();
  throw std::runtime_error(message);
}

void swallows_the_stop(const Config&) {
  for (int i = 0; i < 10; ++i) {
    try {
      tune::report({{"score", i}});
    } catch (...) {
      append_line(tune::get_context().get_trial_dir() / "swallowed", "once");
    }
  }
}

// Fails in step `every` of each attempt, until step 10 is reached.
void fails_at_steps(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step;
  const auto fail = config.get<std::int64_t>("every");
  for (const std::int64_t begin = step; step < 10;) {
    ++step;
    if (step == begin + fail) throw std::runtime_error("failure before step " + std::to_string(step));
    tune::report({{"score", step}}, [&](const fs::path& directory) { std::ofstream(directory / "state") << step; });
  }
}

void fails_to_load(const Config& config) {
  if (!tune::get_checkpoint()) {
    tune::report({{"score", 1}}, [](const fs::path& directory) { std::ofstream(directory / "state") << 1; });
    throw std::runtime_error("the first failure");
  }
  const fs::path tries = tune::get_context().get_trial_dir() / "tries";
  append_line(tries, "one");
  if (static_cast<std::int64_t>(content_of(tries).size()) / 4 <= config.get<std::int64_t>("failures"))
    throw std::runtime_error("cannot load");
}

void first_one_fails(const Config&) {
  const fs::path experiment = tune::get_context().get_trial_dir().parent_path();
  for (;;) {
    tune::report({{"score", 1}});
    const bool all_run = fs::exists(experiment / "00001/result.json") && fs::exists(experiment / "00002/result.json");
    if (all_run && tune::get_context().get_trial_id() == "00000") throw std::runtime_error("the first one");
  }
}

void hangs(const Config&) {
  tune::report({{"score", 1}});
  for (;;) ::pause();
}

void hangs_when_stopped(const Config&) {
  try {
    for (;;) tune::report({{"score", 1}});
  } catch (...) {
    for (;;) ::pause();
  }
}

void reports_now_and_then(const Config& config) {
  for (;;) {
    ::usleep(static_cast<useconds_t>(config.get<std::int64_t>("pause_ms") * 1000));
    tune::report({{"score", 1}});
  }
}

double returns_a_number(const Config& config) { return 2 * config.get<double>("x"); }

Metrics returns_metrics(const Config& config) {
  tune::report({{"score", 0}});
  return {{"score", config.get<double>("x")}, {"other", "text"}};
}

// ---- experiments

tune::TunerOptions pbt_options(const fs::path& storage, bool synch = false) {
  const tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                          .metric = tune::maximize("score"),
                                          .perturbation_interval = 4,
                                          .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}},
                                          .synch = synch};
  return {.param_space = {{"lr", tune::uniform(0.01, 1)}, {"checkpoint_interval", 2}},
          .tune_config = {.num_samples = 8, .scheduler = pbt, .seed = 3},
          .run_config = {.name = "pbt",
                         .storage_path = storage,
                         .stop = {{"training_iteration", 40}},
                         .checkpoint_config = {.num_to_keep = 1},
                         .verbose = 0}};
}

tune::TunerOptions plain_options(const fs::path& storage, std::int64_t trials, tune::Space space = {}) {
  return {.param_space = std::move(space),
          .tune_config = {.metric = tune::maximize("score"), .num_samples = trials},
          .run_config = {.name = "plain", .storage_path = storage, .verbose = 0}};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Waits until the file has `count` lines; fails the test if the process that writes it ends before.
void wait_for_lines(const fs::path& file, std::size_t count, const ScenarioProcess& process) {
  const Watched writer(process.process());
  while (lines_of(file).size() < count)
    ASSERT_FALSE(writer.ends_within(1)) << file << " has " << lines_of(file).size() << " lines";
}

// Returns the steps of the results in the store, by trial.
std::map<std::int64_t, std::multiset<std::int64_t>> stored_steps(const fs::path& experiment) {
  std::map<std::int64_t, std::multiset<std::int64_t>> steps;
  store::ExperimentStore::open(experiment)
      .visit({.result = [&](const store::ResultRow& row) { steps[row.trial].insert(row.step); },
              .event = [](const store::EventRow&) {},
              .decision = [](const store::DecisionRow&) {}});
  return steps;
}

void expect_every_witness_in_the_store(const tune::ResultGrid& results) {
  auto stored = stored_steps(results.experiment_path());
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const std::string& step : lines_of(results[i].path / "witness")) {
      auto& steps = stored[static_cast<std::int64_t>(i)];
      const auto found = steps.find(std::stoll(step));
      ASSERT_NE(found, steps.end()) << "trial " << i << ", step " << step;
      steps.erase(found);
    }
  }
}

// Expects the checkpoints on disk to be those that are listed, and complete.
void expect_tidy_directories(const tune::ResultGrid& results) {
  for (const tune::Result& result : results) {
    std::set<fs::path> listed;
    for (const auto& [checkpoint, metrics] : result.best_checkpoints) listed.insert(checkpoint.path());
    for (const auto& entry : fs::directory_iterator(result.path)) {
      if (!entry.is_directory()) continue;
      EXPECT_TRUE(listed.contains(entry.path())) << entry.path();
      EXPECT_TRUE(fs::exists(entry.path() / "state")) << entry.path();
    }
  }
}

class LearningPopulation : public ::testing::TestWithParam<bool> {};

TEST_P(LearningPopulation, LearnsAndEveryExploitFindsItsCheckpoint) {
  const bool synch = GetParam();
  const TemporaryDirectory storage;
  tune::Tuner tuner(fn<learner>, pbt_options(storage.path(), synch));
  const tune::ResultGrid results = tuner.fit();
  ASSERT_EQ(results.size(), 8u);
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  const std::vector<std::string> exploits = lines_of(results.experiment_path() / "pbt_global.txt");
  // The number of exploits depends without synch on which trial is quicker, with synch on the seed alone.
  EXPECT_GT(exploits.size(), synch ? 8u : 0u);
  for (const std::string& line : exploits) {
    const auto lr = Config(base::parse_json(line, "pbt_global.txt").items().at(5).dict()).get<double>("lr");
    EXPECT_GE(lr, 0.01);
    EXPECT_LE(lr, 1);
  }
  expect_every_witness_in_the_store(results);
  expect_tidy_directories(results);
}
INSTANTIATE_TEST_SUITE_P(Tuner, LearningPopulation, ::testing::Bool(),
                         [](const auto& synch) { return synch.param ? "Synchronous" : "Asynchronous"; });

// Returns the policy file of the trial with the longest history of exploits.
fs::path longest_policy(const fs::path& experiment) {
  fs::path longest;
  for (const auto& entry : fs::directory_iterator(experiment)) {
    const bool is_policy = entry.path().filename().string().starts_with("pbt_policy_");
    if (is_policy && (longest.empty() || lines_of(entry.path()).size() > lines_of(longest).size()))
      longest = entry.path();
  }
  return longest;
}

// The learner's score depends only on its lr in every step, so an equal score means equal lrs.
TEST(Tuner, AReplayTrainsWithTheConfigsThatLedToATrial) {
  const TemporaryDirectory storage;
  // With synch, so that the same exploits take place whatever the load of the machine.
  const tune::ResultGrid population = tune::Tuner(fn<learner>, pbt_options(storage.path(), true)).fit();
  const fs::path policy = storage / "policy.txt";
  const fs::path chosen = longest_policy(population.experiment_path());
  fs::copy(chosen, policy);
  ASSERT_GT(lines_of(policy).size(), 1u);
  const std::string id = chosen.stem().string().substr(std::string("pbt_policy_").size());
  const auto original = std::ranges::find(population, id, &tune::Result::trial_id);

  tune::TunerOptions options = pbt_options(storage.path());
  options.run_config.name = "replay";
  options.tune_config.num_samples = 1;
  options.tune_config.scheduler = tune::PopulationBasedTrainingReplay{.policy_file = policy};
  const tune::ResultGrid results = tune::Tuner(fn<learner>, options).fit();
  ASSERT_EQ(results.num_terminated(), 1u) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].config, original->config);
  EXPECT_EQ(results[0].metrics.get<double>("score"), original->metrics.get<double>("score"));

  std::vector<std::pair<std::int64_t, double>> changes;  // iteration after which the lr changes, and the new lr
  for (const std::string& line : lines_of(policy)) {
    const List fields = base::parse_json(line, "the policy").items();
    if (changes.empty()) changes.emplace_back(0, Config(fields.at(4).dict()).get<double>("lr"));
    changes.emplace_back(fields.at(3).get<std::int64_t>(), Config(fields.at(5).dict()).get<double>("lr"));
  }
  std::int64_t iteration = 0;
  for (const std::string& line : lines_of(results[0].path / "result.json")) {
    const Metrics row(base::parse_json(line, "result.json").dict());
    EXPECT_EQ(row.get<std::int64_t>("training_iteration"), ++iteration) << "no step was repeated";
    const auto later = std::ranges::find_if(changes, [&](const auto& change) { return change.first >= iteration; });
    EXPECT_EQ(row.get<double>("lr"), std::prev(later)->second) << "iteration " << iteration;
  }
  EXPECT_EQ(iteration, 40);
  EXPECT_FALSE(fs::exists(results.experiment_path() / "pbt_global.txt"));

  fs::remove(policy);
  EXPECT_EQ(tune::Tuner::restore(results.experiment_path()).fit()[0].config, original->config);
  EXPECT_NO_THROW(tune::Tuner::restore(results.experiment_path(), fn<learner>, options));
}

TEST(Tuner, AResultHasWhatEveryResultHas) {
  const TemporaryDirectory storage;
  auto options = pbt_options(storage.path());
  options.tune_config.num_samples = 1;
  const tune::ResultGrid results = tune::Tuner(fn<learner>, options).fit();
  const std::vector<Metrics> history = results[0].metrics_history();
  ASSERT_EQ(history.size(), 40u);
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(history[i].get<std::size_t>("training_iteration", 0), i + 1);
    for (const char* key : {"timestamp", "trial_id", "date", "time_this_iter_s", "time_total_s", "pid", "hostname",
                            "node_ip", "time_since_restore", "iterations_since_restore"})
      EXPECT_TRUE(history[i].contains(key)) << key;
  }
  EXPECT_EQ(lines_of(results[0].path / "result.json").size(), 40u);
  EXPECT_EQ(lines_of(results[0].path / "progress.csv").size(), 41u);
}

TEST(Tuner, TrialsThatFailAreToldApartAndTheOthersFinish) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<fails_by_number>, plain_options(storage.path(), 6)).fit();
  EXPECT_EQ(results.num_errors(), 3u);
  EXPECT_EQ(results.num_terminated(), 3u);
  EXPECT_THAT(*results[1].error, HasSubstr("std::runtime_error: the data are gone"));
  EXPECT_THAT(*results[2].error, HasSubstr("SIGSEGV"));
  EXPECT_THAT(*results[3].error, HasSubstr("exited with code 0 before its training function returned"));
  for (const std::size_t i : {1u, 2u, 3u})
    EXPECT_EQ(content_of(results[i].path / "error.txt"), "Attempt 1: " + *results[i].error + "\n");
}

TEST(Tuner, ATrialBeyondItsMemoryLimitFailsWithThatCause) {
  if (test_support::sanitized) GTEST_SKIP() << "sanitizers answer a refused allocation in ways of their own";
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 2);
  options.run_config.limits.memory_bytes = std::uint64_t{64} << 20;
  const tune::ResultGrid results = tune::Tuner(fn<allocates_by_number>, options).fit();
  EXPECT_EQ(results[0].status, tune::TrialStatus::terminated);
  ASSERT_TRUE(results[1].error.has_value());
  EXPECT_THAT(*results[1].error,
              HasSubstr("std::bad_alloc: std::bad_alloc (the memory limit of this trial is 64 MiB)"));
}

// Expects the same results as of an undisturbed run: the end of a synchronous population does not depend on kills.
void expect_the_same_end(const tune::ResultGrid& results, const fs::path& storage) {
  const tune::ResultGrid undisturbed = tune::Tuner(fn<learner>, pbt_options(storage, true)).fit();
  EXPECT_EQ(content_of(results.experiment_path() / "pbt_global.txt"),
            content_of(undisturbed.experiment_path() / "pbt_global.txt"));
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].config, undisturbed[i].config) << i;
    EXPECT_EQ(results[i].metrics.get<double>("score"), undisturbed[i].metrics.get<double>("score")) << i;
    EXPECT_EQ(results[i].metrics_history().size(), undisturbed[i].metrics_history().size()) << i;
    EXPECT_EQ(lines_of(results[i].path / "progress.csv").size(), lines_of(undisturbed[i].path / "progress.csv").size());
  }
}

TEST(Tuner, AFailedTrialIsTriedAgainFromItsLatestCheckpoint) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1, {{"every", 4}});
  options.run_config.failure_config.max_failures = 3;
  const tune::ResultGrid results = tune::Tuner(fn<fails_at_steps>, options).fit();
  EXPECT_EQ(results[0].status, tune::TrialStatus::terminated);
  EXPECT_EQ(results[0].metrics_history().size(), 10u);
  EXPECT_EQ(content_of(results[0].path / "error.txt"),
            "Attempt 1: std::runtime_error: failure before step 4\n"
            "Attempt 2: std::runtime_error: failure before step 7\n"
            "Attempt 3: std::runtime_error: failure before step 10\n");
}

TEST(Tuner, OneFailureMoreThanAllowedFailsTheTrial) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1, {{"every", 4}});
  options.run_config.failure_config.max_failures = 2;
  const tune::ResultGrid results = tune::Tuner(fn<fails_at_steps>, options).fit();
  EXPECT_EQ(results[0].status, tune::TrialStatus::error);
  EXPECT_THAT(*results[0].error, HasSubstr("failure before step 10"));
}

TEST(Tuner, FailuresToLoadACheckpointHaveABudgetOfTheirOwn) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1, {{"failures", 3}});
  options.run_config.failure_config = {.max_failures = 1, .max_restore_failures = 3};
  EXPECT_EQ(tune::Tuner(fn<fails_to_load>, options).fit().num_errors(), 0u);
  options.param_space = {{"failures", 5}};
  options.run_config.name = "more";
  EXPECT_EQ(tune::Tuner(fn<fails_to_load>, options).fit().num_errors(), 1u);
}

TEST(Tuner, FailFastStopsAllOthersAndMakesNoMore) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 20);
  options.run_config.failure_config.fail_fast = true;
  options.tune_config.max_concurrent_trials = 3;
  const tune::ResultGrid results = tune::Tuner(fn<first_one_fails>, options).fit();
  EXPECT_EQ(results.size(), 3u);
  EXPECT_EQ(results.num_errors(), 1u);
  EXPECT_EQ(results.num_terminated(), 2u);
}

fs::path event_file(const fs::path& trial) {
  for (const auto& entry : fs::directory_iterator(trial))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return entry.path();
  return {};
}

TEST(Tuner, TrialsThatFailedContinueOrBeginAnewWhenThatIsAskedFor) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<fails_at_steps>, plain_options(storage.path(), 2, {{"every", tune::randint(4, 5)}})).fit();
  const tune::ResultGrid left = tune::Tuner::restore(storage / "plain").fit();
  EXPECT_EQ(left.num_errors(), 2u);
  const tune::ResultGrid resumed = tune::Tuner::restore(storage / "plain", {.resume_errored = true}).fit();
  EXPECT_EQ(resumed.num_errors(), 2u);
  EXPECT_EQ(resumed[0].metrics_history().size(), 6u);  // steps 1 to 3 and 4 to 6
  const tune::ResultGrid anew = tune::Tuner::restore(storage / "plain", {.restart_errored = true}).fit();
  EXPECT_EQ(anew[0].metrics_history().size(), 9u);  // steps 1 to 3 once more
  EXPECT_EQ(lines_of(anew[0].path / "progress.csv").size(), 10u);
  EXPECT_EQ(lines_of(anew[0].path / "result.json").size(), 9u);
  const auto events = test_support::event_values(content_of(event_file(anew[0].path)));
  EXPECT_EQ(std::ranges::count(events, "ray/tune/done", &test_support::EventValue::tag), 9);
  // The trial failed three times: only the last session end is left.
  EXPECT_EQ(std::ranges::count(events, "_hparams_/session_end_info", &test_support::EventValue::tag), 1);
  EXPECT_EQ(lines_of(anew[0].path / "error.txt").size(), 3u);
}

TEST(Tuner, AWorkerThatHangsIsEndedAndItsTrialFailsWithTheCause) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 2);
  options.run_config.limits.time_between_reports = tune::Seconds(0.3);
  options.run_config.failure_config.max_failures = 1;
  const tune::ResultGrid results = tune::Tuner(fn<hangs>, options).fit();
  ASSERT_EQ(results.num_errors(), 2u);
  EXPECT_THAT(*results[0].error, HasSubstr("the worker hung: it has not reported for 0.3 s"));
  EXPECT_EQ(lines_of(results[0].path / "error.txt").size(), 2u);
}

TEST(Tuner, ATrialThatRunsTooLongFailsWithTheCause) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1);
  options.run_config.limits.time = tune::Seconds(0.3);
  options.run_config.failure_config.max_failures = 5;  // retries would not help
  for (const tune::Trainable& trainable : {tune::Trainable(fn<hangs>), tune::Trainable(fn<reports_now_and_then>)}) {
    options.run_config.name = trainable.name;
    options.param_space = {{"pause_ms", 20}};
    const tune::ResultGrid results = tune::Tuner(trainable, options).fit();
    EXPECT_THAT(*results[0].error, HasSubstr("has run for its limit of 0.3 s")) << trainable.name;
    EXPECT_EQ(lines_of(results[0].path / "error.txt").size(), 1u);
  }
}

// More nanoseconds than 64 bits hold.
TEST(Tuner, ALimitOfCenturiesEndsNothing) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1, {{"pause_ms", 20}});
  options.tune_config.time_budget = tune::Seconds(1e10);
  options.run_config.limits = {.time = tune::Seconds(1e10), .time_between_reports = tune::Seconds(1e10)};
  options.run_config.stop = {{"training_iteration", 5}};
  options.run_config.stop_grace_period = tune::Seconds(1e10);
  const tune::ResultGrid results = tune::Tuner(fn<reports_now_and_then>, options).fit();
  ASSERT_EQ(results.num_terminated(), 1u) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].metrics.get<std::int64_t>("training_iteration"), 5);
}

TEST(Tuner, AWorkerThatDoesNotStopIsEndedAndCountsAsStopped) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 2);
  options.run_config.stop = {{"training_iteration", 3}};
  options.run_config.stop_grace_period = tune::Seconds(0.2);
  const tune::ResultGrid results = tune::Tuner(fn<hangs_when_stopped>, options).fit();
  EXPECT_EQ(results.num_terminated(), 2u) << ::testing::PrintToString(results.errors());
}

TEST(Tuner, ASignalEndsTheExperimentInAnOrderlyWayAndTheNextOneEndsTheProgram) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryDirectory storage;
    ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
    ScenarioProcess process("is interrupted");
    process.line();
    while (lines_of(storage / "pbt/pbt_global.txt").empty()) ::usleep(1000);
    ::kill(process.process(), signal);
    EXPECT_THAT(process.line(),
                AllOf(HasSubstr("interrupted"), HasSubstr("Tuner::restore from " + (storage / "pbt").string())));
    EXPECT_EQ(process.wait(), 0);
    // All acknowledged reports have been recorded, so only steps after a trial's last checkpoint are repeated.
    std::int64_t repeated = 0;
    const tune::ResultGrid results = tune::Tuner::restore(storage / "pbt").fit();
    store::ExperimentStore::open(storage / "pbt")
        .visit({.result = [&](const store::ResultRow& row) { repeated += row.repeated ? 1 : 0; },
                .event = [](const store::EventRow&) {},
                .decision = [](const store::DecisionRow&) {}});
    EXPECT_EQ(results.num_terminated(), 8u);
    EXPECT_LE(repeated, 8) << "at most the one since each trial's last checkpoint";
    expect_every_witness_in_the_store(results);
    expect_tidy_directories(results);
  }
}
int be_interrupted() {
  say("begins");
  auto options = pbt_options(std::getenv("CADRE_TEST_STORAGE"));
  options.run_config.stop = {{"training_iteration", 300}};
  say(message_of<Interrupted>([&] { tune::Tuner(fn<learner>, options).fit(); }));
  return 0;
}
const bool is_interrupted = register_scenario("is interrupted", be_interrupted);

TEST(Tuner, TheSecondSignalEndsTheProgramAtOnceAndNothingIsLost) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
  ScenarioProcess process("is interrupted while it hangs");
  process.line();
  while (lines_of(storage / "plain/00000/result.json").empty()) ::usleep(1000);
  ::kill(process.process(), SIGINT);
  // A signal within 250 ms of the first one's arrival, which takes time on a busy machine, counts as the first one.
  EXPECT_FALSE(Watched(process.process()).ends_within(2'000)) << "it did not wait for its trials";
  ::kill(process.process(), SIGINT);
  EXPECT_EQ(process.wait(), -SIGINT);
  EXPECT_EQ(stored_steps(storage / "plain")[0], (std::multiset<std::int64_t>{1}));
}
const bool is_interrupted_while_it_hangs = register_scenario("is interrupted while it hangs", [] {
  say("begins");
  tune::Tuner(fn<hangs>, plain_options(std::getenv("CADRE_TEST_STORAGE"), 1)).fit();
  return 0;
});

TEST(Tuner, AnInterruptedExperimentWaitsForItsTrialsNoLongerThanItsGracePeriod) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
  ScenarioProcess process("is interrupted with little patience");
  process.line();
  while (lines_of(storage / "plain/00000/result.json").empty()) ::usleep(1000);
  ::kill(process.process(), SIGTERM);
  EXPECT_THAT(process.line(), HasSubstr("interrupted"));
  EXPECT_EQ(process.wait(), 0);
}
const bool is_interrupted_with_little_patience = register_scenario("is interrupted with little patience", [] {
  say("begins");
  auto options = plain_options(std::getenv("CADRE_TEST_STORAGE"), 2);
  options.run_config.stop_grace_period = tune::Seconds(0.2);
  say(message_of<Interrupted>([&] { tune::Tuner(fn<hangs>, options).fit(); }));
  return 0;
});

TEST(Tuner, AKilledExperimentGoesOnAndEndsAsOneThatNeverWas) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", (storage / "killed").c_str(), 1);
  for (int kills = 0; kills < 6; ++kills) {
    ScenarioProcess process(kills == 0 ? "pbt begins" : "pbt goes on");
    process.line();
    ::usleep(
        static_cast<useconds_t>(5'000 + 12'000 * kills));  // anywhere in the run: the outcome must not depend on it
    ::kill(process.process(), SIGKILL);
    process.wait();
  }
  tune::ResultGrid results = tune::Tuner::restore(storage / "killed/pbt", fn<learner>, pbt_options({}, true)).fit();
  EXPECT_EQ(results.num_terminated(), 8u);
  expect_every_witness_in_the_store(results);
  expect_tidy_directories(results);

  expect_the_same_end(results, storage / "undisturbed");
}

// Moves the directory to another place under another name.
void move_experiment(const fs::path& from, const fs::path& to) {
  fs::create_directories(to.parent_path());
  fs::rename(from, to);
}

// Kills an experiment in which unfinished trials have checkpoints to continue from; returns its directory.
fs::path kill_with_checkpoints(const fs::path& storage) {
  ::setenv("CADRE_TEST_STORAGE", storage.c_str(), 1);
  // A quick machine would end all trials in the time that a seal needs.
  ScenarioProcess process("pbt runs long", {}, {"CADRE_TEST_LAST_STEP=200"});
  process.line();
  while (lines_of(storage / "pbt/pbt_global.txt").size() < 3) ::usleep(1000);
  ::usleep(700'000);  // until some checkpoints are sealed
  ::kill(process.process(), SIGKILL);
  process.wait();
  return storage / "pbt";
}
const bool runs_long = register_scenario("pbt runs long", [] {
  say("begins");
  auto options = pbt_options(std::getenv("CADRE_TEST_STORAGE"));
  options.run_config.stop = {{"training_iteration", 400}};
  options.run_config.checkpoint_config.num_to_keep = 3;
  tune::Tuner(fn<learner>, options).fit();
  return 0;
});

std::vector<store::CheckpointRow> stored_checkpoints(const fs::path& experiment) {
  return store::ExperimentStore::open(experiment).checkpoints();
}

std::vector<std::int64_t> lost_checkpoints(const fs::path& experiment) {
  std::vector<std::int64_t> lost;
  store::ExperimentStore::open(experiment)
      .visit({.result = [](const store::ResultRow&) {},
              .event =
                  [&](const store::EventRow& row) {
                    if (row.kind != "controller_started") return;
                    const Config data(base::parse_json(row.data, "an event").dict());
                    lost = data.get<std::vector<std::int64_t>>("lost_checkpoints");
                  },
              .decision = [](const store::DecisionRow&) {}});
  return lost;
}

void expect_it_goes_on_without(const fs::path& experiment, const std::set<std::int64_t>& damaged) {
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  const auto lost = lost_checkpoints(experiment);
  EXPECT_EQ(std::set(lost.begin(), lost.end()), damaged);
  expect_every_witness_in_the_store(results);
  expect_tidy_directories(results);
}

// Returns the newest checkpoint of each trial.
std::map<std::int64_t, store::CheckpointRow> newest_checkpoints(const fs::path& experiment) {
  std::map<std::int64_t, store::CheckpointRow> newest;
  for (const store::CheckpointRow& row : stored_checkpoints(experiment)) newest[row.trial] = row;
  return newest;
}

TEST(Tuner, MissingAndCutCheckpointsAreNoticedAndTheirTrialsGoOnFromOlderOnes) {
  const TemporaryDirectory storage;
  const fs::path experiment = kill_with_checkpoints(storage.path());
  std::set<std::int64_t> damaged;
  for (const auto& [trial, row] : newest_checkpoints(experiment)) {
    if (trial % 2 == 0) {
      fs::remove_all(experiment / row.directory);
    } else {
      fs::resize_file(experiment / row.directory / "state", 1);
    }
    damaged.insert(row.id);
  }
  ASSERT_GT(damaged.size(), 4u);
  expect_it_goes_on_without(experiment, damaged);
}

TEST(Tuner, AFlippedBitInASealedCheckpointIsNoticed) {
  const TemporaryDirectory storage;
  const fs::path experiment = kill_with_checkpoints(storage.path());
  // Another controller seals all checkpoints and is interrupted.
  {
    ScenarioProcess process("seals and stops");
    process.line();
    EXPECT_EQ(process.wait(), 0);
  }
  for (const store::CheckpointRow& row : stored_checkpoints(experiment)) {
    ASSERT_TRUE(row.synced) << row.directory;
    std::fstream file(experiment / row.directory / "state", std::ios::in | std::ios::out | std::ios::binary);
    const char first = static_cast<char>(file.get());
    file.seekp(0);
    file.put(static_cast<char>(first ^ 1));
  }
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  // Collects the launches that the last controller decided at its start.
  std::int64_t start = 0;
  std::vector<std::string> launched_from;
  store::ExperimentStore::open(experiment)
      .visit({.result = [](const store::ResultRow&) {},
              .event =
                  [&](const store::EventRow& row) {
                    if (row.kind != "controller_started") return;
                    start = row.sequence;
                    launched_from.clear();
                  },
              .decision =
                  [&](const store::DecisionRow& row) {
                    if (row.kind != "launch" || row.cause != start) return;
                    const Config launch(base::parse_json(row.data, "a launch").dict());
                    launched_from.push_back(launch.get<std::string>("checkpoint"));
                  }});
  EXPECT_EQ(launched_from, std::vector<std::string>(4)) << "from the beginning, because all are damaged";
}
const bool seals_and_stops = register_scenario("seals and stops", [] {
  say("begins");
  std::thread([] {  // sends SIGINT as soon as a handler is installed
    for (struct sigaction action = {}; action.sa_handler == SIG_DFL; ::sigaction(SIGINT, nullptr, &action))
      ::usleep(100);
    ::kill(::getpid(), SIGINT);
  })
      .detach();
  const fs::path experiment = fs::path(std::getenv("CADRE_TEST_STORAGE")) / "pbt";
  try {
    tune::Tuner::restore(experiment).fit();
  } catch (const Interrupted&) {
    return 0;
  }
  return 1;
});

// Changes a recorded exploit as if another version of the program had decided; returns its event.
std::int64_t change_a_decision(const fs::path& experiment) {
  store::ExperimentStore store = store::ExperimentStore::open(experiment);
  std::vector<store::DecisionRow> decisions;
  std::int64_t changed = 0;
  store.visit({.result = [](const store::ResultRow&) {},
               .event = [](const store::EventRow&) {},
               .decision =
                   [&](const store::DecisionRow& row) {
                     decisions.push_back(row);
                     if (changed == 0 && row.kind == "exploit") changed = row.cause;
                   }});
  store.remove_decisions_from(changed);
  for (store::DecisionRow& row : decisions) {
    if (row.cause < changed) continue;
    if (row.cause == changed && row.kind == "exploit") row.data = R"({"donor": 0})";
    store.add(row);
  }
  store.commit();
  return changed;
}

TEST(Tuner, ADecisionThatDiffersIsAnErrorThatNamesTheEventOrIsAllowed) {
  const TemporaryDirectory storage;
  const fs::path experiment = kill_with_checkpoints(storage.path());
  const std::int64_t event = change_a_decision(experiment);
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(experiment).fit(); }),
              AllOf(HasSubstr("after event " + std::to_string(event) + " the store records \"exploit\""),
                    HasSubstr("but this program decides \"exploit\""), HasSubstr("allow the divergence")));
  const tune::ResultGrid results = tune::Tuner::restore(experiment, {.allow_divergence = true}).fit();
  EXPECT_EQ(results.num_terminated(), 8u) << ::testing::PrintToString(results.errors());
  expect_tidy_directories(results);
  EXPECT_EQ(tune::Tuner::restore(experiment).fit().num_terminated(), 8u) << "the store agrees with itself again";
}

// Expects TensorBoard's file to have every result once and the three values of the trial's session.
void expect_events_of(const std::vector<Metrics>& history, const fs::path& trial) {
  std::vector<float> scores;
  std::size_t of_session = 0;
  for (const test_support::EventValue& value : test_support::event_values(content_of(event_file(trial)))) {
    if (value.tag.starts_with("_hparams_/")) ++of_session;
    if (value.tag == "ray/tune/score") scores.push_back(value.scalar);
  }
  ASSERT_EQ(scores.size(), history.size()) << trial;
  for (std::size_t i = 0; i < scores.size(); ++i)
    EXPECT_EQ(scores[i], static_cast<float>(history[i].get<double>("score")));
  EXPECT_EQ(of_session, 3u) << trial;
}

TEST(Tuner, ResultFilesThatAreCutChangedOrGoneAreRepaired) {
  const TemporaryDirectory storage;
  const fs::path experiment = kill_with_checkpoints(storage.path());
  {
    ScenarioProcess process("seals and stops");  // and leaves a snapshot
    process.line();
    EXPECT_EQ(process.wait(), 0);
  }
  int number = 0;
  for (const auto& entry : fs::directory_iterator(experiment)) {
    if (!entry.is_directory()) continue;
    const fs::path json = entry.path() / "result.json";
    const fs::path csv = entry.path() / "progress.csv";
    const std::string content = content_of(json);
    switch (number++ % 4) {
      case 0:
        fs::resize_file(json, content.size() - 5);
        break;
      case 1:
        base::replace_file(csv, content_of(csv).replace(100, 1, "~"));
        break;
      case 2:
        fs::remove(csv);
        fs::remove(event_file(entry.path()));
        break;
      case 3:
        std::ofstream(json, std::ios::app) << "{\"torn";
        std::ofstream(event_file(entry.path()), std::ios::app) << "torn";
        break;
    }
  }
  std::ofstream(experiment / "pbt_global.txt", std::ios::app) << "[\"torn";
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  for (const tune::Result& result : results) {
    const std::vector<Metrics> history = result.metrics_history();
    const std::vector<std::string> lines = lines_of(result.path / "result.json");
    ASSERT_EQ(lines.size(), history.size()) << result.path;
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(Config(base::parse_json(lines[i], "a line").dict()).get<double>("score"),
                history[i].get<double>("score"));
    EXPECT_EQ(lines_of(result.path / "progress.csv").size(), history.size() + 1);
    expect_events_of(history, result.path);
  }
  for (const std::string& line : lines_of(experiment / "pbt_global.txt"))
    EXPECT_EQ(base::parse_json(line, "pbt_global.txt").items().size(), 6u);
}

TEST(Tuner, ACheckpointThatWasNotSealedWhenThePowerWentIsNotTrusted) {
  const TemporaryDirectory storage;
  const fs::path experiment = kill_with_checkpoints(storage.path());
  std::set<std::int64_t> damaged;
  {
    const auto newest = newest_checkpoints(experiment);
    store::ExperimentStore store = store::ExperimentStore::open(experiment);
    for (const auto& [trial, row] : newest) {
      store::CheckpointRow changed = row;
      changed.boot = "another one";
      changed.synced = trial % 2 == 0;
      if (row.manifest.empty()) changed.synced = false;
      store.remove_checkpoint(row.id);
      store.add(changed);
      if (!changed.synced) damaged.insert(row.id);
    }
    store.commit();
  }
  expect_it_goes_on_without(experiment, damaged);
}

TEST(Tuner, AKilledExperimentGoesOnFromItsDirectoryAloneWhereverThatIs) {
  const TemporaryDirectory storage;
  fs::path place = storage / "killed/pbt";
  ::setenv("CADRE_TEST_STORAGE", (storage / "killed").c_str(), 1);
  for (int kills = 0; kills < 4; ++kills) {
    ::setenv("CADRE_TEST_EXPERIMENT", place.c_str(), 1);
    ScenarioProcess process(kills == 0 ? "pbt begins" : "pbt goes on from its directory");
    process.line();
    // Waits until there is an exploit to continue from; the time of the kill after that does not matter.
    wait_for_lines(place / "pbt_global.txt", static_cast<std::size_t>(kills + 1), process);
    ::kill(process.process(), SIGKILL);
    process.wait();
    const fs::path next = storage / ("moved " + std::to_string(kills)) / (std::to_string(kills) + ".pbt");
    move_experiment(place, next);
    place = next;
  }
  fs::rename(place.parent_path(), storage / "parent");
  const tune::ResultGrid results = tune::Tuner::restore(storage / "parent" / place.filename()).fit();
  EXPECT_EQ(results.experiment_path(), storage / "parent" / place.filename());
  expect_every_witness_in_the_store(results);
  expect_tidy_directories(results);
  expect_the_same_end(results, storage / "undisturbed");
}

int go_on_from_directory() {
  say("begins");
  tune::Tuner::restore(std::getenv("CADRE_TEST_EXPERIMENT")).fit();
  return 0;
}
const bool goes_on_from_directory = register_scenario("pbt goes on from its directory", go_on_from_directory);

// Returns options of an experiment that does not end before it is killed.
tune::TunerOptions long_pbt_options(const fs::path& storage) {
  auto options = pbt_options(storage);
  options.run_config.stop = {{"training_iteration", 300}};
  return options;
}

// Returns a child of the process, or -1 if there is none.
pid_t child_of(pid_t parent) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().c_str()[0])) == 0) continue;
    const std::string stat = content_of(entry.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end != stat.npos && std::atoi(stat.c_str() + name_end + 4) == parent)
      return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST(Tuner, AKilledForkServerIsAnInterruptionAndNoTrialsFault) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", (storage / "lost").c_str(), 1);
  ScenarioProcess process("pbt loses its server");
  process.line();
  while (lines_of(storage / "lost/pbt/pbt_global.txt").empty()) ::usleep(1000);
  ASSERT_EQ(::kill(child_of(process.process()), SIGKILL), 0);
  EXPECT_THAT(process.line(), AllOf(HasSubstr("interrupted"), HasSubstr("Tuner::restore from")));
  EXPECT_EQ(process.wait(), 0);
  const tune::ResultGrid results = tune::Tuner::restore(storage / "lost/pbt", fn<learner>, long_pbt_options({})).fit();
  EXPECT_EQ(results.num_terminated(), 8u);
  expect_every_witness_in_the_store(results);
}

int lose_the_server() {
  say("begins");
  const auto options = long_pbt_options(std::getenv("CADRE_TEST_STORAGE"));
  const std::string message = message_of<EngineError>([&] { tune::Tuner(fn<learner>, options).fit(); });
  say(message);
  return 0;
}
const bool loses = register_scenario("pbt loses its server", lose_the_server);

int run_in_scenario(bool restore) {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  say("begins");
  if (restore) {
    // The kill may have come before there was an experiment.
    if (!tune::Tuner::can_restore(storage / "pbt")) return run_in_scenario(false);
    tune::Tuner::restore(storage / "pbt", fn<learner>, pbt_options({}, true)).fit();
  } else {
    fs::remove_all(storage);
    tune::Tuner(fn<learner>, pbt_options(storage, true)).fit();
  }
  return 0;
}
const bool begins = register_scenario("pbt begins", [] { return run_in_scenario(false); });
const bool goes_on = register_scenario("pbt goes on", [] { return run_in_scenario(true); });

// Returns everything in a directory: the content of each file, and when files and directories were changed.
std::map<fs::path, std::pair<std::string, fs::file_time_type>> snapshot_of(const fs::path& directory) {
  std::map<fs::path, std::pair<std::string, fs::file_time_type>> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    found[entry.path()] = {entry.is_regular_file() ? content_of(entry.path()) : "", entry.last_write_time()};
  return found;
}

TEST(Tuner, ANumberThatAFunctionReturnsIsReportedUnderTheNameOfTheMetric) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = plain_options(storage.path(), 1, {{"x", tune::grid_search({1.5, 3.0})}});
  const tune::ResultGrid results = tune::Tuner(fn<returns_a_number>, options).fit();
  EXPECT_EQ(results.get_best_result().metrics.get<double>("score"), 6);
  EXPECT_EQ(results[0].num_results(), 1u);

  options.run_config.name = "without_metric";
  options.tune_config.metric = {};
  const tune::ResultGrid without = tune::Tuner(fn<returns_a_number>, options).fit();
  EXPECT_EQ(without.get_best_result(tune::minimize("_metric")).metrics.get<double>("_metric"), 3);
}

TEST(Tuner, MetricsThatAFunctionReturnsAreItsLastReport) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(fn<returns_metrics>, plain_options(storage.path(), 1, {{"x", 0.5}})).fit();
  EXPECT_EQ(results[0].num_results(), 2u);
  EXPECT_EQ(results[0].metrics.get<double>("score"), 0.5);
  EXPECT_EQ(results[0].metrics.get<std::string>("other"), "text");
  EXPECT_EQ(results[0].metrics.get<std::int64_t>("training_iteration"), 2);
}

TEST(Tuner, AnExistingExperimentIsNeverRunOver) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit();
  const auto before = snapshot_of(storage.path());
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit(); }),
              AllOf(HasSubstr((storage / "plain").string()), HasSubstr("exists already"), HasSubstr("restore")));
  EXPECT_EQ(snapshot_of(storage.path()), before);
}

TEST(Tuner, AnExperimentThatIsBeingRunIsNeitherRunNorRestoredAgain) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
  ScenarioProcess process("waits for ever");
  wait_for_lines(storage / "plain/00000/stdout", 1, process);
  ASSERT_EQ(::kill(process.process(), SIGSTOP), 0);  // later changes are not made by this process
  ASSERT_EQ(::waitpid(process.process(), nullptr, WUNTRACED), process.process());
  const auto before = snapshot_of(storage.path());
  const std::string holder = "is being run already, by process " + std::to_string(process.process());
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit(); }),
              AllOf(HasSubstr(holder), HasSubstr("another name")));
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(storage / "plain"); }), HasSubstr(holder));
  EXPECT_EQ(snapshot_of(storage.path()), before);
}

void waits_for_ever(const Config&) {
  std::puts("waits");
  for (;;) ::pause();
}
const bool waits = register_scenario("waits for ever", [] {
  tune::Tuner(fn<waits_for_ever>, plain_options(std::getenv("CADRE_TEST_STORAGE"), 1)).fit();
  return 0;
});

TEST(Tuner, ADirectoryThatIsNoExperimentIsLeftAlone) {
  const TemporaryDirectory storage;
  fs::create_directory(storage / "plain");
  std::ofstream(storage / "plain/thesis.tex") << "chapter 1";
  EXPECT_THROW(tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit(), InvalidArgument);
  EXPECT_EQ(content_of(storage / "plain/thesis.tex"), "chapter 1");
}

TEST(Tuner, AnExperimentThatWasKilledBeforeItHadAStoreBeginsAnew) {
  const TemporaryDirectory storage;
  fs::create_directory(storage / "plain");
  for (const char* name : {".lock", "experiment.db.new", "experiment.db.new-wal"})
    std::ofstream(storage / "plain" / name) << "half";
  EXPECT_FALSE(tune::Tuner::can_restore(storage / "plain"));
  EXPECT_EQ(tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit().num_terminated(), 1u);
}

TEST(Tuner, RestoringNeedsTheExperimentItsTrainableAndItsOptions) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<speaks>, plain_options(storage.path(), 2)).fit();
  EXPECT_THROW(tune::Tuner::restore(storage / "nothing", fn<speaks>, plain_options({}, 2)), NotFound);
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { tune::Tuner::restore(storage / "plain", fn<learner>, plain_options({}, 2)); }),
      HasSubstr("trainable/name: it was \"speaks\", and now is \"learner\""));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { tune::Tuner::restore(storage / "plain", fn<speaks>, plain_options({}, 3)); }),
      HasSubstr("tune_config/num_samples: it was 2, and now is 3"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { tune::Tuner::restore(storage / "plain", fn<speaks>, plain_options({}, 2, {{"a", 1}})); }),
              HasSubstr("param_space/a: it was not there, and now is {"));
  EXPECT_EQ(tune::Tuner::restore(storage / "plain/", fn<speaks>, plain_options({}, 2)).fit().size(), 2u);
}

TEST(Tuner, AFinishedExperimentIsFinishedUntilARestoredOneRuns) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit();
  const auto state = [&] { return tune::ResultGrid::from_directory(storage / "plain").summary().state; };
  EXPECT_THROW(tune::Tuner::restore(storage / "plain", fn<learner>, plain_options({}, 1)), InvalidArgument);
  EXPECT_EQ(state(), tune::ExperimentState::finished);
  tune::Tuner restored = tune::Tuner::restore(storage / "plain");
  EXPECT_EQ(state(), tune::ExperimentState::finished);
  restored.fit();
  EXPECT_EQ(state(), tune::ExperimentState::finished);
}

TEST(Tuner, AnExperimentIsFoundByEveryPathThatLeadsToIt) {
  const TemporaryDirectory storage;
  const fs::path before = fs::current_path();
  fs::current_path(storage.path());
  fs::create_directory("relative");
  const fs::path made =
      tune::Tuner(fn<speaks>, plain_options("relative/", 1, {{"a", tune::uniform(0, 1)}})).fit().experiment_path();
  fs::create_directory_symlink("relative/plain", "link");
  fs::create_directory_symlink("relative", "parent link");
  for (const char* path : {"relative/plain", "relative/plain//", "./relative/../relative/plain", "link", "link/",
                           "link/../plain", "parent link/plain"}) {
    const tune::ResultGrid results = tune::Tuner::restore(path).fit();
    EXPECT_EQ(results.experiment_path(), made) << path;
    EXPECT_EQ(results.num_terminated(), 1u) << path;
    EXPECT_TRUE(fs::exists(results[0].path / "params.json")) << path;
  }
  EXPECT_THAT(message_of<NotFound>([] { tune::Tuner::restore("relative"); }),
              HasSubstr((storage / "relative").string()));
  fs::current_path(before);
  EXPECT_EQ(made, storage / "relative/plain");
}

TEST(Tuner, ARenamedExperimentMayHaveANameThatANewOneMayNot) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit();
  fs::rename(storage / "plain", storage / ".hidden");
  EXPECT_EQ(tune::Tuner::restore(storage / ".hidden").fit().num_terminated(), 1u);
}

TEST(Tuner, AnExperimentOfAnotherProgramNamesItsTrainableAndThoseThatThereAre) {
  const TemporaryDirectory storage;
  const tune::Trainable foreign{"train_elsewhere"};
  const std::string options = base::to_json(tune::describe(foreign, plain_options({}, 1)));
  store::ExperimentStore::create(storage.path(), {"foreign", foreign.name, options});
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner::restore(storage.path()); }),
              AllOf(HasSubstr("\"train_elsewhere\""), HasSubstr("learner, "), HasSubstr("another program?")));
}

TEST(Tuner, StoredOptionsThatCannotBeReadAreNamedWithTheStore) {
  const TemporaryDirectory storage;
  store::ExperimentStore::create(storage.path(), {"odd", "speaks", R"({"trainable": 1})"});
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(storage.path()); }),
              AllOf(HasSubstr((storage / "experiment.db").string()), HasSubstr("trainable: 1 is no dictionary")));
}

TEST(Tuner, TrialsThatFailedEitherContinueOrBeginAnew) {
  const TemporaryDirectory storage;
  tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit();
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { tune::Tuner::restore(storage / "plain", {.resume_errored = true, .restart_errored = true}); }),
              AllOf(HasSubstr("resume_errored"), HasSubstr("restart_errored")));
}

TEST(Tuner, MoreThanTheMachineHasIsRefusedBeforeAnythingRan) {
  const TemporaryDirectory storage;
  const auto greedy = tune::with_resources(fn<speaks>, {.cpus = 1, .custom = {{"license", 3}}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner(greedy, plain_options(storage.path(), 1)).fit(); }),
              HasSubstr("3 license (there are 2)"));
  EXPECT_TRUE(fs::is_empty(storage.path()));
}

TEST(Tuner, AnUnwritableStoragePathIsNamed) {
  EXPECT_THAT(message_of<StorageError>([] { tune::Tuner(fn<speaks>, plain_options("/proc/cadre", 1)).fit(); }),
              HasSubstr("/proc/cadre"));
}

TEST(Tuner, WhatATrialSaysIsInItsFiles) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<speaks>, plain_options(storage.path(), 1)).fit();
  EXPECT_EQ(content_of(results[0].path / "stdout"), "a word on standard output\n");
  EXPECT_EQ(content_of(results[0].path / "stderr"), "a word on standard error\n");
}

TEST(Tuner, ADirectoryOfTheUsersIsCopiedAndStays) {
  const TemporaryDirectory storage;
  const TemporaryDirectory own;
  std::ofstream(own / "weights") << "1 2 3";
  const tune::ResultGrid results =
      tune::Tuner(fn<copies_a_directory_of_its_own>, plain_options(storage.path(), 1, {{"own", own.path().string()}}))
          .fit();
  EXPECT_EQ(results.num_errors(), 0u) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(content_of(results[0].checkpoint->path() / "weights"), "1 2 3");
}

TEST(Tuner, AWriterThatThrowsLeavesNothing) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<writer_throws>, plain_options(storage.path(), 1)).fit();
  EXPECT_EQ(results[0].metrics.get<int>("score"), 2);
  EXPECT_EQ(results[0].metrics.get<int>("training_iteration"), 1);
  for (const auto& entry : fs::directory_iterator(results[0].path)) EXPECT_FALSE(entry.is_directory()) << entry.path();
}

TEST(Tuner, ReportBelongsToTheFunctionsThread) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<reports_from_another_thread>, plain_options(storage.path(), 1)).fit();
  EXPECT_THAT(*results[0].error, HasSubstr("another thread"));
}

TEST(Tuner, AStopThatIsSwallowedComesAgainAndCountsOnce) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1);
  options.run_config.stop = {{"training_iteration", 3}};
  const tune::ResultGrid results = tune::Tuner(fn<swallows_the_stop>, options).fit();
  EXPECT_EQ(results[0].status, tune::TrialStatus::terminated);
  EXPECT_EQ(results[0].metrics_history().size(), 3u);
  EXPECT_EQ(lines_of(results[0].path / "swallowed").size(), 8u);
}

TEST(Tuner, ACheckpointThatIsNoneOfItsOwnFailsTheTrialAndTouchesNothing) {
  const std::string no_file = ".reporting_" + std::string(300, 'x');
  for (const std::string& name : {std::string("../../elsewhere"), std::string(".reporting_gone"), std::string("/etc"),
                                  std::string("checkpoint_000000"), no_file}) {
    const TemporaryDirectory storage;
    fs::create_directory(storage / "elsewhere");
    const tune::ResultGrid results =
        tune::Tuner(tune::Trainable{"reports_any_name"}, plain_options(storage.path(), 1, {{"name", name}})).fit();
    EXPECT_THAT(*results[0].error, HasSubstr("\"" + name + "\"")) << name;
    EXPECT_TRUE(fs::exists(storage / "elsewhere"));
  }
}
const bool reports_any_name = [] {
  worker::register_entry("reports_any_name", [](channel::WorkerEnd& controller, const Value& payload) {
    const Config fields(payload.dict());
    controller.report({.step = 1, .metrics = {}, .checkpoint = fields.get<std::string>("config/name")});
    return Value();
  });
  return true;
}();

TEST(Tuner, TwoExperimentsOneAfterTheOtherInOneProcess) {
  const TemporaryDirectory storage;
  for (const char* name : {"first", "second"}) {
    auto options = plain_options(storage.path(), 3);
    options.run_config.name = name;
    EXPECT_EQ(tune::Tuner(fn<speaks>, options).fit().num_terminated(), 3u);
  }
}

TEST(Tuner, WithoutANameTheExperimentIsNamedByItsFunctionAndTheTime) {
  const TemporaryDirectory storage;
  auto options = plain_options(storage.path(), 1);
  options.run_config.name.clear();
  const fs::path first = tune::Tuner(fn<speaks>, options).fit().experiment_path();
  const fs::path second = tune::Tuner(fn<speaks>, options).fit().experiment_path();
  EXPECT_THAT(first.filename().string(), StartsWith("speaks_20"));
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace cadre::system_tests
