// Conformance suite of engines. A subject is a class with
//
//   std::unique_ptr<engine::Engine> make_engine();
//   std::filesystem::path make_directory();          // for one worker, empty
//
// whose engine runs the entry "conformance": the steps of a script, one after the other, then Finished. A step is a
// dictionary with one key:
//
//   {"report": <metrics>}           reports them; the step number counts from 1; stop as an answer ends the script
//   {"report_checkpoint": <name>}   reports a checkpoint; the next report has the answer's path as metric "committed"
//   {"throw": <text>}               a std::runtime_error
//   {"exit": <code>}, {"signal": <number>}, {"hang": true}
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.h"

namespace cadre::engine::conformance {

inline Value report(Dict metrics) { return {{"report", Value(std::move(metrics))}}; }
inline Value report_checkpoint(const char* name) { return {{"report_checkpoint", name}}; }
inline Value throws(const char* text) { return {{"throw", text}}; }
inline Value exits(int code) { return {{"exit", code}}; }
inline Value signals(int number) { return {{"signal", number}}; }
inline Value hangs() { return {{"hang", true}}; }

// Records the events of one engine, by worker.
class Listener {
 public:
  explicit Listener(Engine& engine) : engine_(engine) {}

  struct Heard {
    std::vector<channel::Report> reports;
    std::size_t finished = 0;
    std::vector<std::string> failed;
    std::vector<Exit> exits;
    bool message_after_exit = false;
  };

  // Calls wait() once. Answers reports with `answer` if it is set.
  void listen(const std::optional<channel::Answer>& answer) {
    for (Event& event : engine_.wait(patience)) std::visit([&](auto& e) { take(e, answer); }, event);
  }

  // Waits until `done` returns true; fails after `patience`.
  template <class Done>
  ::testing::AssertionResult until(Done done, const std::optional<channel::Answer>& answer = channel::Answer{}) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure() << "nothing for a minute";
      listen(answer);
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult until_all_exited(const std::optional<channel::Answer>& answer = channel::Answer{}) {
    return until([this] { return exited == started.size(); }, answer);
  }

  WorkerId start(const std::filesystem::path& directory, List script, double cpus = 1) {
    return start({.assignment = {"conformance", Value(std::move(script))}, .directory = directory, .cpus = cpus});
  }
  // Starts workers on all nodes in turn.
  WorkerId start(WorkerSpec spec) {
    const WorkerId worker = ++last_worker_;
    const std::vector<Node> nodes = engine_.nodes();
    spec.node = nodes.at(worker % nodes.size()).id;
    engine_.start(worker, spec);
    started.insert(worker);
    return worker;
  }

  const Heard& operator[](WorkerId worker) { return heard_[worker]; }
  const Exit& exit(WorkerId worker) { return heard_[worker].exits.at(0); }

  std::set<WorkerId> started;
  std::size_t exited = 0;
  std::vector<Node> joined;
  std::vector<NodeDraining> draining;
  std::vector<NodeLeft> left;
  std::vector<Fetched> fetched;

 private:
  static constexpr std::chrono::seconds patience{60};

  void take(Received& event, const std::optional<channel::Answer>& answer) {
    Heard& heard = heard_[event.worker];
    heard.message_after_exit |= !heard.exits.empty();
    if (auto* report = std::get_if<channel::Report>(&event.message)) {
      heard.reports.push_back(std::move(*report));
      if (answer) engine_.answer(event.worker, *answer);
    } else if (auto* failed = std::get_if<channel::Failed>(&event.message)) {
      heard.failed.push_back(std::move(failed->message));
    } else {
      ++heard.finished;
    }
  }
  void take(Exited& event, const std::optional<channel::Answer>&) {
    heard_[event.worker].exits.push_back(event.exit);
    ++exited;
  }
  void take(Fetched& event, const std::optional<channel::Answer>&) { fetched.push_back(event); }
  void take(NodeJoined& event, const std::optional<channel::Answer>&) { joined.push_back(event.node); }
  void take(NodeDraining& event, const std::optional<channel::Answer>&) { draining.push_back(event); }
  void take(NodeLeft& event, const std::optional<channel::Answer>&) { left.push_back(event); }

  Engine& engine_;
  WorkerId last_worker_ = 0;
  std::map<WorkerId, Heard> heard_;
};

template <class Subject>
class EngineConformance : public ::testing::Test {
 protected:
  WorkerId start(List script) { return heard.start(subject.make_directory(), std::move(script)); }

