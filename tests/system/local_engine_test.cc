// The local engine: the conformance suite, and tests that need real processes.
#include "engine/local/local_engine.h"
#include "base/file_descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>

#include "cadre/init.h"
#include "channel/worker_end.h"
#include "engine_conformance.h"
#include "local_subject.h"
#include "scenario.h"
#include "support/temporary_directory.h"
#include "worker/entries.h"
#include "worker/root_engine.h"

namespace cadre::engine::conformance {

INSTANTIATE_TYPED_TEST_SUITE_P(Local, EngineConformance, system_tests::LocalSubject);

}  // namespace cadre::engine::conformance

namespace cadre::system_tests {
namespace {

using engine::Exit;
using engine::WorkerId;
using engine::conformance::exits;
using engine::conformance::hangs;
using engine::conformance::Listener;
using engine::conformance::report;
using engine::conformance::signals;
using engine::conformance::throws;
using ::testing::HasSubstr;

constexpr int two_seconds_ms = 2000;

// ---- worker functions

int sockets_among_descriptors(int type) {
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    int actual = 0;
    socklen_t size = sizeof actual;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &actual, &size) == 0 && actual == type) ++found;
  }
  return found;
}

bool has_descriptor_named(const std::string& part) {
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(fd.path(), gone).string().find(part) != std::string::npos) return true;
  }
  return false;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

[[maybe_unused]] const bool surroundings = entry("surroundings", [](channel::WorkerEnd& controller, const Value&) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction user;
  ::sigaction(SIGUSR2, nullptr, &user);
  char byte = 0;
  report_metrics(controller, {{"threads", environment("OMP_NUM_THREADS")},
                              {"mark", environment("CADRE_FORK_SERVER")},
                              {"own_group", ::getpgrp() == ::getpid()},
                              {"signals_blocked", ::sigismember(&mask, SIGCHLD) + ::sigismember(&mask, SIGTERM)},
                              {"default_handler", user.sa_handler == SIG_DFL},
                              {"standard_input", static_cast<int>(::read(STDIN_FILENO, &byte, 1))},
                              {"oom_score", std::atoi(first_line("/proc/self/oom_score_adj").c_str())},
                              {"connections", sockets_among_descriptors(SOCK_STREAM)},
                              {"control_sockets", sockets_among_descriptors(SOCK_SEQPACKET)},
                              {"signalfd", has_descriptor_named("[signalfd]")},
                              {"table", has_descriptor_named("cadre-workers")},
                              {"server", static_cast<std::int64_t>(::getppid())}});
});

[[maybe_unused]] const bool writes = entry("writes", [](channel::WorkerEnd&, const Value& payload) {
  const auto text = payload.get<std::string>();
  std::printf("printf %s\n", text.c_str());
  std::cout << "cout " << text << "\n";
  std::cerr << "cerr " << text << "\n";
  std::printf("no end of line");
});

[[maybe_unused]] const bool prints_and_dies = entry("prints and dies", [](channel::WorkerEnd&, const Value&) {
  std::printf("last words\n");
  ::raise(SIGKILL);
});

[[maybe_unused]] const bool echoes = entry("echoes", [](channel::WorkerEnd& controller, const Value& payload) {
  report_metrics(controller, {{"echo", payload}});
});

[[maybe_unused]] const bool stubborn = entry("stubborn", [](channel::WorkerEnd& controller, const Value&) {
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  report_metrics(controller, {});
  for (;;) ::pause();
});

