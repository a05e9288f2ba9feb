// Programs as trainables, through the API. tests/programs has what the file of `cadre tune` says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cadre/tune.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "tune/program/metric_watch.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

tune::Program reports_its_argument() {
  return {
      .command = {"sh", "-c", R"(echo "ask {\"loss\": $0}" >&3; read answer <&3; touch "$1")", "{lr}", "{touched}"}};
}

tune::TunerOptions options_in(const std::filesystem::path& folder) {
  return {.param_space = {{"lr", tune::grid_search({1, 2})}, {"touched", (folder / "touched").string()}},
          .tune_config = {.metric = tune::minimize("loss")},
          .run_config = {.name = "programs", .storage_path = folder, .verbose = 0}};
}

TEST(Program, IsATrainable) {
  const TemporaryDirectory folder;
  const tune::ResultGrid results =
      tune::Tuner(tune::with_resources(reports_its_argument(), Resources{.cpus = 0.5}), options_in(folder.path()))
          .fit();
  ASSERT_EQ(results.size(), 2);
  EXPECT_EQ(results.num_errors(), 0);
  EXPECT_EQ(results.get_best_result().metrics.number("loss"), 1);
  EXPECT_EQ(results.summary().trainable, "sh");
}

TEST(Program, IsExecutedByARestoreOnlyIfThatSaysSo) {
  const TemporaryDirectory folder;
  tune::TunerOptions options = options_in(folder.path());
  options.param_space.front().second = tune::grid_search({1});
  tune::Tuner(reports_its_argument(), options).fit();
  const std::filesystem::path experiment = folder.path() / "programs";
  std::filesystem::remove(folder.path() / "touched");

  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner::restore(experiment).fit(); }),
              HasSubstr("runs the program sh, which is executed only if RestoreOptions::run_program is set"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "touched"));
  EXPECT_EQ(tune::Tuner::restore(experiment, {.run_program = true}).fit().size(), 1);
  // A program that is given is compared with that of the directory.
  EXPECT_EQ(tune::Tuner::restore(experiment, reports_its_argument(), options).fit().size(), 1);
  tune::Program other = reports_its_argument();
  other.command.back() = "elsewhere";
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner::restore(experiment, other, options).fit(); }),
              HasSubstr("program"));
}

// ---- A metric that never comes

// Runs a script under a watch, and returns what that says. The script's argument is a file that is made then.
std::vector<std::string> said_of(const std::string& script, tune::Seconds patience) {
  const TemporaryDirectory folder;
  const std::filesystem::path gate = folder.path() / "gate";
  std::vector<std::string> said;
  const auto say = [&](const std::string& message) {
    said.push_back(message);
    std::ofstream{gate};
  };
  tune::TunerOptions options{.param_space = {{"gate", gate.string()}},
                             .tune_config = {.metric = tune::minimize("loss")},
                             .run_config = {.name = "programs",
                                            .storage_path = folder.path(),
                                            .verbose = 0,
                                            .callbacks = {std::make_shared<tune::MetricWatch>(say, patience)}}};
  tune::Tuner(tune::Program{.command = {"sh", "-c", script, "{gate}"}}, options).fit();
  return said;
}

TEST(MetricWatch, SaysWhenItsTimeHasPassedThatNoTrialHasReported) {
  const std::string script = R"(i=0
                                while [ ! -e "$0" ] && [ $i -lt 3000 ]; do i=$((i + 1)); sleep 0.01; done
                                echo '{"loss": 1}' >&3)";
  EXPECT_THAT(said_of(script, std::chrono::milliseconds(200)),
              ElementsAre(HasSubstr("after 0.2s no trial has reported \"loss\", the experiment's metric")));
}

TEST(MetricWatch, SaysNothingOfAnExperimentThatEndsBefore) {
  EXPECT_THAT(said_of("true", std::chrono::hours(1)), IsEmpty());
}

}  // namespace
}  // namespace cadre::system_tests