  Subject subject;
  std::unique_ptr<Engine> engine = subject.make_engine();
  Listener heard{*engine};
};

TYPED_TEST_SUITE_P(EngineConformance);

inline const Exit exited_with_0{Exit::Kind::code, 0, ""};

TYPED_TEST_P(EngineConformance, AnEmptyWorkerFinishesAndExitsWithZero) {
  const WorkerId worker = this->start({});
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard[worker].finished, 1U);
  EXPECT_EQ(this->heard.exit(worker), exited_with_0);
}

TYPED_TEST_P(EngineConformance, ReportsAndAnswersComeInOrder) {
  List script;
  for (int i = 1; i <= 100; ++i) script.push_back(report({{"value", i}}));
  const WorkerId worker = this->start(std::move(script));
  ASSERT_TRUE(this->heard.until_all_exited());
  const auto& reports = this->heard[worker].reports;
  ASSERT_EQ(reports.size(), 100U);
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(reports[static_cast<std::size_t>(i - 1)].step, i);
    EXPECT_EQ(reports[static_cast<std::size_t>(i - 1)].metrics, (Metrics{{"value", i}}));
  }
  EXPECT_EQ(this->heard[worker].finished, 1U);
}

TYPED_TEST_P(EngineConformance, AWorkerWaitsForItsAnswer) {
  const WorkerId worker = this->start({report({{"value", 1}}), report({{"value", 2}})});
  ASSERT_TRUE(this->heard.until([&] { return this->heard[worker].reports.size() == 1; }, std::nullopt));
  EXPECT_TRUE(this->engine->wait(std::chrono::milliseconds(20)).empty());
  this->engine->answer(worker, {});
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard[worker].reports.size(), 2U);
}

TYPED_TEST_P(EngineConformance, TheAnswerBringsTheCommittedCheckpoint) {
  const WorkerId worker = this->start({report_checkpoint("staged"), report({})});
  ASSERT_TRUE(this->heard.until_all_exited(channel::Answer{channel::Verdict::go_on, "/committed/here"}));
  ASSERT_EQ(this->heard[worker].reports.size(), 2U);
  EXPECT_EQ(this->heard[worker].reports[0].checkpoint, "staged");
  EXPECT_EQ(this->heard[worker].reports[1].metrics.template get<std::string>("committed"), "/committed/here");
}

TYPED_TEST_P(EngineConformance, StopAsAnswerFinishesTheWorker) {
  const WorkerId worker = this->start({report({}), report({}), exits(3)});
  ASSERT_TRUE(this->heard.until_all_exited(channel::Answer{channel::Verdict::stop, ""}));
  EXPECT_EQ(this->heard[worker].reports.size(), 1U);
  EXPECT_EQ(this->heard[worker].finished, 1U);
  EXPECT_EQ(this->heard.exit(worker), exited_with_0);
}

TYPED_TEST_P(EngineConformance, TwoWorkersRunAtOnce) {
  const WorkerId first = this->start({report({{"worker", 1}})});
  const WorkerId second = this->start({report({{"worker", 2}})});
  ASSERT_TRUE(this->heard.until(
      [&] { return !this->heard[first].reports.empty() && !this->heard[second].reports.empty(); }, std::nullopt));
  this->engine->answer(first, {});
  this->engine->answer(second, {});
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard[first].reports[0].metrics, (Metrics{{"worker", 1}}));
  EXPECT_EQ(this->heard[second].reports[0].metrics, (Metrics{{"worker", 2}}));
}

TYPED_TEST_P(EngineConformance, AnExceptionIsAFailureWithItsText) {
  const WorkerId worker = this->start({report({}), throws("out of luck")});
  ASSERT_TRUE(this->heard.until_all_exited());
  ASSERT_EQ(this->heard[worker].failed.size(), 1U);
  EXPECT_NE(this->heard[worker].failed[0].find("out of luck"), std::string::npos) << this->heard[worker].failed[0];
  EXPECT_EQ(this->heard[worker].finished, 0U);
  EXPECT_EQ(this->heard.exit(worker), exited_with_0);
}

