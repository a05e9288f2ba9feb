// Signals that reach a controller, its fork server and all workers at once, as service managers, batch systems and
// containers send them: nothing fails for good, and everything goes on where it was.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "cadre/train.h"
#include "cadre/tune.h"
#include "engine/local/process_stat.h"
#include "scenario.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

bool comes_true(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return condition();
}

// Returns the process and all processes below it, parents first.
std::vector<pid_t> family_of(pid_t process) {
  std::vector<pid_t> family{process};
  for (std::size_t next = 0; next < family.size(); ++next) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t other = std::atoi(entry.path().filename().c_str());
      if (other <= 0) continue;
      const auto stat = engine::local::read_process_stat(entry.path());
      if (stat && stat->parent == family[next]) family.push_back(other);
    }
  }
  return family;
}

enum class Order { controller_first, workers_first };

void signal_all(pid_t controller, int signal, Order order) {
  std::vector<pid_t> family = family_of(controller);
  if (order == Order::workers_first) std::ranges::reverse(family);
  for (const pid_t process : family) {
    ::kill(process, signal);
    // Leaves time for a worker's end to be noticed before the controller gets its own signal.
    if (order == Order::workers_first) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::int64_t read_number(const fs::path& file) {
  std::int64_t number = 0;
  std::ifstream(file) >> number;
  return number;
}

// ---- Training functions

// Saves every step and is busy in between.
void counts_steps(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) step = read_number(checkpoint->path() / "step");
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    tune::report({{"step", step}}, [&](const fs::path& directory) { std::ofstream(directory / "step") << step; });
  }
}

// Does the same, but dies of the signals as a program without Cadre does.
void counts_steps_unprotected(const Config& config) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  counts_steps(config);
}

// Does the same; fails if the program that it has started dies.
void counts_steps_with_a_program(const Config& config) {
  const pid_t program = ::fork();
  if (program == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) step = read_number(checkpoint->path() / "step");
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (::waitpid(program, nullptr, WNOHANG) != 0) throw std::runtime_error("the program has died");
    tune::report({{"step", step}}, [&](const fs::path& directory) { std::ofstream(directory / "step") << step; });
  }
}

std::int64_t trains_steps(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) step = read_number(checkpoint->path() / "step");
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool first = train::get_context().get_world_rank() == 0;
    train::report({{"step", step}},
                  [&](const fs::path& directory) {
                    if (first) std::ofstream(directory / "step") << step;
                  },
                  {.validation = config.get<bool>("validates", false)});
  }
  return step;
}

std::int64_t trains_steps_unprotected(const Config& config) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  return trains_steps(config);
}

Metrics validates_slowly(const Checkpoint& checkpoint) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return {{"validated", read_number(checkpoint.path() / "step")}};
}

