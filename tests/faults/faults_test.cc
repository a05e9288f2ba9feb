// Each call of a controller, a fork server and its workers fails once, or is the last call of its process: the
// experiment goes on or can be continued, with the outcome of an undisturbed one.
//
// CADRE_FAULTS_STRIDE=<n> takes every n-th call only (1: all; default: see stride_of()), and CADRE_FAULTS_FIRST=<n>
// begins with that call (default: random), which repeats a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "failure.h"
#include "store/experiment_store.h"
#include "support/temporary_directory.h"
#include "survival/controller_process.h"
#include "survival/invariants.h"

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using test_support::content_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr Setting kSetting{.population = 3, .steps = 6, .interval = 2};

Ended run_to_end(const ControllerOptions& options) {
  ControllerProcess controller(options);
  const auto ended = controller.wait(kPatience);
  return ended.value_or(Ended{.code = Ended::other_error, .message = "it hangs"});
}

// Returns the outcome of the experiment if nothing happens to it.
const Outcome& undisturbed() {
  static const Outcome outcome = [] {
    const TemporaryDirectory storage;
    const Ended ended = run_to_end({.experiment = storage / "undisturbed", .setting = kSetting, .environment = {}});
    EXPECT_EQ(ended.code, Ended::finished) << ended.message;
    return outcome_of(storage / "undisturbed");
  }();
  return outcome;
}

// Returns the number of acknowledged reports.
std::size_t witnesses_in(const fs::path& experiment) {
  std::size_t count = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(experiment, none))
    if (entry.is_directory()) count += read_witnesses(entry.path()).size();
  return count;
}

// Waits until `is_so` returns true; returns false if the controller ends before, or after kPatience.
bool wait_until(const ControllerProcess& controller, const std::function<bool()>& is_so) {
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
    if (is_so()) return true;
    if (controller.has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// ---- Every call

struct Case {
  std::string role;
  std::string how;
  bool restores = false;  // the call is made by a controller that continues an experiment

  std::string name() const { return role + "_" + how + (restores ? "_restores" : "_begins"); }
};
void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name(); }

class EveryCall : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().restores) interrupt_in_the_middle();
  }

  // Returns false if the experiment makes fewer calls.
  bool fail_one(long call);
  void judge(const Ended& ended, bool trials_ran, const std::string& context) const;
  void interrupt_in_the_middle();

  TemporaryDirectory storage_;
  const fs::path experiment_ = storage_ / "experiment";
  const fs::path interrupted_ = storage_ / "interrupted";
  const fs::path report_ = storage_ / "report";
};

void EveryCall::interrupt_in_the_middle() {
  ControllerProcess controller({.experiment = interrupted_, .setting = kSetting, .environment = {}});
  ASSERT_TRUE(wait_until(controller, [&] { return fs::exists(interrupted_ / "pbt_global.txt"); }));
  controller.kill(SIGKILL);
  ASSERT_TRUE(controller.wait(kPatience));
  expect_no_faults(still_running(kPatience), "after the first interruption");
}

bool EveryCall::fail_one(long call) {
  const auto& [role, how, restores] = GetParam();
  fs::remove_all(experiment_);
  fs::remove(report_);
  if (restores) fs::copy(interrupted_, experiment_, fs::copy_options::recursive);
  const std::size_t before = witnesses_in(experiment_);
  const Ended ended = run_to_end(
      {.experiment = experiment_, .setting = kSetting, .environment = environment_of({role, how, call, {}, report_})});
  const std::string what = content_of(report_);
  const std::string context = "CADRE_FAULTS_FIRST=" + std::to_string(call) + ", " + what;
  judge(ended, witnesses_in(experiment_) > before, context);
  expect_no_faults(still_running(kPatience), context);
  // The next restore removes an object that could not be deleted at the end.
  if (ended.code != Ended::finished || fs::exists(experiment_ / "objects")) {
    const Ended restored = run_to_end({.experiment = experiment_, .setting = kSetting, .environment = {}});
    EXPECT_EQ(restored.code, Ended::finished) << context << "then: " << restored.message;
  }
  std::vector<std::string> faults = faults_of(experiment_, kSetting, {.finished = true, .outcome = undisturbed()});
  // A callback that gets no memory throws, and is then disabled like any callback that throws.
  if (how == "ENOMEM")
    std::erase_if(faults, [](const std::string& fault) { return fault.starts_with("a callback has seen"); });
  expect_no_faults(faults, context);
  return !what.empty();
}

