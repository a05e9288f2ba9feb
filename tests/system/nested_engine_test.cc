// A worker that starts workers through an engine of its own, with the same fork server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "channel/worker_end.h"
#include "engine_conformance.h"
#include "local_subject.h"
#include "worker/entries.h"
#include "worker/root_engine.h"

namespace cadre::system_tests {
namespace {

using engine::Exit;
using engine::WorkerId;
using engine::conformance::Listener;
using ::testing::HasSubstr;

bool exists(pid_t process) { return ::kill(process, 0) == 0; }

// A worker's engine and its workers. Payload: {"directory", "workers": [entry, ...]}.
struct Family {
  explicit Family(const Value& payload)
      : directory(Config(payload).get<std::string>("directory")), engine(worker::make_root_engine()), heard(*engine) {}

  WorkerId start(const char* entry, const Value& payload, bool starts_workers) {
    const std::filesystem::path own = directory / std::to_string(++started);
    std::filesystem::create_directory(own);
    return heard.start({.assignment = {entry, payload}, .directory = own, .starts_workers = starts_workers});
  }

  std::filesystem::path directory;
  std::unique_ptr<engine::Engine> engine;
  Listener heard;
  int started = 0;
};

[[maybe_unused]] const bool waits = entry("nested waits", [](channel::WorkerEnd& controller, const Value&) {
  report_metrics(controller, {{"pid", ::getpid()}, {"server", ::getppid()}});
  for (;;) ::pause();
});

// Starts two workers, which exit before it does.
[[maybe_unused]] const bool parent = entry("nested parent", [](channel::WorkerEnd& controller, const Value& payload) {
  Family family(payload);
  const WorkerId returns = family.start("conformance", list(engine::conformance::report({{"x", 1}})), false);
  const WorkerId fails = family.start("conformance", list(engine::conformance::exits(3)), false);
  if (!family.heard.until_all_exited()) return;
  report_metrics(controller, {{"reports", std::ssize(family.heard[returns].reports)},
                              {"returned", engine::to_string(family.heard.exit(returns))},
                              {"failed", engine::to_string(family.heard.exit(fails))}});
});

// Starts a worker, which starts another one if `depth` is more than 1, and so on; all of them wait.
[[maybe_unused]] const bool dynasty = entry("nested dynasty", [](channel::WorkerEnd& controller, const Value& payload) {
  Family family(payload);
  const auto depth = Config(payload).get<std::int64_t>("depth");
  const Value below{{"directory", (family.directory / "1").string()}, {"depth", depth - 1}};
  const WorkerId child =
      depth > 1 ? family.start("nested dynasty", below, true) : family.start("nested waits", {}, false);
  const auto reported = [&] { return !family.heard[child].reports.empty(); };
  if (!family.heard.until(reported, std::nullopt)) return;
  Metrics metrics = family.heard[child].reports.at(0).metrics;
  metrics.set("depth" + std::to_string(depth), ::getpid());
  report_metrics(controller, metrics);
  for (;;) ::pause();
});

[[maybe_unused]] const bool refused =
    entry("nested refused", [](channel::WorkerEnd&, const Value&) { worker::make_root_engine(); });

class NestedEngine : public ::testing::Test {
 protected:
  WorkerId start(const char* name, Config payload = {}, bool starts_workers = true) {
    const std::filesystem::path directory = subject.make_directory();
    payload.set("directory", directory.string());
    return heard.start(
        {.assignment = {name, payload.dict()}, .directory = directory, .starts_workers = starts_workers});
  }
  const Metrics& metrics(WorkerId worker) { return heard[worker].reports.at(0).metrics; }

  LocalSubject subject;
  std::unique_ptr<engine::Engine> engine = subject.make_engine();
  Listener heard{*engine};
};

TEST_F(NestedEngine, AWorkerStartsWorkersAndHearsOfThem) {
  const WorkerId worker = start("nested parent");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_THAT(heard[worker].failed, ::testing::IsEmpty());
  EXPECT_EQ(metrics(worker).get<std::int64_t>("reports"), 1);
  EXPECT_EQ(metrics(worker).get<std::string>("returned"), "exited with code 0");
  EXPECT_EQ(metrics(worker).get<std::string>("failed"), "exited with code 3");
}

TEST_F(NestedEngine, AllWorkersComeFromOneServer) {
  const WorkerId plain = start("nested waits", {}, false);
  const WorkerId above = start("nested dynasty", {{"depth", 1}});
  ASSERT_TRUE(heard.until([&] { return !heard[plain].reports.empty() && !heard[above].reports.empty(); }));
  EXPECT_EQ(metrics(plain).get<pid_t>("server"), metrics(above).get<pid_t>("server"));
}

TEST_F(NestedEngine, WorkersOfAKilledWorkerAreGoneWhenItsEndIsTold) {
  const WorkerId worker = start("nested dynasty", {{"depth", 2}});
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }));
  const Metrics pids = metrics(worker);
  for (const char* of : {"depth2", "depth1", "pid"}) EXPECT_TRUE(exists(pids.get<pid_t>(of))) << of;
  engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
  for (const char* of : {"depth2", "depth1", "pid"}) EXPECT_FALSE(exists(pids.get<pid_t>(of))) << of;
}

TEST_F(NestedEngine, WorkersOfAnEngineThatIsDestroyedAreGone) {
  const WorkerId worker = start("nested dynasty", {{"depth", 2}});
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }));
  const Metrics pids = metrics(worker);
  engine.reset();
  for (const char* of : {"depth2", "depth1", "pid"}) EXPECT_FALSE(exists(pids.get<pid_t>(of))) << of;
}

TEST_F(NestedEngine, AWorkerThatMayNotIsToldSo) {
  const WorkerId worker = start("nested refused", {}, false);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_THAT(heard[worker].failed, ::testing::ElementsAre(HasSubstr("cannot start workers of its own")));
}

TEST_F(NestedEngine, FamiliesLeaveNoDescriptorInTheServer) {
  const auto descriptors_of_server = [this] {
    const WorkerId worker = start("nested waits", {}, false);
    EXPECT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }));
    const std::string server = std::to_string(metrics(worker).get<pid_t>("server"));
    engine->kill(worker);
    EXPECT_TRUE(heard.until_all_exited());
    return std::distance(std::filesystem::directory_iterator("/proc/" + server + "/fd"), {});
  };
  const auto before = descriptors_of_server();
  for (int i = 0; i < 20; ++i) start("nested parent");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(descriptors_of_server(), before);
}

}  // namespace
}  // namespace cadre::system_tests
