#include "engine/cluster/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

CommandStart shell(std::string script) {
  return {.arguments = {"/bin/sh", "-c", std::move(script)}, .environment = {"PATH=/usr/bin:/bin"}};
}

// Waits with poll, as a loop does.
template <class Condition>
void wait_until(const Condition& condition, const Command& command) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::vector<::pollfd> watched;
    for (const int fd : command.fds()) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    ::poll(watched.data(), watched.size(), 30'000);
  }
}

void wait_for_end(Command& command) {
  wait_until([&] { return command.update(); }, command);
}

bool is_running(::pid_t process) { return ::kill(process, 0) == 0; }

TEST(Command, GivesOutputErrorsAndTheEnd) {
  Command command(shell("echo out; echo err >&2; exit 7"));
  wait_for_end(command);
  EXPECT_EQ(command.output(), "out\n");
  EXPECT_EQ(command.errors(), "err\n");
  EXPECT_EQ(command.end(), "exit code 7");
  EXPECT_EQ(command.end_of("the shell", command.errors().substr(0, 3)), "the shell ended with exit code 7: err");
  EXPECT_EQ(command.end_of("the shell", ""), "the shell ended with exit code 7");
  EXPECT_FALSE(command.has_succeeded());
  EXPECT_TRUE(command.fds().empty());
}

TEST(Command, CarriesASessionInItsInputAndOutput) {
  CommandStart start = shell("echo err >&2; exec cat");
  start.carries_session = true;
  Command command(start);
  const base::FileDescriptor session = command.take_session();
  EXPECT_FALSE(command.take_session());
  ASSERT_EQ(::write(session.get(), "there and back", 14), 14);
  std::string heard(14, ' ');
  for (std::size_t count = 0; count < heard.size();) {
    const ssize_t more = ::read(session.get(), &heard[count], heard.size() - count);
    ASSERT_GT(more, 0);
    count += static_cast<std::size_t>(more);
  }
  EXPECT_EQ(heard, "there and back");
  ::shutdown(session.get(), SHUT_WR);
  wait_for_end(command);
  EXPECT_TRUE(command.has_succeeded());
  EXPECT_EQ(command.errors(), "err\n");
}

TEST(Command, EndsBySignal) {
  Command command(shell("kill -KILL $$"));
  wait_for_end(command);
  EXPECT_EQ(command.end(), "signal 9");
}

TEST(Command, IsKilledOnceWhenItsTimeHasCome) {
  Command command(shell("exec sleep 600"));
  const auto now = std::chrono::steady_clock::now();
  command.kill_at(now + std::chrono::hours(1));
  EXPECT_FALSE(command.update());
  EXPECT_EQ(command.kill_time(), now + std::chrono::hours(1));
  command.kill_at(now);
  EXPECT_FALSE(command.update());
  EXPECT_EQ(command.kill_time(), Command::TimePoint::max()) << "a loop that waits for it would not wait";
  wait_for_end(command);
  EXPECT_EQ(command.end(), "signal 9");
}

// A process whose end nobody but its tracer sees is, for its parent, one that is stuck in the kernel.
TEST(Command, ThatDoesNotEndWhenItIsKilledIsLeft) {
  auto command = std::make_unique<Command>(shell("exec sleep 600"));
  const ::pid_t stuck = command->process();
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe(answer.data()), 0);
  const ::pid_t tracer = ::fork();
  if (tracer == 0) {
    const char is_traced = ::ptrace(PTRACE_SEIZE, stuck, nullptr, nullptr) == 0 ? 'y' : 'n';
    static_cast<void>(::write(answer[1], &is_traced, 1) == 1 && ::sleep(60) == 0);
    ::_exit(0);
  }
  char is_traced = 'n';
  EXPECT_EQ(::read(answer[0], &is_traced, 1), 1);
  const auto began = std::chrono::steady_clock::now();
  command.reset();
  const auto took = std::chrono::steady_clock::now() - began;
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  ::waitpid(stuck, nullptr, 0);
  for (const int end : answer) ::close(end);
  if (is_traced != 'y') GTEST_SKIP() << "no process can be traced here";
  EXPECT_GE(took, Command::kMostEndTime);
  EXPECT_LT(took, std::chrono::seconds(50));  // before the tracer ends
}

