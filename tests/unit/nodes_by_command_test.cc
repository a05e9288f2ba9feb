// Nodes by commands of this machine, which stand for a remote shell and for a batch system. An agent is `sleep`.
#include "engine/cluster/nodes_by_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

using std::chrono::steady_clock;
using test_support::TemporaryDirectory;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

constexpr auto kDeadline = std::chrono::seconds(30);

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class NodesByCommandTest : public ::testing::Test {
 protected:
  NodesByCommandTest() {
    start.command = {"/bin/sh", "-c",
                     "echo $$ >agent_$CADRE_AGENT_ORDINAL.new; mv agent_$CADRE_AGENT_ORDINAL.new "
                     "agent_$CADRE_AGENT_ORDINAL; exec sleep 600"};
    start.variables = {{"SECRET", "is here"}};
    start.directory = directory.path();
    start.mark = "the mark of a test";
  }
  ~NodesByCommandTest() override {
    for (const auto& entry : fs::directory_iterator(directory.path())) {
      if (entry.path().filename().string().starts_with("agent_")) ::kill(agent(entry.path()), SIGKILL);
    }
  }

  // Returns an agent's process; one that does not exist if it is not known.
  static ::pid_t agent(const fs::path& file) {
    const ::pid_t process = std::atoi(text_of(file).c_str());
    return process > 0 ? process : std::numeric_limits<::pid_t>::max();
  }

  void begin(NodeCommands commands, std::chrono::milliseconds patience = NodesByCommand::unanswered_end) {
    nodes = std::make_unique<NodesByCommand>(std::move(commands), "jobs", own_variables(), patience);
  }
  void request(NodeRequest request) {
    request.group = "g";
    nodes->request(request, start);
  }
  // Turns until the condition holds.
  template <class Condition>
  bool until(const Condition& condition) {
    for (const auto deadline = steady_clock::now() + kDeadline; steady_clock::now() < deadline;) {
      std::ranges::move(nodes->take_events(), std::back_inserter(events));
      if (condition()) return true;
      std::vector<::pollfd> watched;
      for (const int fd : nodes->fds()) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      const auto next = nodes->next_look().value_or(deadline);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - steady_clock::now()).count();
      ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 20)));
    }
    return false;
  }
  bool until_agent(int ordinal) {
    return until([&] { return fs::exists(agent_file(ordinal)); });
  }
  fs::path agent_file(int ordinal) const { return directory.path() / ("agent_" + std::to_string(ordinal)); }
  std::vector<AgentEnded> ended() const { return all<AgentEnded>(); }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const ProviderEvent& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
  bool until_ended(std::size_t count) {
    return until([&] { return ended().size() >= count; });
  }

  // A batch system: `submit` makes the file of a job with its script, whose name is the id, `list` lists the files.
  NodeCommands queue() const {
    const std::string jobs = directory.path() / "job_";
    return {.submit = {"/bin/sh", "-c", "job=" + jobs + "{name}; cat >\"$job\"; echo \"Job <$job> is queued\""},
            .cancel = {"/bin/sh", "-c", "echo {id} >>" + (directory.path() / "cancelled").string() + "; rm {id}"},
            .list = {"/bin/sh", "-c",
                     "cd " + directory.path().string() +
                         "; echo >>lists; for job in $PWD/job_*; do echo \"$job waits\"; done; cat states 2>/dev/null; "
                         "cat errors >&2 2>/dev/null; exit $(cat code 2>/dev/null)"},
            .id = "<(.*)>",
            .ended = "has ended"};
  }
  fs::path job(int request, int ordinal) const {
    return directory.path() / ("job_" + node_name("jobs", static_cast<std::uint64_t>(request), ordinal));
  }

  // Lets lists fail from now on.
  void fail_lists(const std::string& errors) const {
    std::ofstream(directory.path() / "errors") << errors << "\n";
    std::ofstream(directory.path() / "code") << "1";
  }
  // Lets lists have no jobs from now on, which run on.
  void hide_jobs() const {
    for (const auto& entry : fs::directory_iterator(directory.path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("job_")) fs::rename(entry.path(), directory.path() / ("hidden_" + name));
    }
  }
  // Turns until so many lists have ended from now on.
  bool until_lists(std::uintmax_t count) {
    const fs::path lists = directory.path() / "lists";
    std::error_code none;
    fs::remove(lists, none);
    return until([&] {
      nodes->look_soon();
      return fs::exists(lists) && fs::file_size(lists) > count;
    });
  }

  TemporaryDirectory directory;
  AgentStart start;
  std::unique_ptr<NodesByCommand> nodes;
  std::vector<ProviderEvent> events;
};

