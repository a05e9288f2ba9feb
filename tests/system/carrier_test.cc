// The engine of a run whose directory nodes do not see: the conformance suite over it, and what becomes of files.
#include "engine/cluster/carrier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "channel/worker_end.h"
#include "engine/cluster/processes.h"
#include "engine_conformance.h"
#include "local_subject.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"
#include "worker/cluster.h"

namespace cadre::system_tests {
namespace {

namespace fs = std::filesystem;
using engine::Exit;
using engine::WorkerId;
using engine::cluster::Carrier;
using engine::cluster::ClusterEngine;
using engine::conformance::Listener;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

std::string content_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

ino_t number_of(const fs::path& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Works in a directory, prints a line, and reports a checkpoint of so many bytes as often as it is told to; fails if
// one is not where the answer says, or if what it needs is not there. Says that it is
// early if what it is told to expect is not there yet.
[[maybe_unused]] const bool reports_checkpoints =
    entry("reports checkpoints", [](channel::WorkerEnd& end, const Value& payload) {
      const Config config(payload);
      const fs::path directory = config.get<std::string>("directory");
      std::cout << "works in a directory" << std::endl;
      if (const auto awaited = config.get<std::string>("awaited"); !awaited.empty() && !fs::exists(awaited))
        std::cout << "early" << std::endl;
      if (const auto needed = config.get<std::string>("needed"); !needed.empty() && !fs::exists(needed))
        throw Error("what it needs is not there");
      if (const auto needed = config.get<std::string>("needed"); fs::exists(fs::path(needed) / storage::kRemoteFile))
        throw Error("what it needs is there without its files");
      for (std::int64_t i = 0; i < config.get<std::int64_t>("reports"); ++i) {
        const std::string name = fmt::format(".reporting_1_{}", i);
        fs::create_directories(directory / name / "deep");
        std::ofstream(directory / name / "deep" / "model") << std::string(config.get<std::size_t>("bytes"), 'm');
        const channel::Answer answer = end.report({.step = i + 1, .metrics = {{"i", i}}, .checkpoint = name});
        if (!answer.checkpoint.empty() && content_of(fs::path(answer.checkpoint) / "deep" / "model").empty())
          throw Error("the checkpoint is not where the answer says");
        if (answer.verdict == channel::Verdict::stop) return;
      }
    });

// Prints what it is replied.
[[maybe_unused]] const bool asks = entry("asks", [](channel::WorkerEnd& end, const Value&) {
  const channel::Reply reply = end.call(channel::Request{});
  std::cout << "replied: " << reply.error << std::endl;
});

// Asks three times, and reports.
[[maybe_unused]] const bool asks_often = entry("asks often", [](channel::WorkerEnd& end, const Value&) {
  for (int i = 0; i < 3; ++i) end.call(channel::Request{});
  end.report({.step = 1, .metrics = {{"asked", 3}}, .checkpoint = ""});
});

std::unique_ptr<ClusterEngine> make_two_agents() {
  return std::make_unique<ClusterEngine>(
      std::make_unique<engine::cluster::Processes>(),
      engine::cluster::ClusterOptions{.requests = {{.id = 1, .nodes = 2}},
                                      .start = {.command = {fs::read_symlink("/proc/self/exe")}},
                                      .addresses = {"127.0.0.1"}});
}

// Owns the nodes, too.
class CarryingEngine final : public engine::ForwardingEngine {
 public:
  static std::unique_ptr<CarryingEngine> make(const fs::path& directory) {
    auto nodes = make_two_agents();
    auto lease = std::make_unique<engine::cluster::Lease>(*nodes, fs::path(), std::vector<fs::path>());
    auto carrier = std::make_unique<Carrier>(std::move(lease), *nodes, directory);
    return std::unique_ptr<CarryingEngine>(new CarryingEngine(std::move(nodes), std::move(carrier)));
  }
  ClusterEngine& of_nodes() { return *nodes_; }

 private:
  CarryingEngine(std::unique_ptr<ClusterEngine> nodes, std::unique_ptr<Carrier> carrier)
      : ForwardingEngine(static_cast<Engine&>(*carrier)), nodes_(std::move(nodes)), carrier_(std::move(carrier)) {}

  std::unique_ptr<ClusterEngine> nodes_;
  std::unique_ptr<Carrier> carrier_;
};

class CarrierSubject {
 public:
  std::unique_ptr<engine::Engine> make_engine() { return CarryingEngine::make(directories_.make_directory()); }
  fs::path make_directory() { return directories_.make_directory(); }

 private:
  LocalSubject directories_;
};

class CarrierTest : public ::testing::Test {
 protected:
  // Starts a worker in a directory of its own on the first or the second node.
  WorkerId start(std::size_t node, std::int64_t reports, std::size_t bytes, std::vector<std::string> needs = {},
                 const std::string& awaited = {}) {
    const WorkerId worker = ++last_worker_;
    const engine::NodeId id = engine->nodes().at(node).id;
    const fs::path root = engine->directory_of_workers(id);
    fs::create_directories(run / trial(worker));
    engine->start(worker, {.assignment = {"reports checkpoints",
                                          Value{{"directory", (root / trial(worker)).string()},
                                                {"reports", reports},
                                                {"bytes", static_cast<std::int64_t>(bytes)},
                                                {"needed", needs.empty() ? "" : (root / needs.front()).string()},
                                                {"awaited", awaited.empty() ? "" : (root / awaited).string()}}},
                           .node = id,
                           .directory = root / trial(worker),
                           .needs = std::move(needs)});
    heard.started.insert(worker);
    return worker;
  }
  static std::string trial(WorkerId worker) { return fmt::format("trial_{}", worker); }
  // Waits for so many reports, which are not answered.
  auto heard_from(WorkerId worker, std::size_t reports) {
    return heard.until([this, worker, reports] { return heard[worker].reports.size() >= reports; }, std::nullopt);
  }
  // Does what a controller does with a report: renames its directory, and answers.
  void commit(WorkerId worker, std::size_t report, channel::Verdict verdict = channel::Verdict::go_on) {
    const std::string committed = fmt::format("{}/checkpoint_{}", trial(worker), report);
    fs::rename(run / trial(worker) / fmt::format(".reporting_1_{}", report), run / committed);
    engine->bring(worker, {committed});
    engine->answer(worker, {verdict, (root_of(worker) / committed).string()});
  }
  fs::path root_of(WorkerId worker) { return roots_.try_emplace(worker, root(0)).first->second; }
  fs::path root(std::size_t node) const { return engine->directory_of_workers(engine->nodes().at(node).id); }
  std::vector<std::string> names_in(const fs::path& directory) const { return base::list_directory(directory); }

  LocalSubject directories;
  const fs::path run = directories.make_directory();
  std::unique_ptr<CarryingEngine> engine = CarryingEngine::make(run);
  Listener heard{*engine};

 private:
  // So that conditions about files are looked at, too, though nothing happens.
  std::jthread waker_{[this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(10ms)) engine->wake();
  }};
  WorkerId last_worker_ = 0;
  std::map<WorkerId, fs::path> roots_ = {};
};

TEST_F(CarrierTest, AReportComesWithItsDirectoryAndTheWorkerFindsTheCheckpointUnderItsName) {
  const WorkerId worker = start(0, 4, 3'000'000);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(heard_from(worker, i + 1));
    const fs::path reported = run / trial(worker) / fmt::format(".reporting_1_{}", i);
    EXPECT_EQ(content_of(reported / "deep" / "model").size(), 3'000'000U);
    commit(worker, i);
    // Its node keeps the latest two.
    if (i == 3) EXPECT_TRUE(heard.until([&] { return names_in(root(0) / trial(worker)).size() <= 4; }, std::nullopt));
  }
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0) << heard[worker].failed.size();
  EXPECT_THAT(content_of(run / trial(worker) / "stdout"), HasSubstr("works in a directory"));
  EXPECT_THAT(names_in(run / trial(worker)),
              ElementsAre("checkpoint_0", "checkpoint_1", "checkpoint_2", "checkpoint_3", "stderr", "stdout"));
}

