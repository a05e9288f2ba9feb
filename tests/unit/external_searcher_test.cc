// A searcher that is another program, here of Python.
#include "cadre/tune/searchers/external_searcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/line_program.h"
#include "cadre/error.h"
#include "cadre/tune/searchers/concurrency_limiter.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "tune/options/options.h"
#include "tune/searcher_thread.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Suggests the number of trials that it was told of, and logs what it reads. `{}`: lines before the answer.
constexpr const char* kProgram = R"(
import json, sys
log = open(sys.argv[1], "a")
added = ended = 0
for text in sys.stdin:
    line = json.loads(text)
    log.write(next(iter(line)) + " ")
    log.flush()
    added += "add" in line
    ended += "end" in line
    if "suggest" not in line:
        continue
    trial = line["suggest"]
    FAULT
    print(json.dumps({"config": {"x": added + ended / 10}}), flush=True)
)";

class AProgram : public ::testing::Test {
 protected:
  // `fault` is a line of Python, which knows the number of the trial as `trial`.
  ExternalSearcher options(const std::string& fault = "pass") {
    std::string program = kProgram;
    program.replace(program.find("FAULT"), 5, fault);
    base::write_file(script_, program);
    return {.command = {"python3", script_.string(), log_.string()}, .timeout = std::chrono::seconds(20)};
  }
  static SearcherSetting setting() {
    return {.seed = 3, .space = {{"x", uniform(0, 100)}}, .metric = minimize("loss")};
  }
  // Suggests and adds the next trial; returns its x.
  double add(Searcher& searcher) {
    const std::optional<Config> config = searcher.suggest(next_);
    searcher.on_trial_add(next_++, *config);
    return config->get<double>("x");
  }
  std::string log() const { return base::read_file(log_); }

  test_support::TemporaryDirectory directory_;
  std::filesystem::path script_ = directory_.path() / "searcher.py";
  std::filesystem::path log_ = directory_.path() / "log";
  TrialIndex next_ = 0;
};

TEST_F(AProgram, IsToldWhatHappensAndSuggests) {
  const std::unique_ptr<Searcher> searcher = options().make(setting());
  EXPECT_EQ(add(*searcher), 0);
  searcher->on_result(0, {{"loss", 1}});
  EXPECT_EQ(add(*searcher), 1);
  searcher->on_trial_end(0, TrialStatus::terminated, {{"loss", 1}});
  searcher->on_trial_end(1, TrialStatus::error, {});
  EXPECT_EQ(add(*searcher), 2.2);
  EXPECT_EQ(log(), "begin suggest add result suggest add end end suggest ");
}

TEST_F(AProgram, ThatEndsIsStartedAgainAndToldEverything) {
  const std::unique_ptr<Searcher> searcher =
      options("if trial == 2 and open(sys.argv[1]).read().count('begin') == 1: sys.exit(3)").make(setting());
  add(*searcher);
  add(*searcher);
  searcher->on_trial_end(1, TrialStatus::terminated, {{"loss", 1}});
  EXPECT_EQ(add(*searcher), 2.1);
  EXPECT_EQ(add(*searcher), 3.1);
  EXPECT_EQ(log(), "begin suggest add suggest add end suggest begin add add end suggest add suggest ");
}

TEST_F(AProgram, ThatAlwaysFailsEndsTheSearchWithItsReason) {
  const auto failure = [&](const std::string& fault) {
    ExternalSearcher one = options(fault);
    one.max_restarts = 1;
    one.timeout = std::chrono::seconds(fault.find("sleep") == fault.npos ? 20 : 1);
    const std::unique_ptr<Searcher> searcher = one.make(setting());
    return message_of<EngineError>([&] { searcher->suggest(0); });
  };
  EXPECT_THAT(failure("sys.exit(3)"), HasSubstr("has failed 2 times in a row, the last time because it exited with "
                                                "code 3"));
  EXPECT_THAT(failure("import os; os.kill(os.getpid(), 9)"), HasSubstr("it was ended by signal 9"));
  EXPECT_THAT(failure("import time; time.sleep(1000)"), HasSubstr("it does not answer in time"));
  EXPECT_THAT(failure("print('fine', flush=True)"), HasSubstr("but fine; its standard error"));
  EXPECT_THAT(failure("print('{\"config\": 3}', flush=True)"), HasSubstr("it answered neither"));
}