// ---- A remote shell

TEST_F(NodesByCommandTest, ACommandThatRunsAsLongAsItsAgentTellsHowThatHasEnded) {
  begin({.submit = {"/bin/sh"}});
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until_agent(0) && until_agent(1));
  ::kill(agent(agent_file(1)), SIGKILL);
  ASSERT_TRUE(until_ended(1));
  EXPECT_EQ(ended().front().ordinal, 1);
  EXPECT_TRUE(ended().front().is_certain);
  EXPECT_THAT(ended().front().reason, HasSubstr("the agent has ended with exit code 137"));
  EXPECT_THAT(nodes->processes(), SizeIs(1));
}

TEST_F(NodesByCommandTest, TheEndOfTheCommandAloneSaysNothingOfTheAgent) {
  begin({.submit = {"/bin/sh"}});
  request({.id = 1});
  ASSERT_TRUE(until_agent(0));
  ::kill(static_cast<::pid_t>(nodes->processes().front().pid), SIGKILL);
  ASSERT_TRUE(until_ended(1));
  EXPECT_FALSE(ended().front().is_certain);
}

TEST_F(NodesByCommandTest, AnAgentThatIsGivenBackIsToldToGo) {
  begin({.submit = {"/bin/sh"}});
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until_agent(0) && until_agent(1));
  nodes->release(1, 0);
  ASSERT_TRUE(until_ended(1));
  EXPECT_EQ(ended().front().ordinal, 0);
  nodes->release(1);
  nodes->release(1);
  ASSERT_TRUE(until_ended(2));
  EXPECT_FALSE(nodes->is_giving_back());
}

TEST_F(NodesByCommandTest, ACommandThatTellsOthersOfItsEndHasTheTimeForThat) {
  const std::string told = directory.path() / "told";
  begin({.submit = {
             "/bin/sh", "-c",
             "trap 'sleep 0.3; : >" + told + "; exit 1' TERM; : >" + told + ".begun; while :; do sleep 0.02; done"}});
  request({.id = 1});
  ASSERT_TRUE(until([&] { return fs::exists(told + ".begun"); }));
  nodes->release(1);
  EXPECT_TRUE(nodes->is_giving_back());
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back(); }));
  EXPECT_TRUE(fs::exists(told));
}

TEST_F(NodesByCommandTest, AHostHasOneNodeAndOneThatHasFailedIsTheLastToBeTakenAgain) {
  begin({.submit = {"/bin/sh", "-c", "echo {host} >>hosts; exec sh"}});
  fs::current_path(directory.path());
  const std::map<std::string, std::string> hosts{{"hosts", "a,b,c"}};
  request({.id = 1, .nodes = 2, .options = hosts});
  ASSERT_TRUE(until_agent(0) && until_agent(1));
  nodes->release(1, 0);
  ASSERT_TRUE(until_ended(1));
  request({.id = 2, .options = hosts});
  ASSERT_TRUE(until([&] { return text_of("hosts").ends_with("c\n"); })) << text_of("hosts");
  request({.id = 3, .options = hosts});
  ASSERT_TRUE(until([&] { return text_of("hosts").ends_with("c\na\n"); })) << text_of("hosts");
  request({.id = 4, .options = hosts});
  ASSERT_TRUE(until([&] { return !all<Queued>().empty(); }));
  EXPECT_EQ(all<Queued>().front().reason, "all hosts of \"g\" have a node");
  nodes->release(2);
  ASSERT_TRUE(until([&] { return text_of("hosts").ends_with("c\na\nc\n"); })) << text_of("hosts");
  fs::current_path("/");
}