TEST_F(CarrierTest, WhatAWorkerNeedsIsThereWhenItStartsAndIsBroughtOnce) {
  std::ofstream(run / "large") << std::string(100'000'000, 'l');
  const WorkerId first = start(0, 0, 0, {"large"});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(first), engine::conformance::exited_with_0);
  const auto arrived = fs::last_write_time(root(0) / "large");
  const WorkerId next = start(0, 0, 0, {"large"});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(next), engine::conformance::exited_with_0);
  EXPECT_EQ(fs::last_write_time(root(0) / "large"), arrived);
}

// A process may start later than a file comes, however large, on a busy machine; so there are some attempts. If others
// waited, none would start before the file is there.
TEST_F(CarrierTest, OthersDoNotWaitForWhatAWorkerNeeds) {
  bool was_early = false;
  for (std::size_t attempt = 0; attempt < 20 && !was_early; ++attempt) {
    const std::string large = fmt::format("large_{}", attempt);
    std::ofstream(run / large) << std::string(100'000'000, 'l');
    start(0, 0, 0, {large});
    const WorkerId other = start(0, 0, 0, {}, large);
    ASSERT_TRUE(heard.until_all_exited());
    EXPECT_EQ(heard.exit(other), engine::conformance::exited_with_0);
    was_early = content_of(run / trial(other) / "stdout").find("early") != std::string::npos;
    fs::remove(run / large);
  }
  EXPECT_TRUE(was_early);
}

