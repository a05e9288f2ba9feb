// Resources of trials, and which trials run at which time. This program's machine has 4 CPUs, 2 GPUs and 2 licenses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void says_what_it_has(const Config&) {
  const Resources resources = tune::get_context().get_trial_resources();
  const char* gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto licenses = resources.custom.find("license");
  tune::report({{"cpus", resources.cpus},
                {"gpus", resources.gpus},
                {"licenses", licenses == resources.custom.end() ? 0 : licenses->second},
                {"devices", gpus == nullptr ? "" : gpus}});
}

Resources by_width(const Config& config) {
  const auto width = config.get<double>("width");
  if (width > 100) throw std::runtime_error("too wide to think of");
  return {.cpus = width, .gpus = width >= 2 ? 1.0 : 0.0};
}

PlacementGroup two_bundles(const Config&) { return {.bundles = {{.cpus = 1}, {.cpus = 2}}}; }

tune::TunerOptions options_of(const fs::path& storage, tune::Space space = {}) {
  return {.param_space = std::move(space), .run_config = {.name = "needs", .storage_path = storage, .verbose = 0}};
}

tune::Result run_one(const tune::Trainable& trainable) {
  const TemporaryDirectory storage;
  return tune::Tuner(trainable, options_of(storage.path())).fit()[0];
}

TEST(Resources, BundlesOfAPlacementGroupAreHadTogether) {
  const tune::Result trial = run_one(tune::with_resources(
      fn<says_what_it_has>,
      PlacementGroup{.bundles = {{.cpus = 1, .gpus = 0.5}, {.cpus = 2, .gpus = 0.5, .custom = {{"license", 2}}}}}));
  EXPECT_EQ(trial.metrics.get<double>("cpus"), 3);
  EXPECT_EQ(trial.metrics.get<double>("gpus"), 1);
  EXPECT_EQ(trial.metrics.get<double>("licenses"), 2);
  EXPECT_EQ(trial.metrics.get<std::string>("devices").size(), 1U) << "one GPU for both";
}

TEST(Resources, ATrialRunsWhereTheMachineIsAsItWantsIt) {
  const tune::Result trial = run_one(tune::with_resources(
      fn<says_what_it_has>,
      Resources{.cpus = 1, .gpus = 1, .accelerator_type = "H100", .labels = {{"zone", "in(us,eu)"}, {"rack", "!7"}}}));
  EXPECT_EQ(trial.metrics.get<double>("gpus"), 1);
}

TEST(Resources, AFunctionSaysWhatATrialNeedsByItsConfig) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(tune::with_resources(fn<says_what_it_has>, fn<by_width>),
                  options_of(storage.path(), {{"width", tune::grid_search({1, 4, 2, 3, 1})}}))
          .fit();
  ASSERT_EQ(results.num_terminated(), 5U) << ::testing::PrintToString(results.errors());
  for (const tune::Result& trial : results) {
    const auto width = trial.config.get<double>("width");
    EXPECT_EQ(trial.metrics.get<double>("cpus"), width);
    EXPECT_EQ(trial.metrics.get<double>("gpus"), width >= 2 ? 1 : 0);
  }
  const tune::Result trial = run_one(tune::with_resources(fn<says_what_it_has>, fn<two_bundles>));
  EXPECT_EQ(trial.metrics.get<double>("cpus"), 3);
}

TEST(Resources, ATrialThatNeedsWhatIsNotThereFailsAlone) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(tune::with_resources(fn<says_what_it_has>, fn<by_width>),
                  options_of(storage.path(), {{"width", tune::grid_search({5, 1, 101, -1})}}))
          .fit();
  EXPECT_EQ(results.num_terminated(), 1U);
  EXPECT_THAT(results[0].error.value_or(""), HasSubstr("it needs more than there is: 5 cpus (there are 4)"));
  EXPECT_THAT(results[2].error.value_or(""), HasSubstr("too wide to think of"));
  EXPECT_THAT(results[3].error.value_or(""), HasSubstr("the amount -1 must be 0 or more"));
}

