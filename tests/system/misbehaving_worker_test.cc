// Workers that misbehave: each is ended with a cause that says how, and the other worker of the engine goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "channel/frame.h"
#include "channel/worker_end.h"
#include "engine/local/oom_kills.h"
#include "engine/local/output_limit.h"
#include "engine_conformance.h"
#include "local_subject.h"
#include "scenario.h"
#include "support/sanitized.h"
#include "support/temporary_directory.h"
#include "surroundings.h"
#include "worker/entries.h"

namespace cadre::system_tests {
namespace {

using engine::Exit;
using engine::WorkerId;
using engine::conformance::Listener;
using engine::conformance::report;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::uint64_t limit_bytes = 64 * mebibyte;
constexpr const char* limit_text = " (the memory limit of this trial is 64 MiB)";

// ---- worker functions

[[noreturn]] void hang() {
  for (;;) ::pause();
}

// Writes through a volatile pointer: a compiler may drop memory that is never read.
char* touched(char* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return memory;
}

[[maybe_unused]] const bool allocates = entry("allocates", [](channel::WorkerEnd& controller, const Value& payload) {
  const std::size_t bytes = payload.get<std::size_t>() * mebibyte;
  const std::unique_ptr<char[]> memory(new char[bytes]);
  touched(memory.get(), bytes);
  report_metrics(controller, {});
});

// Stops at a gibibyte: a limit that does not work must not harm the machine.
[[maybe_unused]] const bool leaks = entry("leaks", [](channel::WorkerEnd&, const Value&) {
  for (std::size_t bytes = 0; bytes < 1024 * mebibyte; bytes += 100) touched(new char[100], 100);
});

[[maybe_unused]] const bool does_not_check = entry("does not check", [](channel::WorkerEnd&, const Value&) {
  touched(static_cast<char*>(std::malloc(200 * mebibyte)), 200 * mebibyte);
});

[[maybe_unused]] const bool child_allocates =
    entry("child allocates", [](channel::WorkerEnd& controller, const Value&) {
      const pid_t child = ::fork();
      if (child == 0) {
        void* const memory =
            ::mmap(nullptr, 200 * mebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::_exit(memory == MAP_FAILED ? 1 : 0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      report_metrics(controller, {{"child", WEXITSTATUS(status)}});
    });

// Writes to both streams until the file of the first has shrunk twice; reports the bytes written to each stream.
[[maybe_unused]] const bool floods = entry("floods", [](channel::WorkerEnd& controller, const Value&) {
  std::string block;
  while (block.size() < mebibyte) block += "one of many lines, of which all but the newest are dropped some time\n";
  std::size_t written = 0;
  std::int64_t largest = 0;
  for (std::int64_t shrunk = 0, before = 0; shrunk < 2; written += block.size()) {
    if (written > 4096 * mebibyte) ::abort();
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      if (::write(stream, block.data(), block.size()) < 0) ::abort();
    }
    struct stat file{};
    ::fstat(STDOUT_FILENO, &file);
    if (file.st_size < before) ++shrunk;
    before = file.st_size;
    largest = std::max(largest, before);
  }
  if (::write(STDOUT_FILENO, "the end\n", 8) != 8) ::abort();
  report_metrics(controller, {{"written", static_cast<std::int64_t>(written) + 8}, {"largest", largest}});
});

[[maybe_unused]] const bool closes_all = entry("closes all descriptors", [](channel::WorkerEnd&, const Value&) {
  ::closefrom(0);
  hang();
});

[[maybe_unused]] const bool duplicates_all = entry("duplicates descriptors", [](channel::WorkerEnd&, const Value&) {
  while (::dup(connection_descriptor()) >= 0) {
  }
  ::raise(SIGSEGV);
});

[[maybe_unused]] const bool promises = entry("promises a gibibyte", [](channel::WorkerEnd&, const Value&) {
  const std::uint32_t header[] = {channel::frame_magic, std::uint32_t{1} << 30};
  if (::write(connection_descriptor(), header, sizeof header) != sizeof header) ::abort();
  const std::string block(mebibyte, 'x');
  while (::send(connection_descriptor(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
  }
  hang();
});

[[maybe_unused]] const bool half_a_message = entry("sends half a message", [](channel::WorkerEnd&, const Value&) {
  const std::uint32_t header[] = {channel::frame_magic, 4096};
  if (::write(connection_descriptor(), header, sizeof header) != sizeof header) ::abort();
  hang();
});

[[maybe_unused]] const bool stops_itself = entry("stops itself", [](channel::WorkerEnd& controller, const Value&) {
  report_metrics(controller, {{"worker", ::getpid()}});
  ::raise(SIGSTOP);
});

// Forks for ever: each process exits before it can be killed, and its child goes on.
[[noreturn]] void go_on_in_children() {
  for (;;) {
    if (::fork() > 0) ::_exit(0);
  }
}

[[maybe_unused]] const bool keeps_forking = entry("keeps forking", [](channel::WorkerEnd& controller, const Value&) {
  for (int i = 0; i < 8; ++i) {
    if (::fork() == 0) go_on_in_children();
  }
  report_metrics(controller, {{"worker", ::getpid()}});
  hang();
});

// ---- the tests

class MisbehavingWorker : public ::testing::Test {
 protected:
  static constexpr int reports = 50;

  // Starts the other worker, which waits for an answer as long as a misbehaving one lives.
  MisbehavingWorker() {
    List script;
    for (int i = 0; i < reports; ++i) script.push_back(report({}));
    other = heard.start(subject.make_directory(), std::move(script));
    EXPECT_TRUE(heard.until([&] { return !heard[other].reports.empty(); }, std::nullopt));
  }
  // Expects that the other worker was not disturbed.
  ~MisbehavingWorker() override {
    if (engine == nullptr) return;
    engine->answer(other, {});
    EXPECT_TRUE(heard.until([&] { return !heard[other].exits.empty(); }));
    EXPECT_EQ(heard[other].reports.size(), std::size_t{reports});
    EXPECT_EQ(to_string(heard.exit(other)), "exited with code 0");
  }

  WorkerId start(const char* name, Value payload = {}, std::optional<std::uint64_t> memory_bytes = {}) {
    return heard.start({.assignment = {name, std::move(payload)},
                        .directory = subject.make_directory(),
                        .memory_bytes = memory_bytes});
  }
  bool until_exited(WorkerId worker) {
    return static_cast<bool>(heard.until([&] { return !heard[worker].exits.empty(); }, std::nullopt));
  }
  bool until_reported(WorkerId worker) {
    return static_cast<bool>(heard.until([&] { return !heard[worker].reports.empty(); }, std::nullopt));
  }
  std::string cause(WorkerId worker) { return until_exited(worker) ? to_string(heard.exit(worker)) : "it is there"; }

  LocalSubject subject;
  std::unique_ptr<engine::Engine> engine = subject.make_engine();
  Listener heard{*engine};
  WorkerId other = 0;
};

TEST_F(MisbehavingWorker, ThatClosesAllItsDescriptorsAndHangsIsEnded) {
  EXPECT_EQ(cause(start("closes all descriptors")),
            "was ended by signal 9 (SIGKILL): it closed its connection to the controller and went on");
}

TEST_F(MisbehavingWorker, ThatHasAllTheDescriptorsThereCanBeIsToldByItsSignal) {
  EXPECT_EQ(cause(start("duplicates descriptors")), "was ended by signal 11 (SIGSEGV)");
}

TEST_F(MisbehavingWorker, ThatSendsAnEndlessMessageIsEndedBeforeItIsRead) {
  EXPECT_THAT(cause(start("promises a gibibyte")),
              AllOf(StartsWith("was ended by signal 9 (SIGKILL): "), HasSubstr("1073741824")));
}

TEST_F(MisbehavingWorker, ThatHangsInTheMiddleOfAMessageIsKilled) {
  const WorkerId worker = start("sends half a message");
  EXPECT_TRUE(engine->wait(std::chrono::milliseconds(20)).empty());
  engine->kill(worker);
  EXPECT_EQ(cause(worker), "was ended by signal 9 (SIGKILL)");
}

TEST_F(MisbehavingWorker, ThatStopsItselfIsKilled) {
  const WorkerId worker = start("stops itself");
  ASSERT_TRUE(until_reported(worker));
  const auto process = heard[worker].reports[0].metrics.get<pid_t>("worker");
  engine->answer(worker, {});
  const auto state = [&] {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.substr(text.rfind(')') + 2, 1);
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (state() != "T" && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(state(), "T");
  engine->kill(worker);
  EXPECT_EQ(cause(worker), "was ended by signal 9 (SIGKILL)");
}

TEST_F(MisbehavingWorker, WhoseChildrenKeepForkingIsGoneWithAllOfThem) {
  const WorkerId worker = start("keeps forking");
  ASSERT_TRUE(until_reported(worker));
  const auto group = heard[worker].reports[0].metrics.get<pid_t>("worker");
  engine->kill(worker);
  EXPECT_EQ(cause(worker), "was ended by signal 9 (SIGKILL)");
  EXPECT_NE(::kill(-group, SIGKILL), 0);
}

// ---- memory

class MemoryLimit : public MisbehavingWorker {
 protected:
  void SetUp() override {
    if (test_support::sanitized) GTEST_SKIP() << "sanitizers answer a refused allocation in ways of their own";
  }
  std::string failure(WorkerId worker) {
    if (!until_exited(worker)) return "it is there";
    return heard[worker].failed.empty() ? "none" : heard[worker].failed[0];
  }
};

TEST_F(MemoryLimit, RefusesAWorkerWhatIsBeyondItAndNoOtherWorker) {
  const WorkerId limited = start("allocates", 200, limit_bytes);
  const WorkerId free = start("allocates", 200);
  EXPECT_EQ(failure(limited), std::string("std::bad_alloc: std::bad_alloc") + limit_text);
  ASSERT_TRUE(until_reported(free));
  engine->answer(free, {});
  EXPECT_EQ(cause(free), "exited with code 0");
}

TEST_F(MemoryLimit, ThatIsNotReachedDoesNothing) {
  const WorkerId worker = start("allocates", 32, limit_bytes);
  ASSERT_TRUE(until_reported(worker));
  engine->answer(worker, {});
  EXPECT_EQ(cause(worker), "exited with code 0");
  EXPECT_EQ(heard[worker].finished, 1U);
}

TEST_F(MemoryLimit, BeyondWhatThereIsMayBeAny) {
  const WorkerId worker = start("allocates", 32, std::numeric_limits<std::uint64_t>::max());
  ASSERT_TRUE(until_reported(worker));
  engine->answer(worker, {});
  EXPECT_EQ(cause(worker), "exited with code 0");
}

TEST_F(MemoryLimit, IsToldAlsoWhenALeakHasTakenTheLastOfIt) {
  EXPECT_EQ(failure(start("leaks", {}, limit_bytes)), std::string("std::bad_alloc: std::bad_alloc") + limit_text);
}

TEST_F(MemoryLimit, EndsAWorkerThatDoesNotCheckWhatItGets) {
  EXPECT_EQ(cause(start("does not check", {}, limit_bytes)), "was ended by signal 11 (SIGSEGV)");
}

TEST_F(MemoryLimit, IsThatOfItsChildrenToo) {
  const WorkerId limited = start("child allocates", {}, limit_bytes);
  const WorkerId free = start("child allocates");
  ASSERT_TRUE(until_reported(limited) && until_reported(free));
  EXPECT_EQ(heard[limited].reports[0].metrics.get<int>("child"), 1);
  EXPECT_EQ(heard[free].reports[0].metrics.get<int>("child"), 0);
  for (const WorkerId worker : {limited, free}) {
    engine->answer(worker, {});
    EXPECT_EQ(cause(worker), "exited with code 0");
  }
}

// ---- output

TEST_F(MisbehavingWorker, ThatFloodsItsOutputLosesTheOldestOfItAndDoesNotDisturbReports) {
  const std::filesystem::path directory = subject.make_directory();
  const WorkerId worker = heard.start({.assignment = {"floods", {}}, .directory = directory});
  engine->answer(other, {});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[other].reports.size(), std::size_t{reports});
  ASSERT_EQ(cause(worker), "exited with code 0");
  const Metrics& metrics = heard[worker].reports.at(0).metrics;
  RecordProperty("largest_bytes", metrics.get<int>("largest"));
  engine.reset();
  for (const char* name : {"stdout", "stderr"}) {
    EXPECT_LE(std::filesystem::file_size(directory / name), engine::local::max_output_bytes);
    const std::string text = test_support::content_of(directory / name);
    std::uint64_t dropped = 0;
    ASSERT_EQ(std::sscanf(text.c_str(), "[cadre: %lu bytes of older output were dropped here]", &dropped), 1) << name;
    EXPECT_GT(dropped, engine::local::max_output_bytes - engine::local::kept_output_bytes);
    EXPECT_LE(dropped + text.size() - (text.find('\n') + 1), metrics.get<std::uint64_t>("written"));
  }
  EXPECT_THAT(test_support::content_of(directory / "stdout"), EndsWith("the end\n"));
}

// ---- in an environment of its own

constexpr const char* cannot = "cannot: ";

[[maybe_unused]] const bool dies_as_of_oom = entry("dies as of oom", [](channel::WorkerEnd& controller, const Value&) {
  const std::filesystem::path file = engine::local::oom_counter_file();
  const std::uint64_t count = engine::local::read_oom_kills(file).value() + 1;
  std::ofstream(file, std::ios::in) << "oom_kill " << count << "\n";
  report_metrics(controller, {});
  ::raise(SIGKILL);
});

[[maybe_unused]] const bool is_killed = entry("is killed", [](channel::WorkerEnd&, const Value&) { ::raise(SIGKILL); });

[[maybe_unused]] const bool oom_kill_counter = register_scenario("a counter of oom kills", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  const auto start = [&](const char* name) {
    return heard.start({.assignment = {name, {}}, .directory = subject.make_directory()});
  };
  const WorkerId by_kernel = start("dies as of oom");
  if (!heard.until_all_exited()) return 2;
  const WorkerId by_somebody = start("is killed");
  if (!heard.until_all_exited()) return 2;
  const WorkerId by_us = start("dies as of oom");
  if (!heard.until([&] { return !heard[by_us].reports.empty(); }, std::nullopt)) return 2;
  engine->kill(by_us);
  if (!heard.until_all_exited()) return 2;
  for (const WorkerId worker : {by_kernel, by_somebody, by_us}) say(to_string(heard.exit(worker)));
  return 0;
});

TEST(OutOfMemory, IsTheCauseOfASigkillThatTheKernelHasCounted) {
  ScenarioProcess controller("a counter of oom kills", {own_oom_counter});
  const std::string by_kernel = controller.line();
  if (by_kernel.starts_with(cannot)) GTEST_SKIP() << by_kernel;
  EXPECT_EQ(by_kernel, "was ended by signal 9 (SIGKILL): out of memory: the kernel ended it (oom_kill)");
  EXPECT_EQ(controller.line(), "was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(controller.line(), "was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(controller.wait(), 0);
}

[[maybe_unused]] const bool really_out_of_memory = register_scenario("really out of memory", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  const WorkerId worker = heard.start({.assignment = {"leaks", {}}, .directory = subject.make_directory()});
  if (!heard.until_all_exited()) return 2;
  say(to_string(heard.exit(worker)));
  return 0;
});

TEST(OutOfMemory, InACgroupIsToldAsSuch) {
  ScenarioProcess controller("really out of memory", {small_cgroup});
  const std::string line = controller.line();
  if (line.starts_with(cannot)) GTEST_SKIP() << line;
  EXPECT_EQ(line, "was ended by signal 9 (SIGKILL): out of memory: the kernel ended it (oom_kill)");
  const pid_t process = controller.process();
  EXPECT_EQ(controller.wait(), 0);
  remove_small_cgroup(process);
}

[[maybe_unused]] const bool full_disk = register_scenario("a full disk", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  const std::filesystem::path directory = subject.make_directory();
  for (int i = 0; std::ofstream(directory / std::to_string(i)); ++i) {
  }
  const WorkerId worker = heard.start({.assignment = {"is killed", {}}, .directory = directory});
  if (!heard.until_all_exited()) return 2;
  say(to_string(heard.exit(worker)));
  return 0;
});

TEST(FullDisk, IsToldWhenAWorkersOutputCannotBeMade) {
  ScenarioProcess controller("a full disk", {own_small_disk});
  const std::string line = controller.line();
  if (line.starts_with(cannot)) GTEST_SKIP() << line;
  EXPECT_THAT(line, AllOf(StartsWith("could not be started: the disk is full: cannot write /"),
                          EndsWith("/stdout: No space left on device")));
  EXPECT_EQ(controller.wait(), 0);
}

}  // namespace
}  // namespace cadre::system_tests