TEST_F(CarrierTest, ACheckpointOfAnotherTrialIsBroughtAndGoesWithItsWorker) {
  fs::create_directories(run / "other/checkpoint_7");
  std::ofstream(run / "other/checkpoint_7/model") << "m";
  const WorkerId worker = start(1, 1, 10, {"other/checkpoint_7"});
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_EQ(content_of(root(1) / "other/checkpoint_7/model"), "m");
  engine->answer(worker, {});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_TRUE(heard.until([&] { return names_in(root(1) / "other").empty(); }, std::nullopt));
}

// A worker may read it already, when whoever has reported it is answered.
TEST_F(CarrierTest, WhatWasReportedOnANodeIsNeitherSentToItNorReplacedThere) {
  const WorkerId reporter = start(0, 2, 5'000'000);
  ASSERT_TRUE(heard_from(reporter, 1));
  const ino_t reported = number_of(root(0) / trial(reporter) / ".reporting_1_0");
  const std::string committed = trial(reporter) + "/checkpoint_0";
  fs::rename(run / trial(reporter) / ".reporting_1_0", run / committed);
  const WorkerId reader = start(0, 1, 10, {committed});
  ASSERT_TRUE(heard_from(reader, 1));
  EXPECT_EQ(number_of(root(0) / committed), reported);
  engine->bring(reporter, {committed});
  engine->answer(reporter, {channel::Verdict::go_on, (root(0) / committed).string()});
  ASSERT_TRUE(heard_from(reporter, 2));
  EXPECT_EQ(number_of(root(0) / committed), reported);
  engine->answer(reader, {});
  engine->answer(reporter, {});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(reader), engine::conformance::exited_with_0);
  EXPECT_EQ(heard.exit(reporter), engine::conformance::exited_with_0);
}

TEST_F(CarrierTest, WhatWasReportedIsNotTakenForAnotherCheckpointOfTheSameSize) {
  fs::create_directories(run / "other/checkpoint_7/deep");
  std::ofstream(run / "other/checkpoint_7/deep/model") << "oooo";
  const WorkerId worker = start(0, 2, 4);
  ASSERT_TRUE(heard_from(worker, 1));
  engine->bring(worker, {"other/checkpoint_7"});
  engine->answer(worker, {});
  ASSERT_TRUE(heard_from(worker, 2));
  EXPECT_EQ(content_of(root(0) / "other/checkpoint_7/deep/model"), "oooo");
  engine->answer(worker, {});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
}

TEST_F(CarrierTest, WhatTheControllerFetchesIsKeptThereUnderItsNameUntilTheNextOne) {
  const engine::NodeId node = engine->nodes().at(0).id;
  for (const char* name : {"made_1", "made_2"}) {
    fs::create_directories(root(0) / name / "deep");
    std::ofstream(root(0) / name / "deep/model") << std::string(3'000'000, 'm');
    engine->fetch(node, name, std::string("copy_of_") + name);
  }
  ASSERT_TRUE(heard.until([&] { return heard.fetched.size() == 2; }, std::nullopt));
  EXPECT_EQ(heard.fetched.front().from, "made_1");
  EXPECT_EQ(heard.fetched.front().fault, "");
  EXPECT_EQ(content_of(run / "copy_of_made_1/deep/model").size(), 3'000'000U);
  const ino_t made = number_of(root(0) / "made_1");
  fs::rename(run / "copy_of_made_1", run / "checkpoint_1");
  engine->keep_fetched(node, "made_1", "checkpoint_1");
  const WorkerId worker = start(0, 0, 0, {"checkpoint_1"});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0);
  EXPECT_EQ(number_of(root(0) / "checkpoint_1"), made) << "it was not sent";
  engine->keep_fetched(node, "made_2", "checkpoint_2");
  EXPECT_TRUE(heard.until([&] { return !fs::exists(root(0) / "checkpoint_1"); }, std::nullopt));
  EXPECT_TRUE(fs::exists(root(0) / "checkpoint_2"));
}

