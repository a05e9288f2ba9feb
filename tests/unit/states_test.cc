#include <gtest/gtest.h>

#include <string>

#include "cadre/detail/enum_names.h"
#include "train/run_status.h"
#include "tune/trial.h"

namespace cadre {
namespace {

constexpr int kWorkerStates = static_cast<int>(tune::WorkerState::killed) + 1;
constexpr int kRunStatuses = static_cast<int>(train::RunStatus::aborted) + 1;

// Returns "busy: none waiting parked\n...": for each state those that it may come from, without itself.
template <class State>
std::string origins(int states) {
  std::string text;
  for (int to = 0; to < states; ++to) {
    text += std::string(cadre::detail::enum_name(static_cast<State>(to))) + ":";
    for (int from = 0; from < states; ++from) {
      if (from != to && may_become(static_cast<State>(from), static_cast<State>(to)))
        text += " " + std::string(cadre::detail::enum_name(static_cast<State>(from)));
    }
    text += "\n";
  }
  return text;
}

// docs/architecture.md has the same table.
TEST(States, OfAWorker) {
  EXPECT_EQ(origins<tune::WorkerState>(kWorkerStates),
            "none: busy saving waiting parked stopping killed\n"
            "busy: none waiting parked\n"
            "saving: waiting parked\n"
            "waiting: busy saving\n"
            "parked: waiting\n"
            "stopping: busy saving waiting parked\n"
            "killed: busy saving stopping\n");
}

// docs/training.md has the same table.
TEST(States, OfATrainingRun) {
  EXPECT_EQ(
      origins<train::RunStatus>(kRunStatuses),
      "initializing: starved scheduling running stopping resizing failing waiting shutting_down validating finished "
      "failed aborted\n"
      "starved: initializing resizing failing waiting\n"
      "scheduling: initializing starved resizing failing waiting\n"
      "running: scheduling\n"
      "stopping: scheduling running\n"
      "resizing: scheduling running\n"
      "failing: scheduling running stopping shutting_down\n"
      "waiting: failing\n"
      "shutting_down: scheduling running\n"
      "validating: scheduling running shutting_down\n"
      "finished: validating\n"
      "failed: failing\n"
      "aborted: initializing starved scheduling running stopping resizing failing waiting shutting_down\n");
}

}  // namespace
}  // namespace cadre
