// Hostile names, numbers and sizes, which must do no harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "base/file.h"
#include "base/json.h"
#include "base/value_limits.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

namespace fs = std::filesystem;
using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::HasSubstr;

// Names that a file system, a shell, a terminal or a file format could misinterpret, one for each way.
const std::vector<std::string> kHostileNames = {"..",
                                                "../../escaped",
                                                "/etc/passwd",
                                                "a/b",
                                                std::string("nul\0inside", 10),
                                                "line\nbreak",
                                                "\x1b[2J\x1b[31mred",
                                                "$(touch escaped)",
                                                "`touch escaped`; rm -rf *",
                                                "-rf",
                                                "quote\"and,comma",
                                                "caf\u00e9 \U0001F600",
                                                "CON",
                                                std::string(300, 'x')};

void reports_hostile_names(const Config&) {
  Metrics metrics{{"score", 1}};
  for (const std::string& name : kHostileNames) metrics.set(name, 0.5);
  tune::report(metrics);
  metrics.set("later\nname", "text\nwith \"everything\", \x1b[2J");
  tune::report(metrics);
}

void reports_odd_numbers(const Config&) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Value& value : std::initializer_list<Value>{1, std::nan(""), infinity, -infinity, 5e-324, "text", true,
                                                         Value(), list(1, "two"), Dict{{"nested", 3}}, 2.5})
    tune::report({{"score", value}}, [](const fs::path&) {});
}

void reports_many_metrics(const Config&) {
  for (int step = 1; step <= 3; ++step) {
    Dict metrics;
    for (int i = 0; i < 10'000; ++i) metrics.emplace_back("metric_" + std::to_string(i), step + i);
    tune::report(Metrics(metrics));
  }
}

void reports_a_step_backwards(const Config&) {
  for (const int iteration : {1, 2, 3, 2, 1, 7, 8})
    tune::report({{"training_iteration", iteration}, {"score", 1}}, [](const fs::path&) {});
}

void reports_nothing_useful(const Config&) {
  for (int i = 0; i < 8; ++i) tune::report({{"loss", i}});
}

// A surrogate, a number above U+10FFFF and a byte that starts no sequence.
constexpr const char* kNoUtf8 = "\xed\xa0\x80 \xf4\x90\x80\x80 \xff";

void reports_and_throws_no_utf8(const Config&) {
  tune::report({{"score", 1}, {"text", kNoUtf8}, {kNoUtf8, 2}});
  throw std::runtime_error(kNoUtf8);
}

// Returns a list nested `levels` deep, the innermost of which is empty.
Value nested(std::size_t levels) {
  Value value = List{};
  for (std::size_t i = 1; i < levels; ++i) value = list(value);
  return value;
}

// Reports a metric as deep as allowed with a checkpoint, whose result the second attempt gets; then reports deeper
// metrics.
void reports_deep_values(const Config&) {
  const std::size_t most = base::max_result_depth - 1;
  const auto empty = [](const fs::path&) {};
  if (!tune::get_checkpoint()) {
    tune::report({{"score", 1}, {"deep", nested(most)}}, empty);
    throw std::runtime_error("the first worker ends");
  }
  tune::report({{"score", 2}, {"deep", nested(most)}}, empty);
  tune::report({{"score", 3}, {"deep", nested(most + 1)}, {"deeper", nested(base::max_value_depth)}});
}

// Reports metrics that are too large in total, but not one by one.
void reports_too_much(const Config&) {
  Metrics metrics{{"score", 1}};
  for (std::size_t i = 0; i <= base::max_result_bytes >> 20; ++i)
    metrics.set("text_" + std::to_string(i), std::string((std::size_t{1} << 20) - 8, 'x'));
  tune::report(metrics);
}

tune::TunerOptions options_in(const TemporaryDirectory& storage) {
  return {.tune_config = {.metric = tune::maximize("score")},
          .run_config = {.name = "hostile", .storage_path = storage.path(), .verbose = 0}};
}

tune::PopulationBasedTraining every_second_step() {
  return {.time_attr = "training_iteration",
          .metric = tune::maximize("score"),
          .perturbation_interval = 2,
          .hyperparam_mutations = {{"lr", tune::uniform(0, 1)}}};
}

// Expects all files to be in the experiment's own directory, and its rows to be complete.
void expect_rows_in_place(const TemporaryDirectory& storage, const tune::ResultGrid& results, std::size_t rows) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(storage.path())) entries.push_back(entry.path().filename());
  EXPECT_THAT(entries, ::testing::ElementsAre("hostile"));
  for (const tune::Result& result : results) {
    EXPECT_EQ(result.path.parent_path(), results.experiment_path());
    EXPECT_EQ(result.metrics_history().size(), rows);
    std::ifstream lines(result.path / "result.json");
    std::size_t found = 0;
    for (std::string line; std::getline(lines, line); ++found) base::parse_json(line, "a row");
    EXPECT_EQ(found, rows);
  }
}