TEST_F(CarrierTest, WhatCannotBeFetchedIsSaidWithItsReason) {
  const engine::NodeId node = engine->nodes().at(0).id;
  const auto fault_of = [&](engine::NodeId from_node, const std::string& from) {
    heard.fetched.clear();
    engine->fetch(from_node, from, "copy");
    EXPECT_TRUE(heard.until([&] { return !heard.fetched.empty(); }, std::nullopt));
    return heard.fetched.empty() ? "" : heard.fetched.front().fault;
  };
  EXPECT_THAT(fault_of(node, "nothing"), HasSubstr("nothing"));
  EXPECT_THAT(fault_of(node, "../outside"), HasSubstr("../outside"));
  EXPECT_EQ(fault_of(99, "made"), "its node has left");
  fs::create_directories(root(0) / "made");
  std::ofstream(root(0) / "made/model") << std::string(200'000'000, 'm');
  heard.fetched.clear();
  engine->fetch(node, "made", "copy");
  ::kill(static_cast<pid_t>(engine->of_nodes().agent_process(node)), SIGKILL);
  ASSERT_TRUE(heard.until([&] { return !heard.fetched.empty(); }, std::nullopt));
  EXPECT_EQ(heard.fetched.front().fault, "its node has left");
  EXPECT_THAT(names_in(run), IsEmpty());
}

TEST_F(CarrierTest, AReplyHasTheErrorIfWhatItGoesWithCannotBeBrought) {
  const engine::NodeId node = engine->nodes().at(0).id;
  fs::create_directories(run / "asker");
  engine->start(1, {.assignment = {"asks", Value(Dict{})}, .node = node, .directory = root(0) / "asker"});
  heard.started.insert(1);
  engine->bring(1, {"nothing"});
  engine->reply(1, channel::Reply{.call = 1});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(1), engine::conformance::exited_with_0);
  EXPECT_THAT(content_of(run / "asker/stdout"), HasSubstr("replied: its node cannot have nothing: "));
}

// As by several threads of a worker: one checkpoint more than its node keeps for it.
TEST_F(CarrierTest, EachOfManyCheckpointsThatAreAskedForAtOnceIsBrought) {
  const engine::NodeId node = engine->nodes().at(0).id;
  fs::create_directories(run / "asker");
  engine->start(1, {.assignment = {"asks", Value(Dict{})}, .node = node, .directory = root(0) / "asker"});
  heard.started.insert(1);
  channel::CallNumber call = 0;
  for (const char* name : {"checkpoint_0", "checkpoint_1", "checkpoint_2"}) {
    fs::create_directories(run / name);
    std::ofstream(run / name / "model") << "m";
    engine->bring(1, {name});
    engine->reply(1, channel::Reply{.call = ++call});
  }
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(1), engine::conformance::exited_with_0);
  EXPECT_THAT(content_of(run / "asker/stdout"), HasSubstr("replied: \n"));
}

TEST_F(CarrierTest, CheckpointsThatAWorkerHasAskedForStayUntilItsReportIsAnswered) {
  const engine::NodeId node = engine->nodes().at(0).id;
  fs::create_directories(run / "asker");
  engine->start(1, {.assignment = {"asks often", Value(Dict{})}, .node = node, .directory = root(0) / "asker"});
  heard.started.insert(1);
  const std::vector<std::string> names = {"checkpoint_0", "checkpoint_1", "checkpoint_2"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    fs::create_directories(run / names[i]);
    std::ofstream(run / names[i] / "model") << "m";
    ASSERT_TRUE(heard.until([&] { return heard[1].finished > i; }, std::nullopt));
    engine->bring(1, {names[i]});
    engine->reply(1, channel::Reply{.call = static_cast<channel::CallNumber>(i + 1)});
  }
  ASSERT_TRUE(heard_from(1, 1));
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(root(0) / name / "model")) << name;
  engine->answer(1, {});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(1), engine::conformance::exited_with_0);
}