// Reports `reports` times or, with 0 of them, until it has the whole machine. Continues from its checkpoint.
void trains_with_what_it_has(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  const auto checkpoint = tune::get_checkpoint();
  std::int64_t step = checkpoint ? base::parse_json(base::read_file(checkpoint->path() / "step"), "it").get<int>() : 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (reports == 0 || step < reports) {
    ++step;
    const double cpus = tune::get_context().get_trial_resources().cpus;
    tune::report({{"cpus", cpus}, {"step", step}},
                 [&](const fs::path& directory) { base::write_file(directory / "step", std::to_string(step)); });
    if (reports == 0 && (cpus == 4 || std::chrono::steady_clock::now() > deadline)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

class ChangedResources : public ::testing::TestWithParam<bool> {};

TEST_P(ChangedResources, ATrialGetsWhatOthersHaveLeft) {
  const TemporaryDirectory storage;
  tune::TunerOptions options = options_of(storage.path(), {{"reports", tune::grid_search({30, 0})}});
  options.tune_config.scheduler = tune::ResourceChangingScheduler{.restart = GetParam()};
  const tune::ResultGrid results = tune::Tuner(fn<trains_with_what_it_has>, options).fit();
  ASSERT_EQ(results.num_terminated(), 2U) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].metrics.get<double>("cpus"), 2) << "its fair share";
  EXPECT_EQ(results[1].metrics.get<double>("cpus"), 4);
  EXPECT_EQ(results[1].metrics.get<std::int64_t>("step"), results[1].num_results()) << "no step was lost";
  const bool is_in_first_process = results[1].metrics.get<std::int64_t>("iterations_since_restore") ==
                                   results[1].metrics.get<std::int64_t>("training_iteration");
  EXPECT_EQ(is_in_first_process, !GetParam());
}

INSTANTIATE_TEST_SUITE_P(Resources, ChangedResources, ::testing::Bool(),
                         [](const auto& restarts) { return restarts.param ? "ByARestart" : "InTheSameProcess"; });

TEST(Resources, WhatCanNeverBeHadIsRefusedBeforeAnythingRuns) {
  const TemporaryDirectory storage;
  const auto message = [&](PlacementGroup group) {
    return message_of<InvalidArgument>([&] {
      tune::Tuner(tune::with_resources(fn<says_what_it_has>, std::move(group)), options_of(storage.path())).fit();
    });
  };
  EXPECT_THAT(message({.bundles = {{.cpus = 3}, {.cpus = 2}}}), HasSubstr("5 cpus (there are 4)"));
  EXPECT_THAT(message({.bundles = {{.cpus = 1}, {.cpus = 1}}, .strategy = PlacementStrategy::strict_spread}),
              HasSubstr("strict_spread needs 2 machines"));
  EXPECT_THAT(message({.bundles = {}}), HasSubstr("a trial needs some amount of some resource"));
  EXPECT_THAT(message({.bundles = {{.gpus = 0.7}, {.gpus = 0.7}}}), HasSubstr("of all bundles: it is 1.4"));
  EXPECT_THAT(message({.bundles = {{.cpus = 1, .custom = {{"tpu", 1}}}}}), HasSubstr("1 tpu (there are 0)"));
  EXPECT_THAT(message({.bundles = {{.cpus = 1, .accelerator_type = "A100"}}}),
              HasSubstr("accelerator type A100 (it is H100)"));
  EXPECT_THAT(message({.bundles = {{.cpus = 1, .labels = {{"zone", "us"}}}}}), HasSubstr("label zone=us (it is eu)"));
  EXPECT_THAT(message({.bundles = {{.cpus = 1, .labels = {{"zone", "in(eu"}}}}}),
              HasSubstr("\"in(eu\" of zone is none"));
  EXPECT_THAT(message({.bundles = {{.labels = {{"zone", "eu"}}}, {.labels = {{"zone", "us"}}}}}),
              HasSubstr("label zone is asked to be eu and us"));
  EXPECT_TRUE(fs::is_empty(storage.path()));
}

}  // namespace
}  // namespace cadre::system_tests