TEST_F(NodesByCommandTest, WhatACommandHasStartedIsCancelledWhenItIsNotNeededAndWhenTheCommandHasEnded) {
  const fs::path cancelled = directory.path() / "cancelled";
  begin({.submit = {"/bin/sh"}, .cancel = {"/bin/sh", "-c", "echo {id} >>" + cancelled.string()}});
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until_agent(0) && until_agent(1));
  nodes->release(1, 0);
  EXPECT_TRUE(nodes->is_giving_back());
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back(); }));
  EXPECT_EQ(text_of(cancelled), "cadre-jobs-1-0\n");
  ASSERT_TRUE(until_ended(1));
  ::kill(static_cast<::pid_t>(nodes->processes().front().pid), SIGKILL);
  ASSERT_TRUE(until([&] { return text_of(cancelled) == "cadre-jobs-1-0\ncadre-jobs-1-1\n"; }));
}

TEST_F(NodesByCommandTest, AnotherProcessTakesTheCommandsOver) {
  start.outlives = true;
  begin({.submit = {"/bin/sh", "-c", "exec sh", "{host}"}});
  const NodeRequest wanted{.id = 1, .group = "g", .nodes = 2, .options = {{"hosts", "a,b"}}};
  request(wanted);
  ASSERT_TRUE(until_agent(0) && until_agent(1));
  const std::vector<NodeProcess> processes = nodes->processes();
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes.back().host, "b");
  NodesByCommand next({.submit = {"/bin/sh", "-c", "exec sh", "{host}"}}, "jobs", own_variables());
  NodeRequest more = wanted;
  more.nodes = 3;
  next.claim({{.request = more, .ended = {0}}}, processes);
  EXPECT_THAT(next.processes(), SizeIs(1));  // of the ordinal 1; that of 0 is given back
  const std::vector<ProviderEvent> told = next.take_events();
  ASSERT_FALSE(told.empty());
  EXPECT_FALSE(std::get<AgentEnded>(told.front()).is_certain);
  EXPECT_EQ(std::get<AgentEnded>(told.front()).ordinal, 2);
  ASSERT_TRUE(until_ended(1));  // by `next`
  EXPECT_EQ(ended().front().ordinal, 0);
}

TEST_F(NodesByCommandTest, TheSessionFollowsTheScript) {
  start.over_stdio = true;
  start.command = {"cat"};
  begin({.submit = {"/bin/sh"}});
  request({.id = 1});
  std::vector<AgentConnection> connections = nodes->take_connections();
  ASSERT_THAT(connections, SizeIs(1));
  const std::string sent = "the session\n";
  ASSERT_TRUE(until([&] {
    return fs::exists("/proc/" + std::to_string(nodes->processes().front().pid)) &&
           text_of("/proc/" + std::to_string(nodes->processes().front().pid) + "/comm") == "cat\n";
  }));
  ASSERT_EQ(::write(connections.front().socket.get(), sent.data(), sent.size()), std::ssize(sent));
  std::array<char, 100> received{};
  ASSERT_EQ(::read(connections.front().socket.get(), received.data(), received.size()), std::ssize(sent));
  EXPECT_EQ(std::string(received.data()), sent);
}

// ---- A batch system

TEST_F(NodesByCommandTest, AJobThatIsQueuedShowsItsLine) {
  begin(queue());
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until([&] { return all<Queued>().size() >= 4; }));
  EXPECT_EQ(all<Queued>().back().reason, job(1, 1).string() + " waits");
  EXPECT_THAT(text_of(job(1, 1)), AllOf(HasSubstr("export SECRET='is here'"), HasSubstr("ORDINAL='1'")));
  const std::vector<NodeProcess> processes = nodes->processes();
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes.front().job, job(1, 0));
  EXPECT_EQ(processes.front().pid, 0);
}

TEST_F(NodesByCommandTest, AJobHasEndedWhenTwoListsLackItOrWhenOneSaysSo) {
  begin(queue());
  request({.id = 1, .nodes = 3});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 3; }));
  const auto until_listed_ended = [&](std::size_t count) {
    return until([&] {
      nodes->look_soon();
      return ended().size() == count;
    });
  };
  std::ofstream(directory.path() / "states") << job(1, 1).string() << " has ended\n";
  fs::remove(job(1, 1));
  ASSERT_TRUE(until_listed_ended(1));
  fs::remove(job(1, 0));
  ASSERT_TRUE(until_listed_ended(2));
  EXPECT_EQ(ended().front().ordinal, 1);
  EXPECT_EQ(ended().front().reason, job(1, 1).string() + " has ended");
  EXPECT_EQ(ended().back().reason, "job " + job(1, 0).string() + " is not listed any more");
  EXPECT_THAT(nodes->processes(), SizeIs(1));
}

