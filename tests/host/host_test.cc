// A host of Cadre's (cadre/host.h): this program, with functions that are made from values.
#include "cadre/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/init.h"
#include "cadre/train.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace cadre;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Adds final : public tune::ClassTrainable {
 public:
  explicit Adds(std::int64_t amount) : amount_(amount) {}
  Metrics step() override { return {{"sum", sum_ += amount_}}; }
  void save_checkpoint(const fs::path& directory) override { std::ofstream(directory / "sum") << sum_; }
  void load_checkpoint(const fs::path& directory) override { std::ifstream(directory / "sum") >> sum_; }

 private:
  std::int64_t amount_;
  std::int64_t sum_ = 0;
};

// Suggests 0, 1, ... under a key that no space has, half as often as it could.
class Counts final : public tune::Searcher {
 public:
  explicit Counts(std::int64_t num_samples) : num_samples_(num_samples) {}
  std::optional<Config> suggest(tune::TrialIndex trial) const override {
    if (is_finished()) return std::nullopt;
    return Config{{"x", static_cast<std::int64_t>(trial)}};
  }
  bool is_finished() const override { return num_added_ >= num_samples_ / 2; }
  void on_trial_add(tune::TrialIndex, const Config&) override { ++num_added_; }
  void on_trial_end(tune::TrialIndex, tune::TrialStatus, const Metrics&) override {}

 private:
  std::int64_t num_samples_;
  std::int64_t num_added_ = 0;
};

// Stops trial 0 after a step, trial 1 after two, ...
class StopsLater final : public tune::Scheduler {
 public:
  tune::Decision on_result(const tune::TrialView& trial, const Metrics& result, const tune::Population&) override {
    const bool stops = result.get<std::int64_t>("step") > trial.index();
    return {.kind = stops ? tune::Decision::Kind::stop : tune::Decision::Kind::go_on};
  }
  std::string debug_string() const override { return "stops later"; }
};

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Makes functions of {"kind": ...}.
class TestHost final : public Host {
 public:
  std::vector<std::string> server_command() override { return {fs::read_symlink("/proc/self/exe"), "--server"}; }
  void before_first_fork() override { serves_ = true; }
  void after_fork() override { ++num_forks_; }
  void before_end() override { std::puts("the end"); }

  bool print(std::string_view lines, bool is_error) override {
    if (prints) (is_error ? errors : output) += lines;
    return prints;
  }
  bool prints = false;
  std::string output = {};
  std::string errors = {};

  Value call(const HostFunction& function, List arguments) override {
    const std::string kind = kind_of(function);
    if (kind == "draws") return Config(arguments.at(0).dict()).get<std::int64_t>("x") + 100;
    if (kind == "explores") {
      Config explored(arguments.at(0).dict());
      explored.set("explored", true);
      return explored.value();
    }
    if (kind == "stops" && arguments.empty()) return false;
    if (kind == "stops_all") return arguments.empty();
    if (kind == "stops") return Metrics(arguments.at(1).dict()).get<std::int64_t>("step") >= 3;
    if (kind == "allots")
      return {{"bundles", list(Value{{"cpus", Config(arguments.at(0).dict()).get<double>("x")}})},
              {"strategy", "pack"}};
    throw HostError("no such function: " + kind);
  }

  Value run(const HostFunction& function, List arguments) override {
    const std::string kind = kind_of(function);
    if (kind == "loops") return loop(Config(arguments.at(0).dict()));
    if (kind == "validates") {
      const fs::path checkpoint = arguments.at(0).get<std::string>();
      return {{"step_of_file", std::stoll(contents(checkpoint / "step"))},
              {"config", Config(arguments.at(1).dict()).get<std::int64_t>("limit")}};
    }
    const Config config(arguments.at(0).dict());
    const Config parameters(arguments.at(1).dict());
    if (kind == "fails") throw HostError(parameters.get<std::string>("text"));
    for (std::int64_t step = 1; step <= 10; ++step) {
      tune::report({{"step", step},
                    {"product", config.get<std::int64_t>("x") * parameters.get<std::int64_t>("factor", 1)},
                    {"num_forks", num_forks_},
                    {"serves", serves_}},
                   [](const fs::path& directory) { std::ofstream(directory / "nothing") << "nothing"; });
    }
    return {};
  }
  std::unique_ptr<tune::Searcher> make_searcher(const HostFunction&, const tune::SearcherSetting& setting) override {
    return std::make_unique<Counts>(setting.num_samples);
  }
  std::unique_ptr<tune::Scheduler> make_scheduler(const HostFunction&, const tune::SchedulerSetting&) override {
    return std::make_unique<StopsLater>();
  }
  tune::TrainableMethods methods(const HostFunction& function) override {
    if (kind_of(function) != "adds") return {};
    return {.is_class = true, .save_checkpoint = true, .load_checkpoint = true};
  }
  std::unique_ptr<tune::ClassTrainable> make_class(const HostFunction&) override { return std::make_unique<Adds>(7); }