TYPED_TEST_P(EngineConformance, ExitCodesAndSignalsAreToldApart) {
  const WorkerId code = this->start({exits(3)});
  const WorkerId zero = this->start({exits(0)});
  const WorkerId fault = this->start({signals(SIGSEGV)});
  const WorkerId killed = this->start({signals(SIGKILL)});
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(to_string(this->heard.exit(code)), "exited with code 3");
  EXPECT_EQ(to_string(this->heard.exit(zero)), "exited with code 0");
  EXPECT_EQ(to_string(this->heard.exit(fault)), "was ended by signal 11 (SIGSEGV)");
  EXPECT_EQ(to_string(this->heard.exit(killed)), "was ended by signal 9 (SIGKILL)");
  for (const WorkerId worker : this->heard.started) {
    EXPECT_EQ(this->heard[worker].finished + this->heard[worker].failed.size(), 0U);
  }
}

TYPED_TEST_P(EngineConformance, KillEndsAWorkerThatHangs) {
  const WorkerId worker = this->start({report({}), hangs()});
  ASSERT_TRUE(this->heard.until([&] { return !this->heard[worker].reports.empty(); }));
  this->engine->kill(worker);
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard.exit(worker), (Exit{Exit::Kind::signal, SIGKILL, ""}));
}

TYPED_TEST_P(EngineConformance, KillEndsAWorkerThatWaitsForItsAnswer) {
  const WorkerId worker = this->start({report({})});
  ASSERT_TRUE(this->heard.until([&] { return !this->heard[worker].reports.empty(); }, std::nullopt));
  this->engine->kill(worker);
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard.exit(worker), (Exit{Exit::Kind::signal, SIGKILL, ""}));
  EXPECT_EQ(this->heard[worker].finished, 0U);
}

TYPED_TEST_P(EngineConformance, KillAtOnceAfterTheStartEndsTheWorker) {
  const WorkerId worker = this->start({hangs()});
  this->engine->kill(worker);
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_EQ(this->heard.exit(worker), (Exit{Exit::Kind::signal, SIGKILL, ""}));
}

TYPED_TEST_P(EngineConformance, AnswersAndKillsForWorkersThatAreGoneDoNothing) {
  const WorkerId worker = this->start({});
  ASSERT_TRUE(this->heard.until_all_exited());
  this->engine->answer(worker, {});
  this->engine->kill(worker);
  EXPECT_TRUE(this->engine->wait(std::chrono::milliseconds(20)).empty());
}

TYPED_TEST_P(EngineConformance, ManyWorkersStartedInOneTurnAllExitOnceAfterTheirMessages) {
  for (int i = 0; i < 300; ++i) this->start({});
  ASSERT_TRUE(this->heard.until_all_exited());
  EXPECT_TRUE(this->engine->wait(std::chrono::milliseconds(20)).empty());
  for (const WorkerId worker : this->heard.started) {
    EXPECT_EQ(this->heard[worker].finished, 1U);
    EXPECT_EQ(this->heard[worker].exits, std::vector<Exit>{exited_with_0});
    EXPECT_FALSE(this->heard[worker].message_after_exit);
  }
}

TYPED_TEST_P(EngineConformance, TimeGrowsByAtLeastTheTimeoutThatPassed) {
  const auto before = this->engine->now();
  const double wall_before = this->engine->wall_seconds();
  EXPECT_TRUE(this->engine->wait(std::chrono::milliseconds(30)).empty());
  EXPECT_GE(this->engine->now() - before, std::chrono::milliseconds(30));
  EXPECT_GE(this->engine->wall_seconds() - wall_before, 0.02);
}

REGISTER_TYPED_TEST_SUITE_P(EngineConformance, AnEmptyWorkerFinishesAndExitsWithZero, ReportsAndAnswersComeInOrder,
                            AWorkerWaitsForItsAnswer, TheAnswerBringsTheCommittedCheckpoint,
                            StopAsAnswerFinishesTheWorker, TwoWorkersRunAtOnce, AnExceptionIsAFailureWithItsText,
                            ExitCodesAndSignalsAreToldApart, KillEndsAWorkerThatHangs,
                            KillEndsAWorkerThatWaitsForItsAnswer, KillAtOnceAfterTheStartEndsTheWorker,
                            AnswersAndKillsForWorkersThatAreGoneDoNothing,
                            ManyWorkersStartedInOneTurnAllExitOnceAfterTheirMessages,
                            TimeGrowsByAtLeastTheTimeoutThatPassed);

}  // namespace cadre::engine::conformance