// Returns the signals that a program executed by the worker finds blocked, ignored or handled, as /proc shows them.
std::string signals_of_executed_program() {
  int ends[2];
  if (::pipe(ends) != 0) ::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execlp("grep", "grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text(1000, 0);
  ssize_t size = 0;
  for (ssize_t got = 1; got > 0; size += std::max<ssize_t>(got, 0))
    got = ::read(ends[0], text.data() + size, text.size() - static_cast<std::size_t>(size));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

int end_of_child(int signal) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

volatile sig_atomic_t own_handler_calls = 0;

// Reports its process and signal settings, then the number of calls of its handler before the controller answered.
[[maybe_unused]] const bool gets_signals = entry("gets signals", [](channel::WorkerEnd& controller, const Value& own) {
  if (own.is_bool()) ::signal(SIGTERM, [](int) { own_handler_calls = own_handler_calls + 1; });
  report_metrics(controller, {{"worker", ::getpid()},
                              {"server", ::getppid()},
                              {"programs", signals_of_executed_program()},
                              {"child", own.is_bool() ? 0 : end_of_child(SIGTERM)}});
  report_metrics(controller, {{"calls", static_cast<std::int64_t>(own_handler_calls)}});
});

[[maybe_unused]] const bool raises = entry(
    "raises", [](channel::WorkerEnd&, const Value& signal) { ::raise(static_cast<int>(signal.get<std::int64_t>())); });

[[noreturn]] void sleep_for_ever() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_IGN);
  for (;;) ::pause();
}

pid_t fork_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    sleep_for_ever();
  }
  return child;
}

// Forks a daemon (a session of its own, its parent exited); returns its process id, which comes through a pipe.
pid_t fork_daemon() {
  int ends[2];
  if (::pipe(ends) != 0) ::abort();
  const pid_t child = fork_child([&] {
    ::setsid();
    const pid_t daemon = fork_child([] {});
    if (::write(ends[1], &daemon, sizeof daemon) != sizeof daemon) ::abort();
    ::_exit(0);
  });
  pid_t daemon = -1;
  if (::read(ends[0], &daemon, sizeof daemon) != sizeof daemon) ::abort();
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return daemon;
}

// Reports itself, its parent, a child and a daemon, then does what the payload says, as the conformance scripts do.
[[maybe_unused]] const bool family = entry("family", [](channel::WorkerEnd& controller, const Value& payload) {
  const pid_t child = fork_child([] {});
  const pid_t daemon = fork_daemon();
  report_metrics(controller, {{"worker", ::getpid()}, {"server", ::getppid()}, {"child", child}, {"daemon", daemon}});
  if (payload.is_bool()) {
    for (;;) ::pause();
  }
});

[[maybe_unused]] const bool babbles = entry("babbles", [](channel::WorkerEnd&, const Value&) {
  if (::write(connection_descriptor(), "hello, controller", 17) != 17) ::abort();
  for (;;) ::pause();
});

[[maybe_unused]] const bool hangs_up = entry("hangs up", [](channel::WorkerEnd&, const Value&) {
  ::close(connection_descriptor());
  for (;;) ::pause();
});

[[maybe_unused]] const bool fails_oddly = entry("fails oddly", [](channel::WorkerEnd&, const Value&) { throw 42; });

class LocalEngine : public ::testing::Test {
 protected:
  WorkerId start(const char* name, Value payload = {}, double cpus = 1) {
    return heard.start({.assignment = {name, std::move(payload)}, .directory = subject.make_directory(), .cpus = cpus});
  }
  const Metrics& metrics(WorkerId worker) { return heard[worker].reports.at(0).metrics; }
  pid_t server() {
    const WorkerId worker = start("surroundings");
    EXPECT_TRUE(heard.until_all_exited());
    return metrics(worker).get<pid_t>("server");
  }

  LocalSubject subject;
  std::unique_ptr<engine::Engine> engine = subject.make_engine();
  Listener heard{*engine};
};

bool exists(pid_t process) { return ::kill(process, 0) == 0; }

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t open_descriptors(const std::string& process) {
  return std::distance(std::filesystem::directory_iterator("/proc/" + process + "/fd"), {});
}

int children_of(pid_t parent) {
  int found = 0;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string stat = first_line(process.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos && std::atoi(stat.c_str() + name_end + 4) == parent) ++found;
  }
  return found;
}

// ---- a worker's surroundings