TEST_F(CarrierTest, ANodeKeepsTheLatestTwoCheckpointsOfAWorkerWhoseReportIsAnswered) {
  const WorkerId worker = start(0, 3, 10);
  ASSERT_TRUE(heard_from(worker, 1));
  const std::vector<std::string> names = {"checkpoint_0", "checkpoint_1", "checkpoint_2"};
  for (const std::string& name : names) {
    fs::create_directories(run / name);
    std::ofstream(run / name / "model") << "m";
    engine->bring(worker, {name});
  }
  engine->answer(worker, {});
  ASSERT_TRUE(heard_from(worker, 2));
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(root(0) / name / "model")) << name << " was answered";
  engine->answer(worker, {});
  ASSERT_TRUE(heard_from(worker, 3));
  EXPECT_TRUE(heard.until([&] { return !fs::exists(root(0) / names[0]); }, std::nullopt));
  EXPECT_TRUE(fs::exists(root(0) / names[1] / "model"));
  EXPECT_TRUE(fs::exists(root(0) / names[2] / "model"));
  engine->answer(worker, {});
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
}

TEST_F(CarrierTest, AWorkerWhoseNeedsCannotBeHadIsNotStarted) {
  const WorkerId worker = start(0, 0, 0, {"other/checkpoint_7"});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::not_started);
  EXPECT_THAT(heard.exit(worker).detail, HasSubstr("its node cannot have other/checkpoint_7: "));
}

TEST_F(CarrierTest, AWorkerThatWaitsForFilesCanBeKilled) {
  std::ofstream(run / "large") << std::string(50'000'000, 'l');
  const WorkerId worker = start(0, 0, 0, {"large"});
  engine->kill(worker);
  engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).value, SIGKILL);
  EXPECT_THAT(content_of(run / trial(worker) / "stdout"), IsEmpty());
}

TEST_F(CarrierTest, ACheckpointThatIsStillBeingSentGoesWithItsWorker) {
  fs::create_directories(run / "other/checkpoint_7");
  std::ofstream(run / "other/checkpoint_7/model") << std::string(200'000'000, 'm');
  const WorkerId worker = start(0, 0, 0, {"other/checkpoint_7"});
  const auto has_something = [&] { return fs::exists(root(0) / "other") && !names_in(root(0) / "other").empty(); };
  ASSERT_TRUE(heard.until(has_something, std::nullopt));
  engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_TRUE(heard.until([&] { return !has_something(); }, std::nullopt));
}

TEST_F(CarrierTest, AReportIsLostWithItsNodeAndLeavesNothing) {
  const WorkerId worker = start(0, 1, 200'000'000);
  const WorkerId other = start(1, 3, 10);
  const auto agent = static_cast<pid_t>(engine->of_nodes().agent_process(engine->nodes().at(0).id));
  const auto arrives = [&] {
    for (const std::string& name : names_in(run / trial(worker))) {
      if (name.starts_with(".reporting_arrives")) return true;
    }
    return false;
  };
  ASSERT_TRUE(heard.until([&] { return arrives(); }));
  ::kill(agent, SIGKILL);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::node_lost);
  EXPECT_THAT(heard[worker].reports, IsEmpty());
  EXPECT_FALSE(arrives());
  EXPECT_EQ(heard[other].reports.size(), 3U);
  EXPECT_EQ(heard.exit(other), engine::conformance::exited_with_0);
}