void EveryCall::judge(const Ended& ended, bool trials_ran, const std::string& context) const {
  const auto& [role, how, restores] = GetParam();
  if (ended.code == Ended::finished) return;
  if (how == "ENOMEM") return;  // without memory any end is allowed: a restore must repair it
  const bool killed = how.starts_with("kill");
  if (killed && role == "controller" && ended.code == -SIGKILL) return;
  EXPECT_NE(role, "worker") << context << "a worker's trouble is its trial's only: " << ended.message;
  // SQLite does not say why its shared memory cannot grow, so this may be reported as a full disk.
  EXPECT_TRUE(ended.code == Ended::engine_error ||
              (!killed && (ended.code == Ended::storage_error || ended.code == Ended::out_of_space)))
      << context << "code " << ended.code << ": " << ended.message;
  if (!trials_ran) return;  // the user has just begun or continued it, and knows what to do
  EXPECT_THAT(ended.message, HasSubstr("Continue it with Tuner::restore")) << context;
  EXPECT_NE(how, "ENOSPC") << context << "a full disk is waited for: " << ended.message;
}

// Returns the stride unless the environment sets it: some kinds of processes make few calls.
long stride_of(const Case& one) {
  const bool is_controller = one.role == "controller";
  if (one.how == "ENOMEM") return is_controller ? 3001 : 301;
  if (one.how == "EIO_READ" || one.how == "EMFILE") return is_controller || one.role == "server" ? 24 : 6;
  return one.role == "server" ? 1 : 12;
}

TEST_P(EveryCall, FailsAndNothingIsLost) {
  fail_calls(stride_of(GetParam()), [this](long call) { return fail_one(call); });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* role : {"controller", "server", "worker"})
    for (const char* how : {"ENOSPC", "EIO", "EIO_READ", "EMFILE", "ENOMEM", "kill_before", "kill_half", "kill_after"})
      for (const bool restores : {false, true}) {
        // The server writes no files.
        const bool writes = std::string(how) == "kill_half" || std::string(how) == "ENOSPC";
        if (writes && std::string(role) == "server") continue;
        all.push_back({role, how, restores});
      }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, EveryCall, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name(); });

// ---- Calls whose failure was once handled badly

class OneCall : public ::testing::Test {
 protected:
  // Fails one call of a whole experiment, which must end successfully all the same.
  void fail(Failure failure) {
    failure.report = storage_ / "report";
    const Ended ended =
        run_to_end({.experiment = experiment_, .setting = kSetting, .environment = environment_of(failure)});
    EXPECT_NE(content_of(failure.report), "") << "there is no such call";
    EXPECT_EQ(ended.code, Ended::finished) << ended.message;
    expect_no_faults(faults_of(experiment_, kSetting, {.finished = true, .outcome = undisturbed()}), "at the end");
  }

  TemporaryDirectory storage_;
  const fs::path experiment_ = storage_ / "experiment";
};

TEST_F(OneCall, AResultIsRecordedOnceWhenItsCheckpointCannotBeRenamedOnAFullDisk) {
  fail({.role = "controller", .how = "ENOSPC", .call = 2, .only = "renameat checkpoint_"});
}

TEST_F(OneCall, ASyncOfAFullDiskIsWaitedFor) {
  for (const long call : {1, 2, 3, 4}) {  // the first syncs of the log
    SCOPED_TRACE(call);
    fail({.role = "controller", .how = "ENOSPC", .call = call, .only = "fdatasync"});
    fs::remove_all(experiment_);
  }
}