 private:
  static std::string kind_of(const HostFunction& function) {
    return Config(function.value.dict()).get<std::string>("kind");
  }

  // Reports two steps, whose checkpoints are validated: the first by the run's validator, the second by one of its own.
  static Value loop(const Config& config) {
    for (std::int64_t step = 1; step <= 2; ++step) {
      train::ReportOptions options;
      if (step == 1) {
        options.validation = true;
      } else {
        options.validate = train::Validator("validates");
        options.validate.host_function = {Value{{"kind", "validates"}}};
        options.validate_config = {{"limit", 20}};
      }
      train::report(
          {{"step", step}, {"rank", train::get_context().get_world_rank()}},
          [&](const fs::path& directory) { std::ofstream(directory / "step") << step; }, options);
    }
    return config.get<std::int64_t>("x") * train::get_context().get_world_size();
  }

  bool serves_ = false;
  std::int64_t num_forks_ = 0;
};

TestHost the_host;

HostFunction host_function(const std::string& kind) { return {Value{{"kind", kind}}}; }

tune::Trainable host_trainable(const std::string& kind, Config parameters = {}) {
  tune::Trainable trainable(kind);
  trainable.host_function = host_function(kind);
  trainable.parameters = std::move(parameters);
  return trainable;
}

tune::TunerOptions options_in(const fs::path& storage, tune::Space space, std::string name = "hosted") {
  return {.param_space = std::move(space),
          .run_config = {.name = std::move(name), .storage_path = storage, .verbose = 0}};
}

TEST(Host, RunsItsFunctionsInWorkersThatAreForkedFromItsServer) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(host_trainable("trains", {{"factor", 3}}),
                                               options_in(storage.path(), {{"x", tune::grid_search({2, 5})}}))
                                       .fit();
  ASSERT_EQ(results.num_terminated(), 2U) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].metrics.get<int>("product"), 6);
  EXPECT_EQ(results[1].metrics.get<int>("product"), 15);
  for (const tune::Result& result : results) {
    EXPECT_TRUE(result.metrics.get<bool>("serves"));
    EXPECT_EQ(result.metrics.get<int>("num_forks"), 1);
    EXPECT_EQ(contents(result.path / "stdout"), "the end\n");
  }
}

TEST(Host, CallsItsFunctionsInTheDriver) {
  const TemporaryDirectory storage;
  tune::SampleFrom draws("draws");
  draws.host_function = host_function("draws");
  tune::FunctionStopper stops("stops");
  stops.host_function = host_function("stops");
  tune::ResourceFunction allots("allots");
  allots.host_function = host_function("allots");
  tune::TunerOptions options = options_in(storage.path(), {{"x", tune::grid_search({1, 2})}, {"drawn", draws}});
  options.run_config.stop = stops;
  tune::Trainable trainable = tune::with_resources(host_trainable("trains"), allots);
  const tune::ResultGrid results = tune::Tuner(trainable, options).fit();
  ASSERT_EQ(results.num_terminated(), 2U) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].config.get<int>("drawn"), 101);
  EXPECT_EQ(results[1].config.get<int>("drawn"), 102);
  for (const tune::Result& result : results) EXPECT_EQ(result.num_results(), 3U);
}