// Most of the directory comes long after the disk was full, and is not taken for the beginning of what is fetched
// again.
TEST_F(CarrierTest, AReportWaitsUntilThereIsSpaceForItsDirectory) {
  if (::mount("tmpfs", run.c_str(), "tmpfs", 0, "size=256m") != 0) GTEST_SKIP() << "a small disk needs root";
  std::ofstream(run / "ballast") << std::string(240'000'000, 'b');
  const WorkerId worker = start(0, 1, 150'000'000);
  const auto agent = static_cast<pid_t>(engine->of_nodes().agent_process(engine->nodes().at(0).id));
  const auto arrives = [&] {
    const std::vector<std::string> names = names_in(run / trial(worker));
    return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with(".reporting_arrives"); });
  };
  EXPECT_TRUE(heard.until(arrives, std::nullopt));
  EXPECT_TRUE(heard.until([&] { return !arrives(); }, std::nullopt));
  ::kill(agent, SIGSTOP);
  const auto full = std::chrono::steady_clock::now();
  EXPECT_TRUE(heard.until([&] { return std::chrono::steady_clock::now() > full + 7s; }, std::nullopt));
  EXPECT_THAT(heard[worker].reports, IsEmpty());
  fs::remove(run / "ballast");
  ::kill(agent, SIGCONT);
  EXPECT_TRUE(
      heard.until([&] { return !heard[worker].reports.empty() || !heard[worker].exits.empty(); }, std::nullopt));
  EXPECT_EQ(content_of(run / trial(worker) / ".reporting_1_0/deep/model").size(), 150'000'000U);
  if (heard[worker].exits.empty()) commit(worker, 0);
  EXPECT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0);
  ::umount2(run.c_str(), MNT_DETACH);
}

TEST_F(CarrierTest, ABrokenConnectionCostsNothing) {
  const WorkerId worker = start(0, 1, 30'000'000);
  const engine::NodeId node = engine->nodes().at(0).id;
  for (int i = 0; i < 20; ++i) {
    engine->of_nodes().break_connection(node);
    heard.until([until = std::chrono::steady_clock::now() + 20ms] { return std::chrono::steady_clock::now() > until; },
                std::nullopt);
  }
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_EQ(content_of(run / trial(worker) / ".reporting_1_0/deep/model").size(), 30'000'000U);
  commit(worker, 0);
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0);
}

TEST(CarrierAtItsEnd, NodesKeepNothingOfItsRun) {
  LocalSubject directories;
  const fs::path run = directories.make_directory();
  const std::unique_ptr<ClusterEngine> nodes = make_two_agents();
  const engine::NodeId node = nodes->nodes().at(0).id;
  const fs::path root = nodes->own_directory_of(node);
  fs::create_directories(run / "trial");
  fs::create_directories(run / "other/checkpoint_7");
  std::ofstream(run / "other/checkpoint_7/model") << "m";
  std::ofstream(run / "object") << "o";
  {
    Carrier carrier(std::make_unique<engine::cluster::Lease>(*nodes, fs::path(), std::vector<fs::path>()), *nodes, run);
    Listener heard(carrier);
    carrier.start(1, {.assignment = {"reports checkpoints", Value{{"directory", (root / "trial").string()},
                                                                  {"reports", 1},
                                                                  {"bytes", 10},
                                                                  {"needed", (root / "object").string()},
                                                                  {"awaited", ""}}},
                      .node = node,
                      .directory = root / "trial",
                      .needs = {"object", "other/checkpoint_7"}});
    ASSERT_TRUE(heard.until([&] { return !heard[1].reports.empty(); }, std::nullopt));
    EXPECT_TRUE(fs::exists(root / "other/checkpoint_7/model"));
  }
  const auto has_something = [&] {
    return fs::exists(root / "trial") || fs::exists(root / "other/checkpoint_7") || fs::exists(root / "object");
  };
  for (const auto until = std::chrono::steady_clock::now() + 30s;
       has_something() && std::chrono::steady_clock::now() < until;)
    nodes->wait(10ms);
  EXPECT_FALSE(has_something());
}

// ---- Nodes that reach the storage where the run is published

class StoringCarrierTest : public CarrierTest {
 protected:
  StoringCarrierTest() {
    std::ofstream(published / "lease.json") << "of this run";
    storage::write_published_to(run, uri);
  }

  std::map<std::string, std::string> use_storage(const std::string& contents = "of this run") {
    return engine->use_storage(
        {.uri = uri, .file = "lease.json", .contents = contents, .place_of = [](const auto& name) {
           const fs::path path = name;
           return engine::RunStorage::Place{(path.parent_path() / ("stored" + path.filename().string())).string(),
                                            name.starts_with("copy") ? "7" : ""};
         }});
  }
  fs::path reported(WorkerId worker, std::size_t report) const {
    return run / trial(worker) / fmt::format(".reporting_1_{}", report);
  }

  const fs::path published = directories.make_directory();
  const storage::Uri uri{.scheme = "file", .location = published.string()};
};