TEST_F(LocalEngine, AWorkerFindsItsThreadCountItsGroupAndNothingOfTheServers) {
  const WorkerId worker = start("surroundings", {}, 2.5);
  ASSERT_TRUE(heard.until_all_exited());
  const Metrics& found = metrics(worker);
  EXPECT_EQ(found.get<std::string>("threads"), "2");
  EXPECT_EQ(found.get<std::string>("mark"), "");
  EXPECT_TRUE(found.get<bool>("own_group"));
  EXPECT_EQ(found.get<int>("signals_blocked"), 0);
  EXPECT_TRUE(found.get<bool>("default_handler"));
  EXPECT_EQ(found.get<int>("standard_input"), 0);
  EXPECT_GE(found.get<int>("oom_score"),
            std::min(1000, std::atoi(first_line("/proc/self/oom_score_adj").c_str()) + 500));
  EXPECT_EQ(found.get<int>("connections"), 1);
  EXPECT_EQ(found.get<int>("control_sockets"), 0);
  EXPECT_FALSE(found.get<bool>("signalfd"));
  EXPECT_FALSE(found.get<bool>("table"));
}

TEST_F(LocalEngine, APartOfACpuIsOneThread) {
  const WorkerId worker = start("surroundings", {}, 0.25);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(metrics(worker).get<std::string>("threads"), "1");
}

TEST_F(LocalEngine, OutputIsAppendedToFilesInTheDirectory) {
  const auto directory = subject.make_directory();
  heard.start({.assignment = {"writes", "one"}, .directory = directory});
  ASSERT_TRUE(heard.until_all_exited());
  heard.start({.assignment = {"writes", "two"}, .directory = directory});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(content(directory / "stdout"), "printf one\ncout one\nno end of lineprintf two\ncout two\nno end of line");
  EXPECT_EQ(content(directory / "stderr"), "cerr one\ncerr two\n");
}

TEST_F(LocalEngine, LinesBeforeACrashAreKept) {
  const auto directory = subject.make_directory();
  heard.start({.assignment = {"prints and dies", {}}, .directory = directory});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(content(directory / "stdout"), "last words\n");
}

TEST_F(LocalEngine, ALargeAssignmentAndALargeReportArriveWhole) {
  std::string text(std::size_t{2} << 20, 'x');
  text[12345] = 'y';
  const WorkerId worker = start("echoes", text);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(metrics(worker).get<std::string>("echo"), text);
  EXPECT_EQ(heard[worker].finished, 1U);
}

// ---- how workers fail

TEST_F(LocalEngine, AnUnknownEntryIsAFailureThatNamesIt) {
  const WorkerId worker = start("no such entry");
  ASSERT_TRUE(heard.until_all_exited());
  ASSERT_EQ(heard[worker].failed.size(), 1U);
  EXPECT_THAT(heard[worker].failed[0], HasSubstr("\"no such entry\""));
}

TEST_F(LocalEngine, WhatIsThrownIsNamedByItsType) {
  const WorkerId standard = start("conformance", list(throws("out of luck")));
  const WorkerId odd = start("fails oddly");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[standard].failed, std::vector<std::string>{"std::runtime_error: out of luck"});
  EXPECT_EQ(heard[odd].failed, std::vector<std::string>{"an exception of type int"});
}

TEST_F(LocalEngine, ADirectoryThatIsGoneIsAnExitThatNamesIt) {
  const auto directory = subject.make_directory() / "gone";
  const WorkerId worker = heard.start({.assignment = {"echoes", 1}, .directory = directory});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::not_started);
  EXPECT_THAT(to_string(heard.exit(worker)), HasSubstr(directory.string() + "/stdout: No such file or directory"));
}