TEST(Host, AStopperEndsTheExperiment) {
  const TemporaryDirectory storage;
  tune::FunctionStopper stops_all("stops_all");
  stops_all.host_function = host_function("stops_all");
  tune::TunerOptions options = options_in(storage.path(), {{"x", tune::grid_search({1, 2, 3})}});
  options.run_config.stop = stops_all;
  options.tune_config.max_concurrent_trials = 1;
  const tune::ResultGrid results = tune::Tuner(host_trainable("trains"), options).fit();
  EXPECT_LE(results[0].num_results(), 2U);
  EXPECT_EQ(results.size(), 1U) << "no further trial is begun";
  EXPECT_THAT(results.summary().stop_reason, HasSubstr("stops_all has ended the experiment"));
}

TEST(Host, ExploresConfigs) {
  const TemporaryDirectory storage;
  tune::ExploreFunction explores("explores");
  explores.host_function = host_function("explores");
  tune::TunerOptions options = options_in(storage.path(), {{"x", tune::grid_search({1, 2, 3, 4})}});
  options.tune_config.scheduler = tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                                                .metric = tune::maximize("product"),
                                                                .perturbation_interval = 2,
                                                                .custom_explore_fn = explores,
                                                                .synch = true};
  const tune::ResultGrid results = tune::Tuner(host_trainable("trains"), options).fit();
  ASSERT_EQ(results.num_terminated(), 4U) << ::testing::PrintToString(results.errors());
  EXPECT_FALSE(results[0].exploits.empty());
  EXPECT_TRUE(results[0].config.get<bool>("explored"));
}

TEST(Host, SearchesAndSchedules) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage.path(), {});
  options.tune_config.num_samples = 6;
  options.tune_config.searcher =
      tune::HostSearcher{.name = "counts", .host_function = host_function("counts"), .learns = false};
  options.tune_config.scheduler = tune::HostScheduler{.name = "stops", .host_function = host_function("stops later")};
  const tune::ResultGrid results = tune::Tuner(host_trainable("trains"), options).fit();
  ASSERT_EQ(results.size(), 3U) << "it has nothing more";
  for (std::int64_t trial = 0; trial < 3; ++trial) {
    const tune::Result& result = results[static_cast<std::size_t>(trial)];
    EXPECT_EQ(result.config.get<std::int64_t>("x"), trial);
    EXPECT_EQ(result.metrics.get<std::int64_t>("step"), trial + 1);
    EXPECT_EQ(result.status, tune::TrialStatus::stopped);
  }
}

TEST(Host, MayPrintWhatIsForPeople) {
  const TemporaryDirectory storage;
  the_host.prints = true;
  tune::TunerOptions options = options_in(storage.path(), {{"x", 1}});
  options.run_config.verbose = 1;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  tune::Tuner(host_trainable("trains"), options).fit();
  options.run_config.name = "fails";
  options.run_config.verbose = 0;
  tune::Tuner(host_trainable("fails", {{"text", "because"}}), options).fit();
  the_host.prints = false;
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(the_host.output, HasSubstr("Running experiment hosted: 1 trial"));
  EXPECT_THAT(the_host.output, HasSubstr("TERMINATED"));
  EXPECT_THAT(the_host.errors, HasSubstr("because"));
}

TEST(Host, RunsItsClasses) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage.path(), {});
  options.run_config.stop = tune::Stop{{"training_iteration", 3}};
  options.run_config.checkpoint_config.checkpoint_frequency = 1;
  const tune::ResultGrid results = tune::Tuner(host_trainable("adds"), options).fit();
  ASSERT_EQ(results.num_terminated(), 1U) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].metrics.get<int>("sum"), 21);
  ASSERT_TRUE(results[0].checkpoint);
  EXPECT_EQ(contents(results[0].checkpoint->path() / "sum"), "21");
}