TEST(HostileInput, NamesOfParametersAndMetricsAreDataOnly) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage);
  for (const std::string& name : kHostileNames) {
    if (name.find('/') == name.npos) options.param_space.emplace_back(name, tune::choice({name, "plain"}));
  }
  const tune::ResultGrid results = tune::Tuner(fn<reports_hostile_names>, options).fit();
  ASSERT_EQ(results.num_terminated(), 1u) << ::testing::PrintToString(results.errors());
  expect_rows_in_place(storage, results, 2);
  for (const std::string& name : kHostileNames) EXPECT_EQ(results[0].metrics.get<double>(name), 0.5) << name;
  EXPECT_LE(results[0].path.filename().string().size(), 100u);
  EXPECT_EQ(tune::Tuner::restore(results.experiment_path()).fit()[0].config, results[0].config);
}

TEST(HostileInput, AnExperimentsNameMustBeOneOfADirectory) {
  const TemporaryDirectory storage;
  for (const std::string& name : kHostileNames) {
    tune::TunerOptions options = options_in(storage);
    options.run_config.name = name;
    const bool possible = name.find_first_of(std::string("/\n\x1b\0", 4)) == name.npos && name.front() != '.' &&
                          name.front() != '-' && name.size() <= 255;
    if (possible) {
      const tune::ResultGrid results = tune::Tuner(fn<reports_many_metrics>, options).fit();
      EXPECT_EQ(results.experiment_path(), storage / name);
    } else {
      const std::string fault = message_of<InvalidArgument>([&] { tune::Tuner(fn<reports_many_metrics>, options); });
      EXPECT_THAT(fault, HasSubstr("cannot name a directory")) << name;
      EXPECT_EQ(fault.find('\x1b'), fault.npos) << "a message must not command the terminal";
    }
  }
  EXPECT_FALSE(fs::exists(storage.path().parent_path() / "escaped"));
}

TEST(HostileInput, AMetricMayChangeItsTypeAndBeNoNumber) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<reports_odd_numbers>, options_in(storage)).fit();
  ASSERT_EQ(results.num_terminated(), 1u) << ::testing::PrintToString(results.errors());
  expect_rows_in_place(storage, results, 11);
  const std::vector<Metrics> history = results[0].metrics_history();
  EXPECT_TRUE(std::isnan(history[1].get<double>("score")));
  EXPECT_EQ(history[3].get<double>("score"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(history[4].get<double>("score"), 5e-324);
  EXPECT_EQ(history[9].get<int>("score/nested"), 3);
}

TEST(HostileInput, NumbersThatAreNoneDoNotRankAndEndNobodyElse) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage);
  options.param_space = {{"lr", tune::uniform(0, 1)}};
  tune::PopulationBasedTraining pbt = every_second_step();
  pbt.require_attrs = false;
  options.tune_config.num_samples = 4;
  options.tune_config.scheduler = pbt;
  options.run_config.stop = {{"training_iteration", 11}};
  const tune::ResultGrid results = tune::Tuner(fn<reports_odd_numbers>, options).fit();
  EXPECT_EQ(results.num_terminated(), 4u) << ::testing::PrintToString(results.errors());
}