// Others may be able to write into a worker's directory.
TEST_F(LocalEngine, OutputIsNotWrittenIntoLinksAndPipes) {
  const auto directory = subject.make_directory();
  const auto exit_of = [&] {
    const WorkerId worker = heard.start({.assignment = {"echoes", 1}, .directory = directory});
    EXPECT_TRUE(heard.until_all_exited());
    EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::not_started);
    return to_string(heard.exit(worker));
  };
  const auto output = directory / "stdout";
  std::filesystem::create_symlink(directory / "elsewhere", output);
  EXPECT_THAT(exit_of(), HasSubstr("cannot write " + output.string()));
  EXPECT_FALSE(std::filesystem::exists(directory / "elsewhere"));
  std::filesystem::remove(output);
  ASSERT_EQ(::mkfifo(output.c_str(), 0666), 0);
  EXPECT_THAT(exit_of(), HasSubstr("cannot write " + output.string())) << "and nobody waits for a reader";
  const base::FileDescriptor reader(::open(output.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader);
  EXPECT_THAT(exit_of(), HasSubstr("no regular file"));
}

TEST_F(LocalEngine, ADirectoryWhoseNameIsTooLongIsAnExit) {
  const WorkerId worker = heard.start({.assignment = {"echoes", 1}, .directory = "/" + std::string(5000, 'x')});
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::not_started);
}

TEST_F(LocalEngine, AnAssignmentOverTheLimitIsRefusedAndLeavesNothing) {
  const std::string text(std::size_t{65} << 20, 'x');
  EXPECT_THROW(engine->start(1, {.assignment = {"echoes", text}, .directory = subject.make_directory()}),
               InvalidArgument);
  EXPECT_TRUE(engine->wait(std::chrono::milliseconds(20)).empty());
}

TEST_F(LocalEngine, AWorkerThatSendsWhatIsNoMessageIsEndedWithTheReason) {
  const WorkerId worker = start("babbles");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).value, SIGKILL);
  EXPECT_THAT(to_string(heard.exit(worker)), HasSubstr("does not start with the mark of one"));
}

TEST_F(LocalEngine, AWorkerThatClosesItsConnectionIsEnded) {
  const WorkerId worker = start("hangs up");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(to_string(heard.exit(worker)),
            "was ended by signal 9 (SIGKILL): it closed its connection to the controller and went on");
}

TEST_F(LocalEngine, AWorkerThatIgnoresSignalsIsKilled) {
  const WorkerId worker = start("stubborn");
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }));
  engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker), (Exit{Exit::Kind::signal, SIGKILL, ""}));
}

// ---- signals that ask a program to end

TEST_F(LocalEngine, AWorkerThatAloneGetsSuchASignalEndsByIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const WorkerId worker = start("gets signals");
    ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }, std::nullopt));
    ::kill(metrics(worker).get<pid_t>("worker"), signal);
    ASSERT_TRUE(heard.until_all_exited());
    EXPECT_EQ(heard.exit(worker), (Exit{Exit::Kind::signal, signal, ""}));
  }
}

TEST_F(LocalEngine, AWorkerGoesOnWhenItsServerGetsTheSignalToo) {
  for (const bool server_first : {false, true}) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      const WorkerId worker = start("gets signals");
      ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }, std::nullopt));
      const auto process = metrics(worker).get<pid_t>("worker");
      const auto server = metrics(worker).get<pid_t>("server");
      for (const pid_t one : {server_first ? server : process, server_first ? process : server}) ::kill(one, signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(1'200));  // longer than the server waits for its own
      EXPECT_TRUE(exists(process)) << signal;
      engine->answer(worker, {});
      ASSERT_TRUE(heard.until([&] { return heard[worker].reports.size() == 2; }));
      ASSERT_TRUE(heard.until_all_exited());
      EXPECT_EQ(heard.exit(worker), (Exit{Exit::Kind::code, 0, ""}));
    }
  }
}

TEST_F(LocalEngine, AHandlerOfTheFunctionsOwnIsCalled) {
  const WorkerId worker = start("gets signals", true);
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }, std::nullopt));
  ::kill(metrics(worker).get<pid_t>("worker"), SIGTERM);
  engine->answer(worker, {});
  ASSERT_TRUE(heard.until([&] { return heard[worker].reports.size() == 2; }));
  EXPECT_EQ(heard[worker].reports[1].metrics.get<int>("calls"), 1);
  ASSERT_TRUE(heard.until_all_exited());
}