TEST(Command, ReadsItsInputToTheEnd) {
  CommandStart start = shell("wc -c");
  start.input = std::string(1'000'000, 'x');  // more than a pipe holds
  Command command(start);
  wait_for_end(command);
  EXPECT_EQ(std::stoi(std::string(command.output())), 1'000'000);
}

TEST(Command, HasOnlyTheGivenEnvironmentAndRunsInTheDirectory) {
  const TemporaryDirectory directory;
  CommandStart start{.arguments = {"env"}, .environment = {"SECRET=a b"}, .directory = directory.path()};
  Command command(start);
  wait_for_end(command);
  EXPECT_EQ(command.output(), "SECRET=a b\n");
  start.arguments = {"/bin/sh", "-c", "pwd -P"};
  Command where(start);
  wait_for_end(where);
  EXPECT_EQ(where.output(), std::filesystem::canonical(directory.path()).string() + "\n");
}

TEST(Command, ArgumentsAreNotReadByAShell) {
  Command command({.arguments = {"printf", "%s", "$HOME; `id` '\"*"}, .environment = {"PATH=/usr/bin:/bin"}});
  wait_for_end(command);
  EXPECT_EQ(command.output(), "$HOME; `id` '\"*");
}

TEST(Command, CannotBeStarted) {
  EXPECT_EQ(message_of<EngineError>([] { Command command({.arguments = {"no-such-program"}}); }),
            "cannot start no-such-program: No such file or directory");
  CommandStart start = shell("true");
  start.directory = "/nonexistent";
  EXPECT_THAT(message_of<EngineError>([&] { Command command(start); }), HasSubstr("No such file or directory"));
  EXPECT_THROW(Command({}), EngineError);
}

TEST(Command, HasASessionOfItsOwnAndNoIgnoredSignals) {
  ::signal(SIGPIPE, SIG_IGN);
  Command command(shell("ps -o sid= -p $$; echo $$; grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"));
  wait_for_end(command);
  ::signal(SIGPIPE, SIG_DFL);
  std::istringstream output{std::string(command.output())};
  int session = 0;
  int process = 0;
  std::string name;
  std::string ignored;
  std::string blocked;
  output >> session >> process >> name >> ignored >> name >> blocked;
  EXPECT_EQ(session, process) << command.output() << command.errors();
  // The C library has two signals to itself, which whoever started the tests may have left ignored.
  constexpr std::uint64_t of_the_library = 0b11ULL << 31;
  EXPECT_EQ(std::stoull(ignored, nullptr, 16) & ~of_the_library, 0) << ignored;
  EXPECT_EQ(blocked, "0000000000000000");
}

TEST(Command, InheritsNoDescriptors) {
  const base::FileDescriptor open(::dup(STDIN_FILENO));  // without FD_CLOEXEC
  Command command(shell("exec ls /proc/self/fd"));
  wait_for_end(command);
  EXPECT_EQ(command.output(), "0\n1\n2\n3\n") << "the last one is the folder that ls reads";
}

// Closes the standard streams of this process, and runs a command that uses all of its own. Returns true if they were
// the right ones.
bool has_its_streams_without_ours() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  CommandStart start = shell("cat; echo err >&2");
  start.input = "in";
  Command command(start);
  wait_for_end(command);
  return command.output() == "in" && command.errors() == "err\n";
}