TEST_F(NodesByCommandTest, AListThatFailsAndNamesAJobIsNotBelievedAtOnce) {
  begin(queue());
  request({.id = 1});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 1; }));
  fail_lists("Unknown job " + job(1, 0).string());
  fs::remove(job(1, 0));
  fs::remove(directory.path() / "lists");
  ASSERT_TRUE(until([&] {
    nodes->look_soon();
    return !ended().empty();
  }));
  EXPECT_GE(fs::file_size(directory.path() / "lists"), 4U);
}

TEST_F(NodesByCommandTest, AListThatFailsAndHasOtherJobsSaysThatAJobHasEnded) {
  begin(queue());
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 2; }));
  fail_lists("");
  fs::remove(job(1, 1));
  ASSERT_TRUE(until([&] {
    nodes->look_soon();
    return !ended().empty();
  }));
  EXPECT_EQ(ended().front().ordinal, 1);
  EXPECT_THAT(nodes->processes(), SizeIs(1));
}

TEST_F(NodesByCommandTest, AQueueThatDoesNotAnswerEndsNoJob) {
  begin(queue());
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 2; }));
  fail_lists("the server is down");
  hide_jobs();
  ASSERT_TRUE(until_lists(8));
  EXPECT_THAT(ended(), IsEmpty());
  EXPECT_THAT(nodes->processes(), SizeIs(2));
}

TEST_F(NodesByCommandTest, AJobWhoseAgentIsNotConnectedEndsWhenTheQueueHasNotAnsweredForLong) {
  begin(queue(), std::chrono::milliseconds(1));
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 2; }));
  fail_lists("the server is down");
  hide_jobs();
  nodes->note_connected({{1, 1}});
  ASSERT_TRUE(until([&] {
    nodes->look_soon();
    return !ended().empty();
  }));
  ASSERT_TRUE(until_lists(8));
  ASSERT_THAT(ended(), SizeIs(1));
  EXPECT_EQ(ended().front().ordinal, 0);
  EXPECT_EQ(ended().front().reason,
            "nothing is known of job " + job(1, 0).string() + ": /bin/sh fails: the server is down");
}

TEST_F(NodesByCommandTest, AJobThatIsGivenBackIsCancelledAlsoBeforeItsIdIsKnown) {
  begin(queue());
  request({.id = 1, .nodes = 2});
  nodes->release(1, 1);
  EXPECT_TRUE(nodes->is_giving_back());
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back(); }));
  EXPECT_FALSE(fs::exists(job(1, 1)));
  EXPECT_TRUE(fs::exists(job(1, 0)));
  ASSERT_TRUE(until([&] {
    nodes->look_soon();
    return ended().size() == 1;
  }));
  EXPECT_EQ(ended().front().ordinal, 1);
}

TEST_F(NodesByCommandTest, JobsOfAnEarlierProcessAreTakenOverOrCancelled) {
  begin(queue());
  request({.id = 1, .nodes = 2});
  request({.id = 2});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 3; }));
  const std::vector<NodeProcess> processes = nodes->processes();
  events.clear();
  begin(queue());
  nodes->claim({{.request = {.id = 1, .group = "g", .nodes = 2}}}, processes);
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back() && !all<Queued>().empty(); }));
  EXPECT_THAT(nodes->processes(), SizeIs(2));
  EXPECT_EQ(text_of(directory.path() / "cancelled"), job(2, 0).string() + "\n");
}

TEST_F(NodesByCommandTest, JobsThatAreNotTakenOverAreCancelledWithTheOptionsThatAreKnown) {
  NodeCommands commands = queue();
  commands.cancel.back() = "echo {kind} {id} >>" + (directory.path() / "cancelled").string() + "; rm {id}";
  begin(commands);
  request({.id = 1, .nodes = 2, .options = {{"kind", "small"}}});
  request({.id = 2, .options = {{"kind", "large"}}});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 3; }));
  const std::vector<NodeProcess> processes = nodes->processes();
  begin(commands);
  const NodeRequest small{.id = 1, .group = "g", .nodes = 2, .options = {{"kind", "small"}}};
  nodes->claim({{.request = small, .ended = {0}}}, processes);
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back(); }));
  EXPECT_THAT(nodes->processes(), SizeIs(1));
  EXPECT_THAT(text_of(directory.path() / "cancelled"),
              AllOf(HasSubstr("small " + job(1, 0).string() + "\n"), HasSubstr("{kind} " + job(2, 0).string() + "\n")));
}