TEST_F(LocalEngine, WhatAWorkerForksAndExecutesEndsBySuchSignals) {
  const WorkerId worker = start("gets signals");
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }, std::nullopt));
  EXPECT_EQ(metrics(worker).get<int>("child"), SIGTERM);
  std::istringstream lines(metrics(worker).get<std::string>("programs"));
  int masks = 0;
  std::uint64_t mask = 0;
  for (std::string name; lines >> name >> std::hex >> mask; ++masks) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) EXPECT_EQ(mask >> (signal - 1) & 1, 0U) << name << signal;
  }
  EXPECT_EQ(masks, 3);
  engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
}

TEST_F(LocalEngine, AWorkerThatSendsItselfSuchASignalEndsByItAtOnce) {
  const WorkerId worker = start("raises", SIGTERM);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::signal);
  EXPECT_EQ(heard.exit(worker).value, SIGTERM);
}

// ---- no process stays

TEST_F(LocalEngine, ChildrenOfAWorkerAreGoneWhenItsExitIsTold) {
  const WorkerId returns = start("family");
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(returns), (Exit{Exit::Kind::code, 0, ""}));
  EXPECT_FALSE(exists(metrics(returns).get<pid_t>("child")));
  const WorkerId killed = start("family", true);
  ASSERT_TRUE(heard.until([&] { return !heard[killed].reports.empty(); }));
  engine->kill(killed);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_FALSE(exists(metrics(killed).get<pid_t>("child")));
  for (const WorkerId worker : {returns, killed}) ::kill(metrics(worker).get<pid_t>("daemon"), SIGKILL);
}

TEST_F(LocalEngine, TwoHundredWorkersLeaveNoDescriptorAndNoZombie) {
  const std::string server = std::to_string(this->server());
  const auto ours = open_descriptors("self");
  const auto theirs = open_descriptors(server);
  const int children = children_of(std::atoi(server.c_str()));
  for (int i = 0; i < 200; ++i) {
    start("conformance", i % 2 == 0 ? list(report({})) : list(exits(3)));
    ASSERT_TRUE(heard.until_all_exited());
  }
  EXPECT_EQ(open_descriptors("self"), ours);
  EXPECT_EQ(open_descriptors(server), theirs);
  EXPECT_LE(children_of(std::atoi(server.c_str())), children);
}

TEST_F(LocalEngine, AnEngineThatIsDestroyedEndsItsWorkersAndLeavesTheServerToTheNext) {
  const pid_t before = server();
  const WorkerId worker = start("family", true);
  ASSERT_TRUE(heard.until([&] { return !heard[worker].reports.empty(); }));
  engine.reset();
  EXPECT_FALSE(exists(metrics(worker).get<pid_t>("worker")));
  EXPECT_FALSE(exists(metrics(worker).get<pid_t>("child")));
  ::kill(metrics(worker).get<pid_t>("daemon"), SIGKILL);
  engine = subject.make_engine();
  Listener next(*engine);
  const WorkerId same_id = next.start({.assignment = {"surroundings", {}}, .directory = subject.make_directory()});
  ASSERT_TRUE(next.until_all_exited());
  EXPECT_EQ(next[same_id].reports.at(0).metrics.get<pid_t>("server"), before);
}

TEST_F(LocalEngine, SignalsOfATerminalOrABatchSystemDoNotEndTheServer) {
  const pid_t before = server();
  EXPECT_NE(::getpgid(before), ::getpgrp());
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1}) ::kill(before, signal);
  EXPECT_EQ(server(), before);
}

TEST_F(LocalEngine, ASecondEngineAtTheSameTimeIsRefusedInEveryThread) {
  const auto refused = [] {
    try {
      worker::make_root_engine();
    } catch (const EngineError& error) {
      EXPECT_THAT(error.what(), HasSubstr("another run in this process uses the fork server"));
      return;
    }
    ADD_FAILURE() << "it was not refused";
  };
  refused();
  std::thread(refused).join();
}