TEST_F(OneCall, AnAnswerThatCannotBeSentFailsItsWorkerAndHangsNobody) {
  fail({.role = "controller", .how = "EIO", .call = 9, .only = "send "});
}

TEST_F(OneCall, WhatAKilledWorkerHasHalfWrittenIsDeletedWhileTheExperimentGoesOn) {
  fail({.role = "worker", .how = "kill_before", .call = 3, .only = "/.metadata.json"});
  for (const auto& entry : fs::recursive_directory_iterator(experiment_))
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(::testing::StartsWith(".reporting_")));
}

TEST_F(OneCall, ADirectoryThatCannotBeDeletedIsDeletedAtTheEnd) {
  fail({.role = "controller", .how = "EIO", .only = "unlinkat state"});
}

TEST_F(OneCall, AForkServerThatCannotHearOfItsWorkersSaysSoInsteadOfHanging) {
  const Ended ended = run_to_end({.experiment = experiment_,
                                  .setting = kSetting,
                                  .environment = environment_of({.role = "server", .how = "EIO", .only = "signalfd"})});
  EXPECT_EQ(ended.code, Ended::engine_error);
  EXPECT_THAT(ended.message, HasSubstr("the fork server cannot hear of its workers' ends: Input/output error"));
}

// ---- A disk that is full for some time

class FullDisk : public ::testing::Test {
 protected:
  FullDisk() {
    setting_.steps = 40;
    setting_.verbose = true;
  }

  ControllerProcess start() {
    return ControllerProcess({.experiment = experiment_,
                              .setting = setting_,
                              .environment = {"LD_PRELOAD=" CADRE_FAIL_CALL_LIBRARY, "CADRE_FAIL_ROLE=controller",
                                              "CADRE_FULL_WHILE=" + full_.string()}});
  }
  // Fills the disk in the middle of the experiment and waits until the controller has noticed.
  void fill(const ControllerProcess& controller) {
    ASSERT_TRUE(wait_until(controller, [&] { return witnesses_in(experiment_) > 0; }));
    std::ofstream(full_) << "full";
    ASSERT_TRUE(wait_until(controller, [&] { return said().find("The disk is full") != std::string::npos; })) << said();
  }
  std::string said() const { return content_of(experiment_.string() + ".said"); }

  TemporaryDirectory storage_;
  const fs::path experiment_ = storage_ / "experiment";
  const fs::path full_ = storage_ / "full";
  Setting setting_ = kSetting;
};

TEST_F(FullDisk, TheExperimentSaysSoWaitsAndGoesOn) {
  ControllerProcess controller = start();
  fill(controller);
  EXPECT_FALSE(controller.wait(std::chrono::milliseconds(100)));
  fs::remove(full_);
  const auto ended = controller.wait(kPatience);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, Ended::finished) << ended->message;
  EXPECT_THAT(ended->message, HasSubstr("There is space again"));
  expect_no_faults(faults_of(experiment_, setting_, {.finished = true, .outcome = {}}), "at the end");
}

TEST_F(FullDisk, CtrlCEndsTheWaitingAndARestoreContinues) {
  ControllerProcess controller = start();
  fill(controller);
  controller.kill(SIGINT);
  const auto ended = controller.wait(kPatience);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, Ended::out_of_space);
  EXPECT_THAT(ended->message, HasSubstr("Continue it with Tuner::restore from " + experiment_.string()));
  expect_no_faults(still_running(kPatience), "after Ctrl-C");
  expect_no_faults(faults_of(experiment_, setting_, {.outcome = {}}), "after Ctrl-C");
  fs::remove(full_);
  EXPECT_EQ(run_to_end({.experiment = experiment_, .setting = setting_, .environment = {}}).code, Ended::finished);
  expect_no_faults(faults_of(experiment_, setting_, {.finished = true, .outcome = {}}), "at the end");
}

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  cadre::survival::run_if_controller(argc, argv);
  cadre::survival::adopt_orphans();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