TEST_F(NodesByCommandTest, AJobIsNotTakenOverByCommandsWithoutAQueue) {
  begin(queue());
  request({.id = 1});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 1; }));
  const std::vector<NodeProcess> processes = nodes->processes();
  events.clear();
  begin({.submit = {"/bin/sh"}});
  nodes->claim({{.request = {.id = 1, .group = "g"}}}, processes);
  EXPECT_THAT(nodes->processes(), IsEmpty());
  nodes->release(1);
  ASSERT_TRUE(until_ended(1));
  EXPECT_FALSE(ended().front().is_certain);
}

TEST_F(NodesByCommandTest, AListThatBeganBeforeAJobWasCancelledDoesNotCancelItAgain) {
  NodeCommands commands = queue();
  commands.list = {
      "/bin/sh", "-c",
      "cd " + directory.path().string() +
          "; jobs=$(echo $PWD/job_*); echo >>lists; [ ! -e slow ] || until [ -e cancelled ]; do sleep 0.01; "
          "done; sleep 0.2; for job in $jobs; do echo $job waits; done"};
  begin(commands);
  request({.id = 1, .nodes = 2});
  ASSERT_TRUE(until([&] { return nodes->processes().size() == 2; }));
  ASSERT_TRUE(until([&] { return all<Queued>().size() == 4; }));  // no list is under way
  std::ofstream(directory.path() / "slow").flush();
  fs::remove(directory.path() / "lists");
  nodes->look_soon();
  ASSERT_TRUE(until([&] { return fs::exists(directory.path() / "lists"); }));
  nodes->release(1, 1);
  ASSERT_TRUE(until([&] { return !nodes->is_giving_back() && nodes->fds().empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(text_of(directory.path() / "cancelled"), job(1, 1).string() + "\n");
}

TEST_F(NodesByCommandTest, ASubmissionThatTakesMinutesQueuesItsJob) {
  NodeCommands commands = queue();
  commands.submit.back() =
      "until [ -e " + (directory.path() / "go").string() + " ]; do sleep 0.02; done; " + commands.submit.back();
  begin(commands);
  request({.id = 1});
  ASSERT_TRUE(nodes->next_look().has_value());
  EXPECT_GT(*nodes->next_look(), steady_clock::now() + std::chrono::minutes(5));
  std::ofstream(directory.path() / "go").flush();
  EXPECT_TRUE(until([&] { return nodes->processes().size() == 1; }));
}

TEST_F(NodesByCommandTest, ASubmissionThatIsKilledMayHaveQueuedItsJob) {
  NodeCommands commands = queue();
  commands.submit = {"/bin/sh", "-c", "kill -9 $$"};
  begin(commands);
  request({.id = 1});
  ASSERT_TRUE(until_ended(1));
  EXPECT_EQ(ended().front().reason,
            "/bin/sh ended with signal 9; its job may be queued all the same, as " + node_name("jobs", 1, 0));
  EXPECT_FALSE(ended().front().is_certain);
}

TEST_F(NodesByCommandTest, ASubmissionThatFailsOrHasNoIdIsSaid) {
  NodeCommands commands = queue();
  commands.submit = {"/bin/sh", "-c", "echo over quota >&2; exit 3"};
  begin(commands);
  request({.id = 1});
  ASSERT_TRUE(until_ended(1));
  EXPECT_EQ(ended().front().reason, "/bin/sh ended with exit code 3: over quota");
  commands.submit = {"/bin/echo", "queued"};
  begin(commands);
  request({.id = 2});
  ASSERT_TRUE(until_ended(2));
  EXPECT_THAT(ended().back().reason, HasSubstr("prints no id of a job: \"queued\""));
  commands.submit = {"/no such program"};
  begin(commands);
  request({.id = 3});
  ASSERT_TRUE(until_ended(3));
  EXPECT_THAT(ended().back().reason, HasSubstr("cannot start /no such program"));
}

}  // namespace
}  // namespace cadre::engine::cluster