TEST_F(LocalEngine, AFurtherEngineWorksBesideItAndEndsItsOwnWorkersOnly) {
  const pid_t server = this->server();
  const auto descriptors = open_descriptors(std::to_string(server));
  const WorkerId first = start("stubborn", {});
  ASSERT_TRUE(heard.until([&] { return !heard[first].reports.empty(); }));
  // An engine needs a thread of its own.
  const auto use_further = [&](int number) {
    auto further = worker::make_further_engine();
    Listener listener(*further);
    const WorkerId echo = listener.start({.assignment = {"echoes", number}, .directory = subject.make_directory()});
    const WorkerId parent = listener.start({.assignment = {"family", true}, .directory = subject.make_directory()});
    ASSERT_TRUE(listener.until([&] { return !listener[echo].exits.empty() && !listener[parent].reports.empty(); }));
    EXPECT_EQ(listener[echo].reports.at(0).metrics.get<std::int64_t>("echo"), number);
    const Metrics& members = listener[parent].reports.at(0).metrics;
    further.reset();
    EXPECT_FALSE(exists(members.get<pid_t>("worker")));
    EXPECT_FALSE(exists(members.get<pid_t>("child")));
    ::kill(members.get<pid_t>("daemon"), SIGKILL);
  };
  for (int number = 0; number < 3; ++number) std::thread(use_further, number).join();
  EXPECT_TRUE(heard[first].exits.empty());
  engine->kill(first);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(this->server(), server);
  EXPECT_EQ(open_descriptors(std::to_string(server)), descriptors) << "connections are closed";
}

TEST_F(LocalEngine, ItsResourcesAreThoseOfInit) {
  EXPECT_EQ(
      engine->resources(),
      (Resources{
          .cpus = 4, .gpus = 2, .custom = {{"license", 2}}, .accelerator_type = "H100", .labels = {{"zone", "eu"}}}));
}

TEST(Init, CalledTwiceIsRefused) { EXPECT_THROW(cadre::init(0, nullptr), InvalidArgument); }

// ---- a separate controller process

Listener& start_families(Listener& heard, LocalSubject& subject, int count) {
  for (int i = 0; i < count; ++i) {
    const WorkerId worker =
        heard.start({.assignment = {"family", true}, .directory = subject.make_directory(), .cpus = 1});
    if (!heard.until([&] { return !heard[worker].reports.empty(); })) ::_exit(8);
  }
  return heard;
}

void say_members(const Metrics& metrics, std::initializer_list<const char*> members) {
  for (const char* member : members) say(std::to_string(metrics.get<pid_t>(member)));
}

[[maybe_unused]] const bool waits_for_kill = register_scenario("waits for its kill", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  say(std::to_string(fork_child([] {})));  // holds copies of the controller's descriptors
  start_families(heard, subject, 2);
  for (const WorkerId worker : heard.started) {
    say_members(heard[worker].reports.at(0).metrics, {"server", "worker", "child", "daemon"});
  }
  heard.listen(std::nullopt);
  return 0;
});

// Kills the processes that a test has left, whether it passed or not.
struct EndAtLast {
  ~EndAtLast() {
    for (const pid_t process : processes) ::kill(process, SIGKILL);
  }
  std::vector<pid_t> processes;
};

TEST(Controller, KilledTakesServerWorkersChildrenAndDaemonsWithItWithinTwoSeconds) {
  const test_support::TemporaryDirectory place;  // the scenario is killed, and removes nothing
  ScenarioProcess controller("waits for its kill", {}, {"TMPDIR=" + place.path().string()});
  EndAtLast copies{{std::stoi(controller.line())}};
  std::vector<Watched> members;
  for (int i = 0; i < 8; ++i) {
    const pid_t process = std::stoi(controller.line());
    EXPECT_TRUE(exists(process));
    members.emplace_back(process);
  }
  ::kill(controller.process(), SIGKILL);
  for (const Watched& process : members) EXPECT_TRUE(process.ends_within(two_seconds_ms));
}