TEST_F(StoringCarrierTest, AReportComesWithTheListOfWhatItsNodeHasStored) {
  EXPECT_THAT(use_storage(), IsEmpty());
  EXPECT_TRUE(engine->reaches_storage(engine->nodes().front().id));
  const WorkerId worker = start(0, 2, 3'000'000);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(heard_from(worker, i + 1));
    EXPECT_THAT(names_in(reported(worker, i)), ElementsAre(storage::kRemoteFile));
    const auto remote = storage::remote_files(reported(worker, i));
    EXPECT_EQ(remote->place, fmt::format("{}/stored.reporting_1_{}", trial(worker), i));
    EXPECT_EQ(Config(remote->files).get<std::int64_t>("deep/model/size"), 3'000'000);
    EXPECT_EQ(content_of(published / remote->place / "deep" / "model").size(), 3'000'000U);
    commit(worker, i);  // it finds its own there, without a download
  }
  ASSERT_TRUE(heard.until_all_exited(std::nullopt));
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0) << heard[worker].failed.size();
  EXPECT_THAT(names_in(published), ElementsAre("lease.json", trial(worker))) << "nothing is left of its trial";
}

TEST_F(StoringCarrierTest, WhatIsFetchedIsStoredAndAnotherNodeLoadsItsPart) {
  use_storage();
  const engine::NodeId node = engine->nodes().front().id;
  fs::create_directories(root(0) / "made" / "deep");
  std::ofstream(root(0) / "made" / "deep" / "model") << std::string(1000, 'm');
  engine->fetch(node, "made", "copy_1");
  ASSERT_TRUE(heard.until([&] { return heard.fetched.size() == 1; }));
  EXPECT_EQ(heard.fetched[0].fault, "");
  EXPECT_THAT(names_in(run / "copy_1"), ElementsAre(storage::kRemoteFile));
  EXPECT_EQ(content_of(published / "storedcopy_1" / "7" / "deep" / "model").size(), 1000U);
  const WorkerId worker = start(1, 1, 10, {"copy_1"});
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_EQ(content_of(root(1) / "copy_1" / "deep" / "model").size(), 1000U);
  engine->fetch(node, "made", "copy_2");
  engine->fetch(node, "missing", "copy_3");
  ::kill(static_cast<pid_t>(engine->of_nodes().agent_process(node)), SIGKILL);
  ASSERT_TRUE(heard.until([&] { return heard.fetched.size() == 3; })) << "also if the node ends meanwhile";
}

TEST_F(StoringCarrierTest, ANodeLoadsOnceWhatIsInTheStorageOnly) {
  use_storage();
  const WorkerId worker = start(0, 1, 1000);
  ASSERT_TRUE(heard_from(worker, 1));
  commit(worker, 0, channel::Verdict::stop);
  ASSERT_TRUE(heard.until_all_exited());
  const std::string committed = trial(worker) + "/checkpoint_0";
  const auto remote = storage::remote_files(run / committed);
  ASSERT_TRUE(remote);
  const WorkerId one = start(1, 0, 0, {committed});
  const WorkerId other = start(1, 1, 1000, {committed});  // waits, so its node keeps what it needs
  ASSERT_TRUE(heard_from(other, 1));
  ASSERT_TRUE(heard.until([&] { return !heard[one].exits.empty(); }, std::nullopt));
  EXPECT_EQ(heard.exit(one), engine::conformance::exited_with_0);
  EXPECT_EQ(content_of(root(1) / committed / "deep" / "model"), std::string(1000, 'm'));
  fs::remove_all(published / remote->place);
  const WorkerId third = start(1, 0, 0, {committed});
  ASSERT_TRUE(heard.until([&] { return !heard[third].exits.empty(); }, std::nullopt));
  EXPECT_EQ(heard.exit(third), engine::conformance::exited_with_0);
  EXPECT_TRUE(storage::remote_files(run / committed)) << "it has not come to the run's directory";
}