TEST(Command, HasItsStreamsAlthoughThisProcessHasClosedItsOwn) {
  EXPECT_EXIT(::_exit(has_its_streams_without_ours() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(Command, IsReadWhileItRuns) {
  Command command(shell("echo begun >&2; exec sleep 600"));
  wait_until([&] { return command.update() || command.errors() == "begun\n"; }, command);
  EXPECT_FALSE(command.has_ended());
  command.kill(SIGTERM);
  wait_for_end(command);
  EXPECT_EQ(command.end(), "signal 15");
}

TEST(Command, KeepsTheBeginningOfTheOutputAndTheEndOfTheErrors) {
  CommandStart start = shell("echo first; yes | head -c 5000000; (echo early; yes | head -c 100000; echo last) >&2");
  start.most_output = 1000;
  Command command(start);
  wait_for_end(command);
  EXPECT_EQ(command.output().size(), 1000);
  EXPECT_THAT(std::string(command.output().substr(0, 8)), StartsWith("first\n"));
  EXPECT_TRUE(command.is_output_cut());
  EXPECT_EQ(command.errors().size(), Command::kMostErrors);
  EXPECT_THAT(std::string(command.errors()), EndsWith("last\n"));
}

TEST(Command, EndsAlthoughAProcessThatItLeftHoldsItsOutput) {
  Command command(shell("sleep 600 & echo $!"));
  wait_for_end(command);
  EXPECT_TRUE(command.has_succeeded());
  ::kill(std::stoi(std::string(command.output())), SIGKILL);
}

TEST(Command, IsKilledWithItsGroupWhenItIsDestroyed) {
  ::pid_t child = 0;
  {
    Command command(shell("sleep 600 & echo $!; wait"));
    wait_until([&] { return command.update() || command.output().ends_with('\n'); }, command);
    child = std::stoi(std::string(command.output()));
    EXPECT_TRUE(is_running(child));
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto is_gone = [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string id, name, state;
    return !(stat >> id >> name >> state) || state == "Z";  // an orphan that nobody reaps yet
  };
  while (!is_gone()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(Command, GetsTheDeathSignalWhenTheThreadThatStartedItEnds) {
  CommandStart start = shell("trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  start.death_signal = SIGTERM;
  std::unique_ptr<Command> command;
  std::thread([&] {
    command = std::make_unique<Command>(start);
    wait_until([&] { return command->update() || command->output() == "ready\n"; }, *command);
  }).join();
  wait_for_end(*command);
  EXPECT_EQ(command->output(), "ready\ntold\n");
  EXPECT_EQ(command->end(), "exit code 3");
}

TEST(Command, ThatIsToGoOnOutlivesTheThreadThatStartedIt) {
  CommandStart start = shell("exec sleep 600");
  start.death_signal = 0;
  std::unique_ptr<Command> command;
  std::thread([&] { command = std::make_unique<Command>(start); }).join();
  EXPECT_FALSE(command->update());
  EXPECT_TRUE(is_running(command->process()));
}

// ---- Commands of another process

// A command with a mark in its environment, which runs until it is killed.
class CommandThatIsTakenOver : public testing::Test {
 protected:
  // The environment is there a moment after the start: the kernel lets the parent go on earlier.
  CommandThatIsTakenOver() {
    const std::string environment = "/proc/" + std::to_string(original.process()) + "/environ";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (test_support::content_of(environment).find("MARK=") == std::string::npos &&
           std::chrono::steady_clock::now() < deadline) {
    }
  }

  static CommandStart marked() {
    return {.arguments = {"sleep", "600"}, .environment = {"PATH=/usr/bin:/bin", "MARK=0123abcd"}};
  }

  Command original{marked()};
};

TEST_F(CommandThatIsTakenOver, IsWatchedAndKilled) {
  const std::unique_ptr<Command> command = Command::take_over(original.process(), "0123abcd");
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->process(), original.process());
  EXPECT_FALSE(command->update());
  command->kill(SIGTERM);
  wait_for_end(*command);
  EXPECT_TRUE(command->has_ended());
  EXPECT_EQ(command->end(), "an end that nobody saw");
  EXPECT_TRUE(command->fds().empty());
  wait_for_end(original);
  EXPECT_EQ(original.end(), "signal 15");
}

TEST_F(CommandThatIsTakenOver, IsKilledWhenItIsDestroyed) {
  ASSERT_NE(Command::take_over(original.process(), "0123abcd"), nullptr);
  wait_for_end(original);
  EXPECT_EQ(original.end(), "signal 9");
}

TEST_F(CommandThatIsTakenOver, IsNoOtherProcess) {
  EXPECT_EQ(Command::take_over(original.process(), "4567"), nullptr);
  EXPECT_EQ(Command::take_over(original.process(), ""), nullptr);
  EXPECT_FALSE(original.update());  // nor is it killed
  original.kill(SIGKILL);
  wait_for_end(original);
  EXPECT_EQ(Command::take_over(original.process(), "0123abcd"), nullptr);
}

}  // namespace
}  // namespace cadre::engine::cluster