TEST_F(AProgram, MayWait) {
  const std::unique_ptr<Searcher> searcher =
      options("if ended == 0 and added == 1: print('{\"wait\": true}', flush=True); continue").make(setting());
  add(*searcher);
  EXPECT_EQ(searcher->suggest(1), std::nullopt);
  searcher->on_trial_end(0, TrialStatus::terminated, {{"loss", 1}});
  EXPECT_EQ(add(*searcher), 1.1);
}

TEST_F(AProgram, MayHaveNothingMore) {
  const std::unique_ptr<Searcher> searcher =
      options("if added == 1: print('{\"finished\": true}', flush=True); continue").make(setting());
  add(*searcher);
  EXPECT_FALSE(searcher->is_finished());
  EXPECT_EQ(searcher->suggest(1), std::nullopt);
  EXPECT_TRUE(searcher->is_finished());
}

// Without that this would take an hour, more than the test may.
TEST_F(AProgram, IsNotWaitedForWhenItsExperimentEnds) {
  ExternalSearcher slow = options("import time; time.sleep(3600)");
  slow.timeout = std::chrono::hours(1);
  const std::unique_ptr<Searcher> searcher = ConcurrencyLimiter{.searcher = slow, .max_concurrent = 3}.make(setting());
  {
    SearcherThread thread([] {});
    thread.suggest(*searcher, 0);
    while (!std::filesystem::exists(log_) || log() != "begin suggest ")
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(message_of<EngineError>([&] { searcher->suggest(0); }), HasSubstr("it was cancelled"));
}

// More nanoseconds than 64 bits hold.
TEST_F(AProgram, MayTakeForEver) {
  ExternalSearcher patient = options();
  patient.timeout = Seconds(1e10);
  const std::unique_ptr<Searcher> searcher = patient.make(setting());
  EXPECT_EQ(add(*searcher), 0);
}

TEST_F(AProgram, GetsMoreThanAPipeHolds) {
  const std::unique_ptr<Searcher> searcher = options().make(setting());
  for (next_ = 0; next_ < 20'000; ++next_) searcher->on_trial_add(next_, {{"x", 1}, {"text", std::string(50, 'a')}});
  EXPECT_EQ(searcher->suggest(next_)->get<double>("x"), 20'000);
}

TEST_F(AProgram, IsToldAnewIfMoreResultsWaitThanAreKept) {
  const std::unique_ptr<Searcher> searcher = options().make(setting());
  add(*searcher);
  for (int i = 0; i < 40; ++i) searcher->on_result(0, {{"loss", 1}, {"text", std::string(1 << 20, 'a')}});
  searcher->on_trial_end(0, TrialStatus::terminated, {{"loss", 1}});
  EXPECT_EQ(add(*searcher), 1.1);
  searcher->on_result(1, {{"loss", 1}});
  EXPECT_EQ(add(*searcher), 2.1);
  EXPECT_EQ(log(), "begin suggest begin add end suggest add result suggest ");
}

TEST(ExternalSearcher, BadOptionsAreNamed) {
  const auto faults = [](const ExternalSearcher& searcher) {
    TunerOptions options{.param_space = {{"x", uniform(0, 10)}},
                         .tune_config = {.metric = minimize("loss"), .searcher = searcher}};
    std::vector<std::string> notes;
    return message_of<InvalidArgument>([&] { check_options(Trainable("f"), resolve(Trainable("f"), options, notes)); });
  };
  EXPECT_THAT(faults({}), HasSubstr("searcher (ExternalSearcher) command: name the program"));
  EXPECT_THAT(faults({.command = {"no-such-program"}}), HasSubstr("no-such-program is no executable file"));
  EXPECT_THAT(faults({.command = {"sh"}, .timeout = Seconds(0)}), HasSubstr("timeout: it is 0 s"));
}

}  // namespace
}  // namespace cadre::tune