TEST_F(StoringCarrierTest, WhatANodeStillLoadsGoesWithTheWorkerThatNeedsIt) {
  use_storage();
  const WorkerId reporter = start(0, 1, 200'000'000);
  ASSERT_TRUE(heard_from(reporter, 1));
  commit(reporter, 0, channel::Verdict::stop);
  ASSERT_TRUE(heard.until_all_exited());
  const WorkerId reader = start(1, 0, 0, {trial(reporter) + "/checkpoint_0"});
  const fs::path loaded = root(1) / trial(reporter);
  const auto has_something = [&] { return fs::exists(loaded) && !names_in(loaded).empty(); };
  ASSERT_TRUE(heard.until(has_something, std::nullopt));
  engine->kill(reader);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_TRUE(heard.until([&] { return !has_something(); }, std::nullopt));
}

TEST_F(StoringCarrierTest, AReportIsLostWithTheNodeThatStoresIt) {
  use_storage();
  const WorkerId worker = start(0, 1, 200'000'000);
  const WorkerId other = start(1, 3, 10);
  const auto agent = static_cast<pid_t>(engine->of_nodes().agent_process(engine->nodes().at(0).id));
  ASSERT_TRUE(heard.until([&] { return fs::exists(published / trial(worker)); }));
  ::kill(agent, SIGKILL);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::node_lost);
  EXPECT_THAT(heard[worker].reports, IsEmpty());
  EXPECT_EQ(heard[other].reports.size(), 3U);
  EXPECT_EQ(heard.exit(other), engine::conformance::exited_with_0);
}

TEST_F(StoringCarrierTest, AReportWaitsUntilThereIsSpaceForItsList) {
  if (::mount("tmpfs", run.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "a small disk needs root";
  use_storage();
  const WorkerId worker = start(0, 1, 1000);
  std::ofstream(run / "ballast") << std::string(2'000'000, 'b');
  ASSERT_TRUE(heard.until([&] { return fs::exists(published / trial(worker) / "stored.reporting_1_0"); }));
  const auto full = std::chrono::steady_clock::now();
  EXPECT_TRUE(heard.until([&] { return std::chrono::steady_clock::now() > full + 1s; }, std::nullopt));
  EXPECT_THAT(heard[worker].reports, IsEmpty());
  fs::remove(run / "ballast");
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_TRUE(storage::remote_files(reported(worker, 0)));
  commit(worker, 0);
  EXPECT_TRUE(heard.until_all_exited(std::nullopt));
  ::umount2(run.c_str(), MNT_DETACH);
}

TEST_F(StoringCarrierTest, WhatCannotBeLoadedEndsTheWorkerThatNeedsIt) {
  use_storage();
  storage::make_remote(run / "checkpoint", {.files = {{"model", Dict{{"size", 7}}}}, .place = "gone"});
  const WorkerId worker = start(0, 0, 0, {"checkpoint"});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::not_started);
  EXPECT_THAT(heard.exit(worker).detail, HasSubstr("its node cannot have checkpoint"));
}

TEST_F(StoringCarrierTest, ANodeThatFindsAnotherStorageUsesItsConnection) {
  const auto without = use_storage("of another run");
  ASSERT_EQ(without.size(), 1U) << "both nodes have the name of this machine";
  EXPECT_THAT(without.begin()->second, HasSubstr("its lease.json differs"));
  EXPECT_FALSE(engine->reaches_storage(engine->nodes().front().id));
  const WorkerId worker = start(0, 1, 1000);
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_THAT(names_in(reported(worker, 0)), ElementsAre("deep"));
  EXPECT_THAT(names_in(published), ElementsAre("lease.json"));
}

TEST_F(StoringCarrierTest, ANodeThatFailsInTheStorageUsesItsConnectionForAWhile) {
  use_storage();
  std::ofstream(published / "trial_1") << "no directory";
  const WorkerId worker = start(0, 2, 1000);
  ASSERT_TRUE(heard_from(worker, 1));
  EXPECT_EQ(content_of(reported(worker, 0) / "deep" / "model").size(), 1000U);
  EXPECT_FALSE(engine->reaches_storage(engine->nodes().at(0).id));
  EXPECT_TRUE(engine->reaches_storage(engine->nodes().at(1).id));
  commit(worker, 0);
  ASSERT_TRUE(heard_from(worker, 2));
  EXPECT_THAT(names_in(reported(worker, 1)), ElementsAre("deep"));
}

}  // namespace
}  // namespace cadre::system_tests

namespace cadre::engine::conformance {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Carriers, EngineConformance, system_tests::CarrierSubject);

}  // namespace
}  // namespace cadre::engine::conformance
