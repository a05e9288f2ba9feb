// Resources of trials, and which trials run at which time. This program's machine has 4 CPUs, 2 GPUs and 2 licenses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

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