TEST(HostileInput, TenThousandMetricsAreReportedAndStored) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<reports_many_metrics>, options_in(storage)).fit();
  ASSERT_EQ(results.num_terminated(), 1u) << ::testing::PrintToString(results.errors());
  expect_rows_in_place(storage, results, 3);
  EXPECT_EQ(results[0].metrics.get<int>("metric_9999"), 3 + 9999);
}

TEST(HostileInput, AnIterationThatGoesBackwardsIsARowLikeOthers) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage);
  options.param_space = {{"lr", tune::uniform(0, 1)}};
  options.tune_config.num_samples = 2;
  options.tune_config.scheduler = every_second_step();
  const tune::ResultGrid results = tune::Tuner(fn<reports_a_step_backwards>, options).fit();
  EXPECT_EQ(results.num_terminated(), 2u) << ::testing::PrintToString(results.errors());
  expect_rows_in_place(storage, results, 7);
}

TEST(HostileInput, APopulationOfOneAndOneWithoutTheMetricEndAndSayWhy) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage);
  options.param_space = {{"lr", tune::uniform(0, 1)}};
  options.tune_config.scheduler = every_second_step();
  for (const std::int64_t population : {1, 6}) {
    options.tune_config.num_samples = population;
    options.run_config.name = "without_metric_" + std::to_string(population);
    const tune::ResultGrid results = tune::Tuner(fn<reports_nothing_useful>, options).fit();
    EXPECT_EQ(results.num_errors(), static_cast<std::size_t>(population));
    for (const tune::Result& result : results)
      EXPECT_THAT(*result.error, HasSubstr("the result has no number \"score\""));
    EXPECT_THAT(message_of<NotFound>([&] { results.get_best_result(); }), HasSubstr("see errors()"));
  }
  options.tune_config.num_samples = 1;
  options.run_config.name = "of_one";
  const tune::ResultGrid results = tune::Tuner(fn<reports_a_step_backwards>, options).fit();
  EXPECT_EQ(results.get_best_result().trial_id, "00000");
}

TEST(HostileInput, TextThatIsNoUtf8IsReadAgain) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<reports_and_throws_no_utf8>, options_in(storage)).fit();
  ASSERT_EQ(results.num_errors(), 1u);
  const tune::ResultGrid restored = tune::Tuner::restore(results.experiment_path(), {.restart_errored = true}).fit();
  EXPECT_EQ(restored[0].metrics_history().size(), results[0].metrics_history().size() * 2);
  EXPECT_EQ(restored.errors(), results.errors());
}

TEST(HostileInput, WhatIsNestedAsDeepAsItMayBeIsContinuedAndDeeperIsTheTrialsFault) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_in(storage);
  options.run_config.failure_config.max_failures = 1;
  const tune::ResultGrid results = tune::Tuner(fn<reports_deep_values>, options).fit();
  ASSERT_EQ(results.num_errors(), 1u);
  EXPECT_THAT(*results[0].error, HasSubstr("metric \"deep\" is nested deeper than 53 levels"));
  EXPECT_THAT(*results[0].error, HasSubstr("metric \"deeper\" is nested deeper than 53 levels"));
  EXPECT_EQ(results[0].metrics.get<int>("score"), 2);
  const tune::ResultGrid restored = tune::Tuner::restore(results.experiment_path(), {.resume_errored = true}).fit();
  EXPECT_EQ(restored[0].metrics_history().back().get<int>("score"), 2);
}

TEST(HostileInput, AResultThatIsTooLargeIsTheTrialsFault) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results = tune::Tuner(fn<reports_too_much>, options_in(storage)).fit();
  ASSERT_EQ(results.num_errors(), 1u);
  EXPECT_THAT(*results[0].error, HasSubstr("over the limit of 33554432"));
}

}  // namespace
}  // namespace cadre::system_tests