TEST(Controller, WorkersEndWithTheServerAlsoWhenNobodyIsLeftToEndThem) {
  const test_support::TemporaryDirectory place;  // the scenario is killed, and removes nothing
  ScenarioProcess controller("waits for its kill", {}, {"TMPDIR=" + place.path().string()});
  EndAtLast rest;
  for (int i = 0; i < 9; ++i) rest.processes.push_back(std::stoi(controller.line()));
  const Watched first(rest.processes.at(2));
  const Watched second(rest.processes.at(6));
  ::kill(controller.process(), SIGSTOP);
  ::kill(rest.processes.at(1), SIGKILL);
  EXPECT_TRUE(first.ends_within(two_seconds_ms));
  EXPECT_TRUE(second.ends_within(two_seconds_ms));
}

[[maybe_unused]] const bool daemon_stays = register_scenario("a daemon stays", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  const WorkerId worker = heard.start({.assignment = {"family", {}}, .directory = subject.make_directory()});
  if (!heard.until_all_exited()) return 2;
  say_members(heard[worker].reports.at(0).metrics, {"daemon"});
  wait_for_test();
  return 0;
});

TEST(Controller, ADaemonOfAWorkerOutlivesItAndEndsWithTheProgram) {
  ScenarioProcess controller("a daemon stays");
  const pid_t process = std::stoi(controller.line());
  const Watched daemon(process);
  EXPECT_TRUE(exists(process));
  controller.go_on();
  EXPECT_EQ(controller.wait(), 0);
  EXPECT_TRUE(daemon.ends_within(0));
}

[[maybe_unused]] const bool server_dies = register_scenario("its server dies", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  start_families(heard, subject, 2);
  ::kill(heard[1].reports.at(0).metrics.get<pid_t>("server"), SIGKILL);
  if (!heard.until_all_exited()) return 2;
  for (const WorkerId worker : heard.started) {
    say(to_string(heard.exit(worker)));
    if (!Watched(heard[worker].reports.at(0).metrics.get<pid_t>("worker")).ends_within(0)) return 3;
    if (!Watched(heard[worker].reports.at(0).metrics.get<pid_t>("child")).ends_within(two_seconds_ms)) return 4;
    ::kill(heard[worker].reports.at(0).metrics.get<pid_t>("daemon"), SIGKILL);
  }
  try {
    engine->start(3, {.assignment = {"echoes", 1}, .directory = subject.make_directory()});
  } catch (const EngineError& error) {
    say(error.what());
  }
  return 0;
});

TEST(Controller, LosesItsWorkersWithTheForkServerAndSaysSo) {
  ScenarioProcess controller("its server dies");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(controller.line(),
              "was lost with the engine that ran it: the fork server was ended by signal 9 (SIGKILL)");
  }
  EXPECT_EQ(controller.line(),
            "no worker can be started: the fork server was ended by signal 9 (SIGKILL). Its workers ended with it; "
            "start the program again");
  EXPECT_EQ(controller.wait(), 0);
}

[[maybe_unused]] const bool one_report = register_scenario("one report", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  try {
    const WorkerId worker = heard.start({.assignment = {"surroundings", {}}, .directory = subject.make_directory()});
    if (!heard.until_all_exited()) return 2;
    if (heard[worker].reports.empty()) say(to_string(heard.exit(worker)));
    for (const auto& report : heard[worker].reports) say("mark: " + report.metrics.get<std::string>("mark"));
    heard.start({.assignment = {"surroundings", {}}, .directory = subject.make_directory()});
    if (!heard.until_all_exited()) return 2;
  } catch (const EngineError& error) {
    say(error.what());
  }
  return 0;
});

TEST(Init, InAProgramWithThreadsExecutesTheServerAnew) {
  ScenarioProcess controller("one report", {thread_before_init});
  EXPECT_EQ(controller.line(), "mark: ");
  EXPECT_EQ(controller.wait(), 0);
}

TEST(Init, SaysWhenTheExecutedServerHasThreadsToo) {
  ScenarioProcess controller("one report", {thread_always});
  EXPECT_THAT(controller.line(), HasSubstr("the fork server has a thread beside its main one"));
  EXPECT_EQ(controller.wait(), 0);
}