std::int64_t trains_steps_with_a_program(const Config& config) {
  if (::fork() == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  return trains_steps(config);
}

void train_in_trial(const train::Loop& loop, const Config& config) {
  train::Trainer(loop, {.train_loop_config = config,
                        .scaling_config = {.num_workers = 2},
                        .run_config = {.name = "inner", .checkpoint_config = {.num_to_keep = 1}}})
      .fit();
}
void trains_in_trial(const Config& config) { train_in_trial(fn<trains_steps>, config); }
void trains_in_trial_with_programs(const Config& config) { train_in_trial(fn<trains_steps_with_a_program>, config); }

// ---- Experiments

tune::Trainable trainable_named(const std::string& name) {
  const PlacementGroup two_workers{{{.cpus = 0}, {.cpus = 1}, {.cpus = 1}}};
  if (name == "nested") return tune::with_resources(fn<trains_in_trial>, two_workers);
  if (name == "nested with programs") return tune::with_resources(fn<trains_in_trial_with_programs>, two_workers);
  if (name == "unprotected") return fn<counts_steps_unprotected>;
  return name == "program" ? tune::Trainable(fn<counts_steps_with_a_program>) : fn<counts_steps>;
}

const bool experiment_is_interrupted = register_scenario("experiment is interrupted", [] {
  const std::string name = std::getenv("CADRE_TEST_TRAINABLE");
  tune::Tuner tuner(trainable_named(name), {.param_space = {{"steps", 100'000}},
                                            .tune_config = {.num_samples = 2},
                                            .run_config = {.name = "signals",
                                                           .storage_path = std::getenv("CADRE_TEST_STORAGE"),
                                                           .checkpoint_config = {.num_to_keep = 2},
                                                           .verbose = 0}});
  say("begins");
  say(message_of<Interrupted>([&] { tuner.fit(); }));
  return 0;
});

std::size_t results_of(const fs::path& experiment) {
  std::size_t fewest = 1000;
  const tune::ResultGrid results = tune::ResultGrid::from_directory(experiment);
  for (const tune::Result& result : results) fewest = std::min(fewest, result.metrics_history().size());
  return results.size() < 2 ? 0 : fewest;
}

struct Case {
  int signal;
  Order order;
  std::string trainable;
};
std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const std::string order = info.param.order == Order::workers_first ? "WorkersFirst" : "ControllerFirst";
  return std::string(::sigabbrev_np(info.param.signal)) + order + "_" + info.param.trainable;
}

class SignalToAll : public ::testing::TestWithParam<Case> {};

TEST_P(SignalToAll, InterruptsTheExperimentAndNoTrialFails) {
  const auto& [signal, order, trainable] = GetParam();
  const TemporaryDirectory storage;
  ScenarioProcess process("experiment is interrupted", {},
                          {"CADRE_TEST_STORAGE=" + storage.path().string(), "CADRE_TEST_TRAINABLE=" + trainable});
  process.line();
  ASSERT_TRUE(comes_true([&] { return fs::exists(storage / "signals/experiment.db"); }));
  ASSERT_TRUE(comes_true([&] { return results_of(storage / "signals") > 2; }));
  signal_all(process.process(), signal, order);
  EXPECT_THAT(process.line(), HasSubstr("Tuner::restore from"));
  EXPECT_EQ(process.wait(), 0);
  const tune::ResultGrid results = tune::ResultGrid::from_directory(storage / "signals");
  EXPECT_EQ(results.num_errors(), 0u) << ::testing::PrintToString(results.errors());
  for (const tune::Result& result : results) {
    EXPECT_EQ(result.status, tune::TrialStatus::pending);
    EXPECT_EQ(result.failures, 0);
    if (trainable == "plain") EXPECT_EQ(result.attempts, 1) << "a worker died of what was meant for the controller";
  }
}
INSTANTIATE_TEST_SUITE_P(
    Signals, SignalToAll,
    ::testing::Values(Case{SIGTERM, Order::controller_first, "plain"}, Case{SIGTERM, Order::workers_first, "plain"},
                      Case{SIGINT, Order::workers_first, "plain"}, Case{SIGHUP, Order::controller_first, "plain"},
                      Case{SIGHUP, Order::workers_first, "plain"},
                      Case{SIGTERM, Order::controller_first, "unprotected"},
                      Case{SIGTERM, Order::workers_first, "unprotected"},
                      Case{SIGTERM, Order::controller_first, "program"},
                      Case{SIGTERM, Order::controller_first, "nested"}, Case{SIGINT, Order::workers_first, "nested"}),
    name_of);

// ---- Training runs

void expect_no_validation_failed(const fs::path& run) {
  std::ifstream validations(run / "validations.json");
  for (std::string line; std::getline(validations, line);) EXPECT_THAT(line, HasSubstr(R"("error": "")"));
}

const bool training_gets_signals = register_scenario("training gets signals", [] {
  const bool unprotected = std::string(std::getenv("CADRE_TEST_TRAINABLE")) == "unprotected";
  train::Trainer trainer(
      unprotected ? train::Loop(fn<trains_steps_unprotected>) : fn<trains_steps>,
      {.train_loop_config = {{"steps", 100'000}, {"validates", true}},
       .scaling_config = {.num_workers = 2, .resources_per_worker = Resources{.cpus = 0.01}},
       .run_config = {.name = "run",
                      .storage_path = std::getenv("CADRE_TEST_STORAGE"),
                      .failure_config = {.max_failures = 0, .max_preemption_failures = 0},
                      .checkpoint_config = {.num_to_keep = 2},
                      .verbose = 0},
       .validation = {.function = fn<validates_slowly>, .resources = {.cpus = 0.01}, .max_retries = 0}});
  say("begins");
  say(message_of<Interrupted>([&] { trainer.fit(); }));
  return 0;
});

class SignalToAllOfARun : public ::testing::TestWithParam<Case> {};

TEST_P(SignalToAllOfARun, InterruptsItAndNothingFails) {
  const auto& [signal, order, trainable] = GetParam();
  const TemporaryDirectory storage;
  ScenarioProcess process("training gets signals", {},
                          {"CADRE_TEST_STORAGE=" + storage.path().string(), "CADRE_TEST_TRAINABLE=" + trainable});
  process.line();
  ASSERT_TRUE(comes_true([&] { return content_of(storage / "run/result.json").size() > 1000; }));
  signal_all(process.process(), signal, order);
  EXPECT_THAT(process.line(), HasSubstr("Trainer::restore from"));
  EXPECT_EQ(process.wait(), 0);
  const train::Result result = train::Result::from_directory(storage / "run");
  EXPECT_EQ(result.attempts, 1);
  EXPECT_THAT(result.error.value_or(""), ::testing::Not(HasSubstr("failed")));
  expect_no_validation_failed(storage / "run");
}
INSTANTIATE_TEST_SUITE_P(Signals, SignalToAllOfARun,
                         ::testing::Values(Case{SIGTERM, Order::controller_first, "plain"},
                                           Case{SIGTERM, Order::workers_first, "plain"},
                                           Case{SIGINT, Order::workers_first, "plain"},
                                           Case{SIGHUP, Order::workers_first, "plain"},
                                           Case{SIGTERM, Order::workers_first, "unprotected"}),
                         name_of);

// ---- The controller's own signals

TEST(Signals, TheSameOneTwiceInAMomentIsOneRequest) {
  const TemporaryDirectory storage;
  ScenarioProcess process("experiment is interrupted", {},
                          {"CADRE_TEST_STORAGE=" + storage.path().string(), "CADRE_TEST_TRAINABLE=plain"});
  process.line();
  ASSERT_TRUE(comes_true([&] { return fs::exists(storage / "signals/experiment.db"); }));
  ASSERT_TRUE(comes_true([&] { return results_of(storage / "signals") > 2; }));
  ::kill(process.process(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the first one has been handled
  ::kill(process.process(), SIGHUP);
  EXPECT_THAT(process.line(), HasSubstr("Tuner::restore from"));
  EXPECT_EQ(process.wait(), 0);
}

// A scenario with a terminal of its own, whose process leads a session.
class OnATerminal {
 public:
  OnATerminal(const std::string& scenario, const fs::path& storage)
      : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(terminal_.get());
    ::unlockpt(terminal_.get());
    const std::string name = ::ptsname(terminal_.get());
    const std::string argument = "--scenario=" + scenario;
    ::setenv("CADRE_TEST_STORAGE", storage.c_str(), 1);
    process_ = ::fork();
    if (process_ != 0) return;
    ::setsid();
    const int terminal = ::open(name.c_str(), O_RDWR);  // becomes the session's controlling terminal
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, stream);
    ::execl("/proc/self/exe", "cadre_system_tests", argument.c_str(), nullptr);
    ::_exit(127);
  }
  // Closes the terminal as a terminal window does.
  void close() { terminal_.reset(); }
  int wait() {
    EXPECT_TRUE(Watched(process_).ends_within(60'000));
    ::kill(process_, SIGKILL);
    int status = 0;
    ::waitpid(process_, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  base::FileDescriptor terminal_;
  pid_t process_ = -1;
};

tune::TunerOptions on_terminal() {
  return {.param_space = {{"steps", 100'000}},
          .tune_config = {.num_samples = 2},
          .run_config = {.name = "signals",
                         .storage_path = std::getenv("CADRE_TEST_STORAGE"),
                         .checkpoint_config = {.num_to_keep = 2}}};
}

TEST(Signals, AClosedTerminalInterruptsTheExperiment) {
  const TemporaryDirectory storage;
  OnATerminal process("experiment on a terminal", storage.path());
  ASSERT_TRUE(comes_true([&] { return fs::exists(storage / "signals/experiment.db"); }));
  ASSERT_TRUE(comes_true([&] { return results_of(storage / "signals") > 2; }));
  process.close();
  EXPECT_EQ(process.wait(), 128 + SIGHUP);
  const tune::ResultGrid results = tune::ResultGrid::from_directory(storage / "signals");
  EXPECT_EQ(results.summary().state, tune::ExperimentState::interrupted);
  EXPECT_EQ(results.num_errors(), 0u);
  for (const tune::Result& result : results) EXPECT_EQ(result.failures, 0);
}
const bool experiment_on_a_terminal = register_scenario("experiment on a terminal", [] {
  tune::Tuner(fn<counts_steps>, on_terminal()).fit();
  return 0;
});

TEST(Signals, AServerThatStillPreloadsGoesOnToo) {
  const TemporaryDirectory storage;
  ScenarioProcess process("experiment after a signal", {preload_takes_long},
                          {"CADRE_TEST_STORAGE=" + storage.path().string()});
  process.line();
  const std::vector<pid_t> family = family_of(process.process());
  ASSERT_GT(family.size(), 1u);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(family[1], signal);
  process.go_on();
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(tune::ResultGrid::from_directory(storage / "signals").num_terminated(), 2u);
}
const bool experiment_after_a_signal = register_scenario("experiment after a signal", [] {
  say("begins");
  wait_for_test();
  tune::TunerOptions options = on_terminal();
  options.param_space = {{"steps", 2}};
  options.run_config.verbose = 0;
  tune::Tuner(fn<counts_steps>, options).fit();
  return 0;
});

// ---- Killed

std::string name_of_process(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

TEST(Signals, AControllerAndAServerThatAreKilledInOneInstantLeaveNothing) {
  for (const bool nested : {false, true}) {
    const TemporaryDirectory storage;
    ScenarioProcess process("experiment is interrupted", {},
                            {"CADRE_TEST_STORAGE=" + storage.path().string(),
                             std::string("CADRE_TEST_TRAINABLE=") + (nested ? "nested with programs" : "program")});
    process.line();
    const auto family = [&] { return family_of(process.process()); };
    const auto programs = [&] { return std::ranges::count(family(), std::string("sleep"), name_of_process); };
    ASSERT_TRUE(comes_true([&] { return programs() == (nested ? 4 : 2); }));
    const std::vector<pid_t> all = family();
    std::vector<std::pair<std::string, Watched>> watched;
    for (const pid_t one : all) watched.emplace_back(name_of_process(one), one);
    // Stops the controller and the fork server first, so that neither outlives the other by a moment.
    const std::vector<pid_t> both(all.begin(), all.begin() + 2);
    for (const int signal : {SIGSTOP, SIGKILL}) {
      for (const pid_t one : both) ::kill(one, signal);
    }
    EXPECT_EQ(process.wait(), -SIGKILL);
    for (const auto& [name, one] : watched) EXPECT_TRUE(one.ends_within(20'000)) << name;
  }
}

// ---- Stopped and continued

tune::TunerOptions with_little_patience() {
  tune::TunerOptions options = on_terminal();
  options.run_config.verbose = 0;
  options.run_config.limits.time_between_reports = tune::Seconds(1);
  return options;
}
const bool experiment_is_stopped = register_scenario("experiment is stopped", [] {
  say("begins");
  say(message_of<Interrupted>([&] { tune::Tuner(fn<counts_steps>, with_little_patience()).fit(); }));
  return 0;
});

enum class Stopped { controller, everybody };
class StopAndContinue : public ::testing::TestWithParam<Stopped> {};

// Stops the controller, or all processes, for longer than the limits of these tests.
void stop_for_long(pid_t controller, Stopped who) {
  const std::vector<pid_t> family = family_of(controller);
  const std::size_t stopped = who == Stopped::controller ? 1 : family.size();
  for (std::size_t i = 0; i < stopped; ++i) ::kill(family[i], SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(3'000));
  for (std::size_t i = 0; i < stopped; ++i) {
    ::kill(family[i], SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the controller is the first to go on
  }
}

TEST_P(StopAndContinue, NoTrialFails) {
  const TemporaryDirectory storage;
  ScenarioProcess process("experiment is stopped", {}, {"CADRE_TEST_STORAGE=" + storage.path().string()});
  process.line();
  ASSERT_TRUE(comes_true([&] { return fs::exists(storage / "signals/experiment.db"); }));
  ASSERT_TRUE(comes_true([&] { return results_of(storage / "signals") > 2; }));
  stop_for_long(process.process(), GetParam());
  const std::size_t before = results_of(storage / "signals");
  EXPECT_TRUE(comes_true([&] { return results_of(storage / "signals") > before + 5; }));
  ::kill(process.process(), SIGTERM);
  process.line();
  EXPECT_EQ(process.wait(), 0);
  const tune::ResultGrid results = tune::ResultGrid::from_directory(storage / "signals");
  for (const tune::Result& result : results) EXPECT_EQ(result.attempts, 1);
  const double all = results.summary().last_event - results.summary().started;
  EXPECT_LT(results.summary().running_seconds, all - 1.5) << "the time in which it was stopped does not count";
  EXPECT_GT(results.summary().running_seconds, 0.1);
}
INSTANTIATE_TEST_SUITE_P(Signals, StopAndContinue, ::testing::Values(Stopped::controller, Stopped::everybody),
                         [](const auto& info) {
                           return info.param == Stopped::controller ? "TheController" : "Everybody";
                         });

// Takes longer than the limit between reports, once.
class TakesLong final : public tune::Callback {
 public:
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics&) override {
    if (++results_ == 10) std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  }

 private:
  int results_ = 0;
};

TEST(Signals, AReportThatWaitsUnreadIsInTime) {
  const TemporaryDirectory storage;
  ::setenv("CADRE_TEST_STORAGE", storage.path().c_str(), 1);
  tune::TunerOptions options = with_little_patience();
  options.param_space = {{"steps", 20}};
  options.run_config.callbacks = {std::make_shared<TakesLong>()};
  const tune::ResultGrid results = tune::Tuner(fn<counts_steps>, options).fit();
  EXPECT_EQ(results.num_terminated(), 2u) << ::testing::PrintToString(results.errors());
}

// Says once that it is in the middle of a turn and sleeps there.
class SaysWhereItIs final : public tune::Callback {
 public:
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics&) override {
    if (++results_ != 10) return;
    say("in a turn");
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }

 private:
  int results_ = 0;
};

const bool experiment_is_stopped_in_a_turn = register_scenario("experiment is stopped in a turn", [] {
  tune::TunerOptions options = with_little_patience();
  options.run_config.callbacks = {std::make_shared<SaysWhereItIs>()};
  say(message_of<Interrupted>([&] { tune::Tuner(fn<counts_steps>, options).fit(); }));
  return 0;
});

// The controller is not waiting then, so it cannot notice the stop by a wait that took too long.
TEST(Signals, AStopOfEverybodyWithinATurnFailsNoTrial) {
  const TemporaryDirectory storage;
  ScenarioProcess process("experiment is stopped in a turn", {}, {"CADRE_TEST_STORAGE=" + storage.path().string()});
  EXPECT_EQ(process.line(), "in a turn");
  stop_for_long(process.process(), Stopped::everybody);
  const std::size_t before = results_of(storage / "signals");
  EXPECT_TRUE(comes_true([&] { return results_of(storage / "signals") > before + 5; }));
  ::kill(process.process(), SIGTERM);
  process.line();
  EXPECT_EQ(process.wait(), 0);
  for (const tune::Result& result : tune::ResultGrid::from_directory(storage / "signals"))
    EXPECT_EQ(result.attempts, 1);
}

Metrics validates_very_slowly(const Checkpoint& checkpoint) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return {{"validated", read_number(checkpoint.path() / "step")}};
}

const bool training_is_stopped = register_scenario("training is stopped", [] {
  train::Trainer trainer(fn<trains_steps>,
                         {.train_loop_config = {{"steps", 100'000}, {"validates", true}},
                          .scaling_config = {.num_workers = 2, .resources_per_worker = Resources{.cpus = 0.01}},
                          .run_config = {.name = "run",
                                         .storage_path = std::getenv("CADRE_TEST_STORAGE"),
                                         .checkpoint_config = {.num_to_keep = 2},
                                         .collective_timeout = train::Seconds(1),
                                         .verbose = 0},
                          .validation = {.function = fn<validates_very_slowly>,
                                         .resources = {.cpus = 0.01},
                                         .timeout = train::Seconds(2),
                                         .max_retries = 0}});
  say("begins");
  say(message_of<Interrupted>([&] { trainer.fit(); }));
  return 0;
});

class StopAndContinueTraining : public ::testing::TestWithParam<Stopped> {};

TEST_P(StopAndContinueTraining, NeitherAGroupNorAValidationFails) {
  const TemporaryDirectory storage;
  ScenarioProcess process("training is stopped", {}, {"CADRE_TEST_STORAGE=" + storage.path().string()});
  process.line();
  const auto size = [&] { return content_of(storage / "run/result.json").size(); };
  ASSERT_TRUE(comes_true([&] { return size() > 1000; }));
  stop_for_long(process.process(), GetParam());
  const std::size_t before = size();
  EXPECT_TRUE(comes_true([&] { return size() > before + 5000; }));
  ::kill(process.process(), SIGTERM);
  process.line();
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(train::Result::from_directory(storage / "run").attempts, 1);
  expect_no_validation_failed(storage / "run");
}
INSTANTIATE_TEST_SUITE_P(Signals, StopAndContinueTraining, ::testing::Values(Stopped::controller, Stopped::everybody),
                         [](const auto& info) {
                           return info.param == Stopped::controller ? "TheController" : "Everybody";
                         });

// ---- One worker alone

std::int64_t tells_its_process(const Config& config) {
  const fs::path file = train::get_context().get_storage() / "process";
  if (train::get_context().get_world_rank() == 1 && !fs::exists(file)) std::ofstream(file) << ::getpid() << std::endl;
  return trains_steps(config);
}

TEST(Signals, AWorkerThatAloneGetsSigtermCountsAsPreempted) {
  const TemporaryDirectory storage;
  std::thread somebody([&] {
    const fs::path file = storage / "run/process";
    if (!comes_true([&] { return fs::exists(file) && content_of(file).ends_with('\n'); })) return;
    // Repeated, because the fork server of these tests may have got a SIGTERM for another test a moment ago.
    while (::kill(static_cast<pid_t>(read_number(file)), SIGTERM) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  const train::Result result =
      train::Trainer(fn<tells_its_process>,
                     {.train_loop_config = {{"steps", 300}},
                      .scaling_config = {.num_workers = 2, .resources_per_worker = Resources{.cpus = 0.01}},
                      .run_config = {.name = "run",
                                     .storage_path = storage.path(),
                                     .failure_config = {.max_failures = 0, .max_preemption_failures = 1},
                                     .verbose = 0}})
          .fit();
  somebody.join();
  EXPECT_EQ(result.attempts, 2);
}

}  // namespace
}  // namespace cadre::system_tests