TEST(Host, AnErrorOfAFunctionIsItsTextAndOfALongOneTheEnd) {
  const TemporaryDirectory storage;
  const auto error = [&](const std::string& text) {
    return tune::Tuner(host_trainable("fails", {{"text", text}}),
                       options_in(storage.path(), {}, "of_" + std::to_string(text.size())))
        .fit()[0]
        .error.value_or("");
  };
  EXPECT_EQ(error("Traceback: ...\n  line 1"), "Traceback: ...\n  line 1");
  const std::string long_one = error(std::string(200'000, 'x') + "the end");
  EXPECT_THAT(long_one, EndsWith("xthe end"));
  EXPECT_LE(long_one.size(), 64U << 10);
}

TEST(Host, ARestoreRunsTheStoredFunctionOrTheOneThatReplacesIt) {
  const TemporaryDirectory storage;
  ASSERT_EQ(tune::Tuner(host_trainable("fails", {{"text", "first"}}), options_in(storage.path(), {{"x", 4}}))
                .fit()
                .num_errors(),
            1U);
  const fs::path directory = storage.path() / "hosted";
  EXPECT_EQ(tune::Tuner::restore(directory, {.restart_errored = true}).fit()[0].error, "first");
  const tune::ResultGrid replaced =
      tune::Tuner::restore(directory, {.restart_errored = true, .host_function = host_function("trains")}).fit();
  EXPECT_EQ(replaced[0].metrics.get<int>("product"), 4);
}

TEST(Host, TrainsAndValidates) {
  const TemporaryDirectory storage;
  train::Loop loops("loops");
  loops.host_function = host_function("loops");
  train::TrainerOptions options{.train_loop_config = {{"x", 21}},
                                .scaling_config = {.num_workers = 1},
                                .run_config = {.name = "trained", .storage_path = storage.path(), .verbose = 0}};
  options.validation.function = train::Validator("validates");
  options.validation.function.host_function = host_function("validates");
  options.validation.config = {{"limit", 10}};
  const train::Result result = train::Trainer(loops, options).fit();
  EXPECT_EQ(result.return_value, Value(21));
  EXPECT_TRUE(result.finished);
  ASSERT_EQ(result.best_checkpoints.size(), 2U);
  for (const std::int64_t step : {1, 2}) {
    const train::ReportedCheckpoint& checkpoint = result.best_checkpoints[static_cast<std::size_t>(step - 1)];
    EXPECT_EQ(checkpoint.status, train::ReportedCheckpointStatus::validated) << checkpoint.validation_error;
    EXPECT_EQ(checkpoint.metrics.get<std::int64_t>("step_of_file"), step);
    EXPECT_EQ(checkpoint.metrics.get<std::int64_t>("config"), 10 * step);
  }
  EXPECT_EQ(contents(storage.path() / "trained/rank_0/stdout"), "the end\n");
  EXPECT_EQ(train::Trainer::restore(storage.path() / "trained").fit().return_value, Value(21));
}

class CallsShutdown final : public tune::Callback {
 public:
  void on_trial_start(std::int64_t, const tune::TrialList&, const tune::TrialInfo&) override {
    message = message_of<InvalidArgument>([] { shutdown(); });
  }
  std::string message = {};
};

TEST(Shutdown, IsForAfterFitAndInitMayFollow) {
  const TemporaryDirectory storage;
  const auto callback = std::make_shared<CallsShutdown>();
  tune::TunerOptions options = options_in(storage.path(), {{"x", 1}});
  options.run_config.callbacks = {callback};
  EXPECT_EQ(tune::Tuner(host_trainable("trains"), options).fit().num_terminated(), 1U);
  EXPECT_THAT(callback->message, HasSubstr("while something runs"));

  shutdown();
  shutdown();  // does nothing
  EXPECT_THAT(message_of<EngineError>([&] {
                tune::Tuner(host_trainable("trains"), options_in(storage.path(), {{"x", 1}}, "between")).fit();
              }),
              HasSubstr("cadre::init was not called"));
  EXPECT_THROW(init(0, nullptr, {.num_cpus = -1, .host = &the_host}), InvalidArgument);
  init(0, nullptr, {.num_cpus = 3, .host = &the_host});
  EXPECT_THROW(init(0, nullptr, {.host = &the_host}), InvalidArgument);
  tune::Trainable wide = tune::with_resources(host_trainable("trains"), {.cpus = 3});
  EXPECT_EQ(tune::Tuner(wide, options_in(storage.path(), {{"x", 1}}, "after")).fit().num_terminated(), 1U);
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 2, .host = &the_host});
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