TEST(Init, SaysWhatPreloadThrew) {
  ScenarioProcess controller("one report", {preload_throws});
  EXPECT_THAT(controller.line(), HasSubstr("InitOptions::preload threw: no such data set"));
  EXPECT_EQ(controller.wait(), 0);
}

TEST(Init, IgnoresAStaleMarkOfAForkServer) {
  ScenarioProcess controller("one report", {}, {"CADRE_FORK_SERVER=7,8,9"});
  EXPECT_EQ(controller.line(), "mark: ");
  EXPECT_EQ(controller.wait(), 0);
}

// Its family leaves a daemon, which the server has to end.
[[maybe_unused]] const bool shuts_down = register_scenario("shuts down while signals come", [] {
  {
    LocalSubject subject;
    const auto engine = subject.make_engine();
    Listener heard(*engine);
    start_families(heard, subject, 1);
  }
  struct sigaction action{};
  action.sa_handler = [](int) {};
  if (::sigaction(SIGALRM, &action, nullptr) != 0) return 2;
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 200}, .it_value = {.tv_sec = 0, .tv_usec = 200}};
  if (::setitimer(ITIMER_REAL, &often, nullptr) != 0) return 3;
  cadre::shutdown();
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  return children_of(::getpid()) == 0 ? 0 : 4;
});

TEST(Init, AShutdownThatSignalsInterruptWaitsForTheServersEnd) {
  ScenarioProcess controller("shuts down while signals come");
  EXPECT_EQ(controller.wait(), 0);
}

[[maybe_unused]] const bool returns_seven = register_scenario("returns seven", [] { return 7; });

TEST(Init, AnExecutedServerWhoseControllerIsGoneDoesNotRunTheProgram) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);  // inherited
  const base::FileDescriptor ours(sockets[0]);
  const base::FileDescriptor theirs(sockets[1]);
  const std::string fd = std::to_string(theirs.get());
  ScenarioProcess orphan("returns seven", {}, {"CADRE_FORK_SERVER=" + fd + "," + fd + ",1"});
  EXPECT_EQ(orphan.wait(), 0);
  ScenarioProcess controller("returns seven");
  EXPECT_EQ(controller.wait(), 7);
}

[[maybe_unused]] const bool limits = register_scenario("the server meets its limits", [] {
  LocalSubject subject;
  const auto engine = subject.make_engine();
  Listener heard(*engine);
  const auto start = [&] {
    const WorkerId worker = heard.start({.assignment = {"surroundings", {}}, .directory = subject.make_directory()});
    if (!heard.until_all_exited()) ::_exit(2);
    return worker;
  };
  const pid_t server = heard[start()].reports.at(0).metrics.get<pid_t>("server");
  for (const auto limit : {RLIMIT_NOFILE, RLIMIT_NPROC}) {
    rlimit usual{};
    if (::prlimit(server, limit, nullptr, &usual) != 0) return 3;
    const rlimit tight{2, usual.rlim_max};
    if (::prlimit(server, limit, &tight, nullptr) != 0) return 4;
    say(to_string(heard.exit(start())));
    if (::prlimit(server, limit, &usual, nullptr) != 0) return 5;
    say(to_string(heard.exit(start())));
  }
  return 0;
});

TEST(Controller, IsToldWhenTheServerCannotForkAndGoesOnWhenItCanAgain) {
  ScenarioProcess controller("the server meets its limits", {without_root});
  EXPECT_THAT(controller.line(), HasSubstr("could not be started: the fork server has too many open files"));
  EXPECT_EQ(controller.line(), "exited with code 0");
  EXPECT_THAT(controller.line(), HasSubstr("could not be started: cannot fork: Resource temporarily unavailable"));
  EXPECT_EQ(controller.line(), "exited with code 0");
  EXPECT_EQ(controller.wait(), 0);
}

}  // namespace
}  // namespace cadre::system_tests
