#include "tune/loggers/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "support/temporary_directory.h"

namespace cadre::tune {
namespace {

namespace fs = std::filesystem;
using test_support::content_of;
using test_support::TemporaryDirectory;

// The names of TensorBoard's files contain the process and a number that grows with each of them.
std::string without_process(const std::string& name) {
  return name.starts_with("events.out.tfevents.") ? "events.out.tfevents" : name;
}

std::map<std::string, std::string> contents_of(const fs::path& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& file : fs::recursive_directory_iterator(directory)) {
    if (!file.is_regular_file()) continue;
    const fs::path name = file.path().parent_path() / without_process(file.path().filename());
    contents[fs::relative(name, directory)] += content_of(file.path());
  }
  return contents;
}

// Returns the result files of a trial that failed, and that another controller has continued.
std::map<std::string, std::string> files_of_a_continued_trial(bool flush_each_time) {
  const TemporaryDirectory directory;
  Experiment experiment(Trainable("f"), {.param_space = {{"lr", uniform(0, 1)}}});
  ResultFiles files(directory.path(), experiment, false);
  double time = 1000;
  const auto handle = [&](const Event& event) {
    Actions actions;
    experiment.handle(event, actions);
    for (const Action& action : actions) files.log(action, time);
    time += 1;
    if (flush_each_time) files.flush();
  };
  const auto report = [](std::int64_t attempt, std::int64_t step) {
    return ResultReported{0, attempt, {step, {{"training_iteration", step}, {"loss", 0.5}}}};
  };
  handle(ControllerStarted{.resources = {.cpus = 1}});
  handle(report(1, 1));
  handle(FunctionThrew{0, 1, "bad luck"});
  handle(WorkerEnded{0, 1});
  handle(ControllerStarted{.resources = {.cpus = 1}, .errored = ControllerStarted::Errored::resume});
  handle(report(2, 1));
  handle(report(2, 2));
  files.flush();
  return contents_of(directory.path());
}

// A restore that replays events flushes more seldom than the controller that wrote the files.
TEST(ResultFiles, DoNotDependOnWhenTheyAreFlushed) {
  EXPECT_EQ(files_of_a_continued_trial(false), files_of_a_continued_trial(true));
}

}  // namespace
}  // namespace cadre::tune
