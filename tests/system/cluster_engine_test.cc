// The engine for clusters: the conformance suite over agents on this machine, and what happens to nodes.
#include "engine/cluster/cluster_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "channel/frame.h"
#include "channel/tls.h"
#include "channel/worker_end.h"
#include "engine/cluster/agent.h"
#include "engine/cluster/dialler.h"
#include "engine/cluster/handshake.h"
#include "engine/cluster/lease.h"
#include "engine/cluster/processes.h"
#include "engine/forwarding_engine.h"
#include "engine_conformance.h"
#include "local_subject.h"
#include "worker/cluster.h"

namespace cadre::system_tests {
namespace {

using engine::Exit;
using engine::WorkerId;
using engine::cluster::AgentSettings;
using engine::cluster::AgentStart;
using engine::cluster::ClusterEngine;
using engine::cluster::ClusterOptions;
using engine::cluster::Hello;
using engine::cluster::NodeRequest;
using engine::cluster::Processes;
using engine::cluster::Provider;
using engine::cluster::ProviderEvent;
using engine::cluster::Welcome;
using engine::conformance::hangs;
using engine::conformance::Listener;
using engine::conformance::report;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// Agents on this machine; keeps what they were started with.
class WatchedProcesses final : public Provider {
 public:
  void request(const NodeRequest& request, const AgentStart& start) override {
    start_ = start;
    ++requests_;
    requested_nodes_ += request.nodes;
    if (holds_) return;
    if (!refuses_) return agents_.request(request, start);
    added_.emplace_back(engine::cluster::Refused{request.id, "there are no more"});
  }
  // Says when a node of the first request ends, or all do. `then`: when it ends if it is asked again.
  void end(std::int64_t ordinal, std::chrono::steady_clock::time_point at,
           std::optional<std::chrono::steady_clock::time_point> then = {}) {
    added_.emplace_back(engine::cluster::NodeEnds{.request = 1, .ordinal = ordinal, .at = at});
    if (then) extension_ = engine::cluster::NodeEnds{.request = 1, .ordinal = ordinal, .at = then};
  }
  void end_all(std::chrono::steady_clock::time_point at) { all_end_ = at; }
  std::optional<std::chrono::steady_clock::time_point> all_end() const override { return all_end_; }
  void look_soon() override {
    if (auto extension = std::exchange(extension_, {})) added_.emplace_back(*extension);
  }
  int requests() const { return requests_; }
  std::int64_t requested_nodes() const { return requested_nodes_; }
  // Lets further requests wait for ever.
  void hold_requests(bool hold = true) { holds_ = hold; }
  int ended_agents() const { return ended_agents_; }
  int withdrawn() const { return withdrawn_; }  // nodes that had not come
  // Refuses all further requests.
  void refuse() { refuses_ = true; }
  // Says of an agent that what had started it has ended, and perhaps not the agent.
  void say_that_it_may_have_ended(pid_t agent) {
    for (const engine::cluster::NodeProcess& process : agents_.processes()) {
      if (process.pid == agent)
        added_.emplace_back(engine::cluster::AgentEnded{process.request, process.ordinal, "ssh has ended", false});
    }
  }
  // Says of agents that end only that what had started them has ended.
  void hide_ends() { hides_ends_ = true; }
  // Calls a function before all agents are given back.
  void before_release(std::function<void()> act) { before_release_ = std::move(act); }
  void release(std::uint64_t request) override {
    if (before_release_) std::exchange(before_release_, {})();
    agents_.release(request);
  }
  void release(std::uint64_t request, std::int64_t ordinal) override {
    if (holds_) ++withdrawn_;
    agents_.release(request, ordinal);
  }
  void claim(const std::vector<engine::cluster::KeptRequest>& requests,
             const std::vector<engine::cluster::NodeProcess>& processes) override {
    agents_.claim(requests, processes);
  }
  std::vector<engine::cluster::NodeProcess> processes() const override { return agents_.processes(); }
  std::vector<engine::cluster::AgentConnection> take_connections() override { return agents_.take_connections(); }
  void note_connected(const std::set<std::pair<std::uint64_t, std::int64_t>>& agents) override { connected_ = agents; }
  const std::set<std::pair<std::uint64_t, std::int64_t>>& connected() const { return connected_; }
  // Lets the next look fail.
  void fail() { fails_ = true; }
  std::vector<ProviderEvent> take_events() override {
    if (std::exchange(fails_, false)) throw EngineError("a test lets it fail");
    std::vector<ProviderEvent> events = agents_.take_events();
    for (ProviderEvent& event : events) {
      auto* const ended = std::get_if<engine::cluster::AgentEnded>(&event);
      if (ended == nullptr) continue;
      ++ended_agents_;
      if (hides_ends_) ended->is_certain = false;
    }
    std::ranges::move(std::exchange(added_, {}), std::back_inserter(events));
    return events;
  }
  std::optional<std::chrono::steady_clock::time_point> next_look() const override {
    if (added_.empty() && !fails_) return std::nullopt;
    return std::chrono::steady_clock::time_point::min();
  }
  std::vector<int> fds() const override { return agents_.fds(); }

  AgentSettings settings() const {
    AgentSettings settings;
    from_stored(settings, Stored(base::parse_json(start_.variables.at(engine::cluster::agent_variable), "test")));
    return settings;
  }

 private:
  Processes agents_;
  AgentStart start_;
  std::set<std::pair<std::uint64_t, std::int64_t>> connected_ = {};
  int requests_ = 0;
  std::int64_t requested_nodes_ = 0;
  int ended_agents_ = 0;
  int withdrawn_ = 0;
  bool refuses_ = false;
  bool holds_ = false;
  bool fails_ = false;
  std::vector<ProviderEvent> added_ = {};  // to those of the agents
  std::optional<ProviderEvent> extension_ = {};
  std::optional<std::chrono::steady_clock::time_point> all_end_ = {};
  bool hides_ends_ = false;
  std::function<void()> before_release_ = {};
};

struct Nodes {
  std::unique_ptr<ClusterEngine> engine;
  WatchedProcesses* provider;  // the engine's
};

struct Setting {
  std::chrono::seconds patience = 30s;
  bool over_stdio = false;
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe")};
  std::vector<NodeRequest> groups = {};  // empty: one
  std::map<std::string, engine::cluster::OnDemand> on_demand = {};
};

Nodes make_nodes(std::int64_t count, Setting setting = {}) {
  auto provider = std::make_unique<WatchedProcesses>();
  WatchedProcesses* const kept = provider.get();
  if (setting.groups.empty()) setting.groups = {{.nodes = count}};
  return {std::make_unique<ClusterEngine>(
              std::move(provider),
              ClusterOptions{.requests = std::move(setting.groups),
                             .on_demand = std::move(setting.on_demand),
                             .start = {.command = std::move(setting.command), .over_stdio = setting.over_stdio},
                             .addresses = {"127.0.0.1"},
                             .patience = setting.patience}),
          kept};
}

[[maybe_unused]] const bool sends_noise = entry("sends noise in a frame", [](channel::WorkerEnd&, const Value&) {
  std::array<std::uint32_t, 18> frame{channel::frame_magic, 64};
  std::ranges::fill(frame.begin() + 2, frame.end(), 0x78787878U);
  if (::write(connection_descriptor(), frame.data(), sizeof frame) != sizeof frame) ::abort();
  for (;;) ::pause();
});

// Two nodes of this machine or, with CADRE_TEST_CLUSTER, of the cluster that CADRE_CLUSTER would name
// (tests/cluster/nodes_test.py).
std::unique_ptr<ClusterEngine> make_two_nodes(bool over_stdio = false) {
  const char* const name = std::getenv("CADRE_TEST_CLUSTER");
  if (name == nullptr) return make_nodes(2, {.over_stdio = over_stdio}).engine;
  ::setenv(worker::cluster_variable, name, 1);
  ClusterConfig cluster = worker::find_cluster({}).value();
  cluster.groups.front().nodes = 2;
  cluster.link = over_stdio ? "stdio" : "port";
  return worker::make_cluster(cluster, {std::filesystem::read_symlink("/proc/self/exe")});
}

template <std::unique_ptr<engine::Engine> (*make)()>
class Subject {
 public:
  std::unique_ptr<engine::Engine> make_engine() { return make(); }
  std::filesystem::path make_directory() { return directories_.make_directory(); }

 private:
  LocalSubject directories_;
};

// Breaks the connection to a node every few milliseconds.
class BreakingEngine final : public engine::ForwardingEngine {
 public:
  explicit BreakingEngine(std::unique_ptr<ClusterEngine> nodes) : ForwardingEngine(*nodes), nodes_(std::move(nodes)) {}

  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds> timeout) override {
    const auto end = timeout ? std::optional(now() + *timeout) : std::nullopt;
    for (;;) {
      if (now() >= next_break_) {
        next_break_ = now() + 10ms;
        const auto all = nodes_->nodes();
        nodes_->break_connection(all.at(++breaks_ % all.size()).id);
      }
      const std::chrono::nanoseconds left = end ? std::min<std::chrono::nanoseconds>(*end - now(), 10ms) : 10ms;
      std::vector<engine::Event> events = nodes_->wait(left);
      if (!events.empty() || (end && now() >= *end)) return events;
    }
  }

 private:
  std::unique_ptr<ClusterEngine> nodes_;
  Clock::time_point next_break_ = {};
  std::size_t breaks_ = 0;
};

std::unique_ptr<engine::Engine> make_agents() { return make_two_nodes(); }
std::unique_ptr<engine::Engine> make_agents_over_stdio() { return make_two_nodes(true); }
std::unique_ptr<engine::Engine> make_agents_with_broken_connections() {
  return std::make_unique<BreakingEngine>(make_two_nodes());
}

// ---- Nodes that go

List many_reports(int count) {
  List script;
  for (int i = 1; i <= count; ++i) script.push_back(report({{"value", i}}));
  return script;
}

// Returns the child of a process: the fork server of an agent.
pid_t child_of(pid_t process) {
  pid_t child = 0;
  std::ifstream(fmt::format("/proc/{0}/task/{0}/children", process)) >> child;
  return child;
}

// Returns the processor time that a process has used.
std::chrono::nanoseconds processor_time(pid_t process) {
  clockid_t clock{};
  timespec used{};
  EXPECT_TRUE(::clock_getcpuclockid(process, &clock) == 0 && ::clock_gettime(clock, &used) == 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

class ClusterEngineTest : public ::testing::Test {
 protected:
  explicit ClusterEngineTest(Setting setting = {}) : ClusterEngineTest(2, std::move(setting)) {}
  ClusterEngineTest(std::int64_t count, Setting setting) : nodes(make_nodes(count, std::move(setting))) {}

  // Starts a worker on the first or second node.
  WorkerId start(std::size_t node, List script) { return start(node, "conformance", Value(std::move(script))); }
  WorkerId start(std::size_t node, const char* function, Value payload) {
    const WorkerId worker = ++last_worker_;
    nodes.engine->start(worker, {.assignment = {function, std::move(payload)},
                                 .node = nodes.engine->nodes().at(node).id,
                                 .directory = directories.make_directory()});
    heard.started.insert(worker);
    return worker;
  }
  void expect_agents_to_end_before_they_are_released() {
    nodes.provider->before_release([provider = nodes.provider] {
      for (int looks = 0; provider->ended_agents() < 2 && looks < 1000; ++looks) {
        std::this_thread::sleep_for(10ms);
        provider->take_events();
      }
      EXPECT_EQ(provider->ended_agents(), 2);
    });
  }
  // Returns the process of a node's agent.
  pid_t agent(std::size_t node) const {
    return static_cast<pid_t>(nodes.engine->agent_process(nodes.engine->nodes().at(node).id));
  }
  auto heard_from(WorkerId worker, std::size_t reports) {
    return heard.until([this, worker, reports] { return heard[worker].reports.size() >= reports; });
  }

  LocalSubject directories;
  Nodes nodes;
  Listener heard{*nodes.engine};

 private:
  WorkerId last_worker_ = 0;
};

TEST_F(ClusterEngineTest, NodesHaveNamesAddressesAndTheResourcesOfTheirProgram) {
  ASSERT_THAT(nodes.engine->nodes(), SizeIs(2));
  for (const engine::Node& node : nodes.engine->nodes()) {
    EXPECT_EQ(node.name, base::host_name());
    EXPECT_EQ(node.address, "127.0.0.1");
    EXPECT_EQ(node.resources.cpus, 4);
    EXPECT_EQ(node.resources.accelerator_type, "H100");
    EXPECT_EQ(node.resources.labels.at("zone"), "eu");
  }
  EXPECT_EQ(nodes.engine->resources().cpus, 8);
}

TEST_F(ClusterEngineTest, AnAgentThatDiesTakesItsWorkersAlongAndNoOthers) {
  const WorkerId lost = start(0, {report({}), hangs()});
  const WorkerId other = start(1, many_reports(2000));
  ASSERT_TRUE(heard_from(lost, 1));
  const auto before = std::chrono::steady_clock::now();
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  EXPECT_THAT(to_string(heard.exit(lost)), HasSubstr("was lost with its node: node "));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[other].reports.size(), 2000U);
  EXPECT_EQ(heard.exit(other), engine::conformance::exited_with_0);
}

TEST_F(ClusterEngineTest, AForkServerThatDiesTakesItsNodeAlongAndNoOthers) {
  const WorkerId lost = start(0, {report({}), hangs()});
  const WorkerId other = start(1, many_reports(2000));
  ASSERT_TRUE(heard_from(lost, 1));
  ::kill(child_of(agent(0)), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() && !heard.joined.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[other].reports.size(), 2000U);
}

TEST_F(ClusterEngineTest, AnIdleNodeWhoseForkServerDiesIsReplaced) {
  ::kill(child_of(agent(0)), SIGKILL);
  const WorkerId lost = start(0, many_reports(1));
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() && !heard.joined.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  const WorkerId next = start(1, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[next].reports.size(), 10U);
}

TEST_F(ClusterEngineTest, AWorkerForANodeThatHasLeftIsLostAtOnce) {
  const engine::NodeId gone = nodes.engine->nodes().at(0).id;
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  nodes.engine->start(7,
                      {.assignment = {"conformance", List{}}, .node = gone, .directory = directories.make_directory()});
  heard.started.insert(7);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(7).kind, Exit::Kind::node_lost);
}

TEST_F(ClusterEngineTest, AnAgentThatStandsStillForAWhileLosesNothing) {
  const WorkerId frozen = start(0, many_reports(3000));
  const WorkerId other = start(1, many_reports(3000));
  ASSERT_TRUE(heard_from(frozen, 100));
  const pid_t process = agent(0);
  ::kill(process, SIGSTOP);
  std::thread thaw([process] {
    std::this_thread::sleep_for(6s);  // longer than a connection may be silent
    ::kill(process, SIGCONT);
  });
  const auto all = heard.until_all_exited();
  thaw.join();
  ASSERT_TRUE(all);
  for (const WorkerId worker : {frozen, other}) {
    ASSERT_EQ(heard[worker].reports.size(), 3000U);
    for (int i = 1; i <= 3000; ++i) ASSERT_EQ(heard[worker].reports[static_cast<std::size_t>(i - 1)].step, i);
  }
  EXPECT_THAT(heard.left, IsEmpty());
}

// Otherwise agents would stay for the next process if the provider has only what has started them, such as ssh.
TEST_F(ClusterEngineTest, AgentsWhoseConnectionsHaveJustBrokenAreToldToLeaveToo) {
  for (const engine::Node& node : nodes.engine->nodes()) nodes.engine->break_connection(node.id);
  expect_agents_to_end_before_they_are_released();
  nodes.engine.reset();
}

// As by a disk that takes its time.
TEST_F(ClusterEngineTest, AgentsThatHaveClosedTheConnectionBecauseThisProcessStoodStillAreToldToLeaveToo) {
  std::this_thread::sleep_for(channel::Link::longest_silence + 1s);
  expect_agents_to_end_before_they_are_released();
  nodes.engine.reset();
}

TEST_F(ClusterEngineTest, AnAgentThatIsSentSigtermSaysThatItsNodeGoesAndRunsOn) {
  const WorkerId worker = start(0, many_reports(500));
  ASSERT_TRUE(heard_from(worker, 1));
  ::kill(agent(0), SIGTERM);
  ASSERT_TRUE(heard.until([this] { return !heard.draining.empty(); }));
  EXPECT_EQ(heard.draining[0].node, nodes.engine->nodes().at(0).id);
  EXPECT_THAT(heard.draining[0].reason, HasSubstr("SIGTERM"));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[worker].reports.size(), 500U);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));  // it goes when nothing runs there any more
  EXPECT_EQ(heard.left[0].node, heard.draining[0].node);
}

TEST_F(ClusterEngineTest, ANodeWhoseAgentDiesComesAgainWithAnotherAgent) {
  const pid_t before = agent(0);
  ::kill(before, SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.joined.empty(); }));
  ASSERT_THAT(nodes.engine->nodes(), SizeIs(2));
  EXPECT_NE(agent(1), before);
  const WorkerId worker = start(1, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[worker].reports.size(), 10U);
}

TEST_F(ClusterEngineTest, AnAgentWithoutWhatHasStartedItGoesInOrderAndAnotherOneComes) {
  const WorkerId worker = start(0, many_reports(500));
  ASSERT_TRUE(heard_from(worker, 1));
  nodes.provider->say_that_it_may_have_ended(agent(0));
  ASSERT_TRUE(heard.until([this] { return !heard.draining.empty() && !heard.joined.empty(); }));
  EXPECT_EQ(heard.draining[0].reason, "ssh has ended");
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_EQ(heard[worker].reports.size(), 500U);
  EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0);
}

TEST_F(ClusterEngineTest, AProviderIsToldWhichAgentsAreConnected) {
  nodes.provider->end(0, std::chrono::steady_clock::now() + 1h);
  // No event of the engine's comes of it.
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (nodes.provider->connected().size() < 2 && std::chrono::steady_clock::now() < deadline)
    nodes.engine->wait(10ms);
  EXPECT_THAT(nodes.provider->connected(), ::testing::ElementsAre(::testing::Pair(1U, 0), ::testing::Pair(1U, 1)));
}

TEST_F(ClusterEngineTest, WithoutNodesAndWithoutHopeItEnds) {
  nodes.provider->refuse();
  const WorkerId worker = start(0, {hangs()});
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(worker).kind, Exit::Kind::node_lost);
  ::kill(agent(0), SIGKILL);  // the other one
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 2; }));
  EXPECT_THAT([this] { nodes.engine->wait(std::nullopt); },
              ::testing::ThrowsMessage<EngineError>(HasSubstr("all nodes are gone, and none can be had any more: there "
                                                              "are no more")));
}

TEST_F(ClusterEngineTest, AMessageOfManyMegabytesArrives) {
  const std::string text(std::size_t{20} << 20, 'x');
  const WorkerId worker = start(0, {report({{"short", 1}}), Value{{"throw", text.substr(0, 1000)}}});
  const WorkerId large = 100;
  nodes.engine->start(large, {.assignment = {"conformance", List{Value{{"unused", text}}}},
                              .node = nodes.engine->nodes().at(1).id,
                              .directory = directories.make_directory()});
  heard.started.insert(large);
  ASSERT_TRUE(heard.until([&] { return !heard[worker].exits.empty(); }));
  nodes.engine->kill(large);  // it does not know that step, and hangs
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(large).value, SIGKILL);
}

// Each worker may have an assignment of many megabytes, and all are started in one turn.
TEST_F(ClusterEngineTest, ManyLargeMessagesAtOnceDoNotCostTheNode) {
  constexpr int workers = 6;
  const std::string text(std::size_t{16} << 20, 'x');
  std::vector<WorkerId> large;
  for (int i = 0; i < workers; ++i) large.push_back(start(0, List{Value{{"unused", text}}}));
  for (const WorkerId worker : large) nodes.engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
  for (const WorkerId worker : large) EXPECT_EQ(heard.exit(worker).value, SIGKILL);
  EXPECT_THAT(heard.left, IsEmpty());
}

// Agents do not look into messages: the controller finds that these are none.
TEST_F(ClusterEngineTest, AWorkerThatSendsNoiseIsKilledWithACauseAndOthersGoOn) {
  const WorkerId other = start(0, many_reports(2000));
  for (const char* const noise : {"sends noise in a frame", "babbles"}) {
    const WorkerId worker = start(0, noise, Value());
    ASSERT_TRUE(heard.until([&] { return !heard[worker].exits.empty(); }));
    EXPECT_EQ(heard.exit(worker).value, SIGKILL) << noise;
    EXPECT_THAT(heard.exit(worker).detail, Not(IsEmpty())) << noise;
    EXPECT_THAT(heard[worker].reports, IsEmpty()) << noise;
  }
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[other].reports.size(), 2000U);
  EXPECT_EQ(heard.exit(other), engine::conformance::exited_with_0);
}

// The agent gives the session up after 15 s, as a connection for it is being made, and its worker takes a while to end.
TEST_F(ClusterEngineTest, AConnectionThatComesWhileAnAgentEndsItsWorkersDoesNotHideTheirEnd) {
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t process = agent(0);
  const pid_t server = child_of(process);
  ::kill(server, SIGSTOP);
  const auto cut = std::chrono::steady_clock::now();
  nodes.engine->break_connection(nodes.engine->nodes().at(0).id);
  std::thread thaw([server, process, cut] {
    std::this_thread::sleep_until(cut + 15s + 500ms);
    const std::chrono::nanoseconds used = processor_time(process);
    std::this_thread::sleep_until(cut + 17s);
    EXPECT_LT(processor_time(process) - used, 500ms) << "the agent sleeps until its workers have ended";
    ::kill(server, SIGCONT);
  });
  std::this_thread::sleep_until(cut + 15s + 100ms);  // nobody answers the agent before
  const auto all = heard.until_all_exited();
  thaw.join();
  ASSERT_TRUE(all);
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  ASSERT_TRUE(heard.until([this] { return !heard.joined.empty(); }));
  const WorkerId next = start(1, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[next].reports.size(), 10U);
}

class ImpatientEngine : public ClusterEngineTest {
 protected:
  ImpatientEngine() : ClusterEngineTest({.patience = 6s}) {}
};

TEST_F(ImpatientEngine, WorkersOfAnAgentThatMayHaveEndedAreNotGivenUpBeforeItHasEndedThem) {
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t process = agent(0);
  ::kill(process, SIGSTOP);
  const auto cut = std::chrono::steady_clock::now();
  nodes.provider->say_that_it_may_have_ended(process);
  nodes.engine->break_connection(nodes.engine->nodes().at(0).id);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_GT(std::chrono::steady_clock::now() - cut, 4s);
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  ::kill(process, SIGCONT);
}

TEST_F(ImpatientEngine, ANodeThatWasGivenUpComesBackAsAnotherOneWithoutItsWorkers) {
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t process = agent(0);
  ::kill(process, SIGSTOP);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  EXPECT_THAT(heard.left[0].reason, HasSubstr("does not answer"));
  ::kill(process, SIGCONT);
  ASSERT_TRUE(heard.until([this] { return !heard.joined.empty(); }));
  EXPECT_GT(heard.joined[0].id, heard.left[0].node);
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(2));
  const WorkerId next = start(1, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[next].reports.size(), 10U);
}

// ---- Time limits

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

TEST_F(ClusterEngineTest, ANodeDrainsBeforeItsTimeLimitAndAnotherOneFollows) {
  const WorkerId worker = start(0, many_reports(500));
  nodes.provider->end(0, in(4s));
  ASSERT_TRUE(heard.until([this] { return !heard.draining.empty() && !heard.left.empty() && !heard.joined.empty(); }));
  ASSERT_THAT(heard.draining, SizeIs(1));
  EXPECT_GT(*heard.draining[0].seconds_left, 0.5) << "half of the time that it had";
  EXPECT_LE(*heard.draining[0].seconds_left, 2.5);
  EXPECT_THAT(heard.draining[0].reason, HasSubstr("its time limit comes in "));
  EXPECT_EQ(heard.left[0].node, heard.draining[0].node);
  EXPECT_EQ(heard[worker].reports.size(), 500U);
  EXPECT_EQ(nodes.engine->closing(), "");
}

TEST_F(ClusterEngineTest, ANodeThatDrainsIsAskedForAgainAtOnceAndOnce) {
  const WorkerId workers[] = {start(0, {report({}), hangs()}), start(1, {report({}), hangs()})};
  for (const WorkerId worker : workers) ASSERT_TRUE(heard_from(worker, 1));
  nodes.provider->end(0, in(4s));
  ASSERT_TRUE(heard.until([this] { return !heard.joined.empty(); }));
  ASSERT_THAT(heard.draining, SizeIs(1));
  EXPECT_THAT(heard.left, IsEmpty());
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(3));
  for (const WorkerId worker : workers) nodes.engine->kill(worker);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_EQ(heard.left[0].node, heard.draining[0].node);
  ::kill(agent(0), SIGTERM);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 2 && heard.left.size() == 2; }));
  start(1, many_reports(500));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(nodes.engine->nodes().size(), 2U);
  EXPECT_EQ(heard.joined.size(), 2U);
}

TEST_F(ClusterEngineTest, OnlyNodesAreUsedThatSeeTheDirectoryOfTheRun) {
  const std::filesystem::path here = directories.make_directory() / "mark";
  std::ofstream(here) << "of this run";
  EXPECT_EQ(nodes.engine->use_nodes_that_see({here}), here);
  const WorkerId worker = start(0, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[worker].reports.size(), 10U);
  EXPECT_THROW(nodes.engine->use_nodes_that_see({"/nowhere/mark"}), StorageError);
  // Each process has a file of its own there.
  EXPECT_EQ(nodes.engine->use_nodes_that_see({"/proc/self/stat", "/proc/self/status"}), "");
  EXPECT_THAT(nodes.engine->blind_nodes(),
              AllOf(HasSubstr("/proc/self is not seen by all nodes"), HasSubstr(" (another one is there), "),
                    HasSubstr("; nor is /proc/self, where it is published: ")));
  EXPECT_EQ(nodes.engine->use_nodes_that_see({"/proc/self/stat", here}), here) << "the first that all of them see";
  EXPECT_EQ(nodes.engine->use_nodes_that_see({here, "/proc/self/stat"}), here);
  EXPECT_EQ(nodes.engine->blind_nodes(), "");
  nodes.engine->use_nodes_that_see({});
}

TEST_F(ClusterEngineTest, ANodeThatJoinsAndDoesNotSeeTheDirectoryIsGivenBack) {
  const std::filesystem::path here = directories.make_directory() / "mark";
  std::ofstream(here) << "of this run";
  nodes.engine->use_nodes_that_see({here});
  std::filesystem::remove(here);
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  const WorkerId worker = start(0, many_reports(100'000));
  const auto has_come_and_gone = [this] {
    return nodes.provider->requests() == 2 && nodes.provider->processes().size() == 1 &&
           nodes.engine->nodes().size() == 1;
  };
  ASSERT_TRUE(heard.until(has_come_and_gone));
  ASSERT_TRUE(heard_from(worker, heard[worker].reports.size() + 5000));
  EXPECT_EQ(nodes.provider->requests(), 2) << "another one would see as little";
  EXPECT_THAT(heard.joined, IsEmpty());
  EXPECT_EQ(heard.left.size(), 1U);
}

TEST_F(ClusterEngineTest, ANodeThatDrainsAsARunEndsIsNotThereForTheNext) {
  const engine::NodeId drained = nodes.engine->nodes().at(0).id;
  {
    const engine::cluster::Lease run(*nodes.engine, {}, {});
    const WorkerId worker = start(0, {report({}), hangs()});
    ASSERT_TRUE(heard_from(worker, 1));
    ::kill(agent(0), SIGTERM);
    ASSERT_TRUE(heard.until([this] { return !heard.draining.empty(); }));
  }
  const engine::cluster::Lease run(*nodes.engine, {}, {});
  const std::vector<engine::Node> there = nodes.engine->nodes();
  ASSERT_FALSE(there.empty());
  EXPECT_EQ(std::ranges::find(there, drained, &engine::Node::id), there.end());
  const WorkerId next = start(0, many_reports(10));
  ASSERT_TRUE(heard.until([&] { return !heard[next].exits.empty(); }));
  EXPECT_EQ(heard.exit(next), engine::conformance::exited_with_0);
  EXPECT_THAT(heard.left, IsEmpty()) << "the run does not know of it";
}

TEST_F(ClusterEngineTest, ATimeLimitIsAskedAgainBeforeANodeDrains) {
  nodes.provider->end(0, in(2s), in(1h));
  nodes.provider->end(1, in(4s));
  ASSERT_TRUE(heard.until([this] { return !heard.draining.empty(); }));
  ASSERT_THAT(heard.draining, SizeIs(1));
  EXPECT_GT(*heard.draining[0].seconds_left, 1.5) << "this is the other node, whose limit was not extended";
}

TEST_F(ClusterEngineTest, NodesThatEndTogetherCloseTheEngineOnceNothingRuns) {
  const WorkerId worker = start(0, many_reports(500));
  const auto end = in(12s);
  nodes.provider->end_all(end);
  ASSERT_TRUE(heard.until([this] { return heard.draining.size() == 2; }));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[worker].reports.size(), 500U);
  ASSERT_TRUE(heard.until([this] { return !nodes.engine->closing().empty(); }));
  EXPECT_THAT(nodes.engine->closing(), HasSubstr("all nodes reach their time limit in "));
  EXPECT_LT(std::chrono::steady_clock::now(), end - 1500ms) << "nothing has run any more";
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 2; }));
  EXPECT_THAT(nodes.engine->wait(2s), IsEmpty()) << "no other nodes come, and that is no error";
}

TEST_F(ClusterEngineTest, WhatRunsOnWhenNodesEndTogetherIsToEndInTheLastQuarter) {
  const WorkerId worker = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(worker, 1));
  const auto end = in(4s);
  nodes.provider->end_all(end);
  ASSERT_TRUE(heard.until([this] { return heard.draining.size() == 2; }));
  EXPECT_EQ(nodes.engine->closing(), "");
  ASSERT_TRUE(heard.until([this] { return !nodes.engine->closing().empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now(), end);
  nodes.engine->kill(worker);
  ASSERT_TRUE(heard.until_all_exited());
}

// ---- Sessions in standard input and output

class StdioEngine : public ClusterEngineTest {
 protected:
  explicit StdioEngine(Setting setting = {.over_stdio = true}) : ClusterEngineTest(std::move(setting)) {}
};

TEST_F(StdioEngine, AnAgentThatDiesTakesItsWorkersAlongAtOnceAndComesAgain) {
  const WorkerId lost = start(0, {report({}), hangs()});
  const WorkerId other = start(1, many_reports(2000));
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t before = agent(0);
  const auto begin = std::chrono::steady_clock::now();
  ::kill(before, SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() && !heard.joined.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  EXPECT_NE(agent(1), before);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[other].reports.size(), 2000U);
}

TEST_F(StdioEngine, AnAgentThatStandsStillForAWhileLosesNothing) {
  const WorkerId frozen = start(0, many_reports(1000));
  ASSERT_TRUE(heard_from(frozen, 100));
  const pid_t process = agent(0);
  ::kill(process, SIGSTOP);
  std::thread thaw([process] {
    std::this_thread::sleep_for(7s);  // longer than the controller talks to who is silent
    ::kill(process, SIGCONT);
  });
  const auto all = heard.until_all_exited();
  thaw.join();
  ASSERT_TRUE(all);
  EXPECT_EQ(heard[frozen].reports.size(), 1000U);
  EXPECT_THAT(heard.left, IsEmpty());
}

TEST_F(StdioEngine, AConnectionThatEndsCostsTheNodeItsWorkersAndItComesAgain) {
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t before = agent(0);
  nodes.engine->break_connection(nodes.engine->nodes().at(0).id);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() && !heard.joined.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", before)));
}

TEST_F(StdioEngine, AMessageOfManyMegabytesArrives) {
  const WorkerId large = 100;
  nodes.engine->start(large,
                      {.assignment = {"conformance", List{Value{{"unused", std::string(std::size_t{20} << 20, 'x')}}}},
                       .node = nodes.engine->nodes().at(1).id,
                       .directory = directories.make_directory()});
  heard.started.insert(large);
  const WorkerId other = start(1, many_reports(100));
  ASSERT_TRUE(heard_from(other, 100));
  nodes.engine->kill(large);
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard.exit(large).value, SIGKILL);
}

TEST(StdioNodes, ManyThatAreLostAtOnceComeAgain) {
  const Nodes nodes = make_nodes(7, {.over_stdio = true});
  while (nodes.engine->awaits_nodes()) nodes.engine->wait(100ms);
  for (const engine::Node& node : nodes.engine->nodes()) nodes.engine->break_connection(node.id);
  std::size_t joined = 0;
  for (const auto until = std::chrono::steady_clock::now() + 60s;
       joined < 7 && std::chrono::steady_clock::now() < until;) {
    for (const engine::Event& event : nodes.engine->wait(100ms))
      joined += std::holds_alternative<engine::NodeJoined>(event) ? 1 : 0;
  }
  EXPECT_EQ(joined, 7U);
}

class ImpatientStdioEngine : public StdioEngine {
 protected:
  ImpatientStdioEngine() : StdioEngine({.patience = 6s, .over_stdio = true}) {}
};

TEST_F(ImpatientStdioEngine, WhenOnlyItsLauncherIsKnownToHaveEndedANodeIsGivenUpLater) {
  nodes.provider->hide_ends();
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() || !heard.joined.empty(); }));
  EXPECT_THAT(heard.left, IsEmpty());  // the worker may run there, though another agent has come
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(3));
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
}

TEST_F(ImpatientStdioEngine, AnAgentThatIsSilentForTooLongIsEndedAndComesAgain) {
  const WorkerId lost = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(lost, 1));
  const pid_t process = agent(0);
  ::kill(process, SIGSTOP);
  ASSERT_TRUE(heard.until([this] { return !heard.left.empty() && !heard.joined.empty(); }));
  EXPECT_EQ(heard.exit(lost).kind, Exit::Kind::node_lost);
  EXPECT_THAT(heard.left[0].reason, HasSubstr("nothing was heard for 6 seconds"));
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", process)));
  const WorkerId next = start(1, many_reports(10));
  ASSERT_TRUE(heard.until_all_exited());
  EXPECT_EQ(heard[next].reports.size(), 10U);
}

// ---- Nodes on demand

// Up to three nodes, of which one is there at the beginning, and as few as `least` later.
class OnDemand : public ClusterEngineTest {
 protected:
  explicit OnDemand(std::int64_t least = 0, bool over_stdio = false)
      : ClusterEngineTest(1, {.over_stdio = over_stdio,
                              .groups = {{.group = "many", .nodes = 3, .cpus = 1}},
                              .on_demand = {{"many", {.least = least, .linger = 700ms}}}}) {}

  void wait_for_workers(std::int64_t workers) { nodes.engine->set_demand({{{.cpus = 1}, workers}}); }
  std::vector<pid_t> agents() const {
    std::vector<pid_t> agents;
    for (std::size_t i = 0; i < nodes.engine->nodes().size(); ++i) agents.push_back(agent(i));
    return agents;
  }

 private:
  // So that conditions are looked at, too, though nothing happens.
  std::jthread waker_{[this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(10ms)) nodes.engine->wake();
  }};
};

TEST_F(OnDemand, NodesComeForWhatWaitsAndGoWhenTheyHaveNothingToDo) {
  ASSERT_THAT(nodes.engine->nodes(), SizeIs(1));
  EXPECT_TRUE(nodes.engine->follows_demand());
  EXPECT_TRUE(nodes.engine->awaits_nodes());
  EXPECT_EQ(nodes.engine->nodes()[0].resources.labels,
            (std::map<std::string, std::string>{{"group", "many"}, {"zone", "eu"}}));
  const WorkerId busy = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(busy, 1));
  wait_for_workers(100);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 2; }));
  EXPECT_EQ(nodes.provider->requested_nodes(), 3);
  const std::vector<pid_t> processes = agents();
  wait_for_workers(0);
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 2; }));
  EXPECT_THAT(heard.draining, SizeIs(2));
  EXPECT_THAT(heard.draining[0].reason, HasSubstr("nothing has run there for 1 s"));
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", processes[1])));
  nodes.engine->kill(busy);
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 3; }));
  EXPECT_THAT(nodes.engine->nodes(), IsEmpty());
  wait_for_workers(1);  // from nothing
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 3; }));
  const WorkerId next = start(0, many_reports(10));
  ASSERT_TRUE(heard.until([&] { return heard[next].reports.size() == 10U; }));
}

TEST_F(OnDemand, NodesThatComeTooLateAreWithdrawn) {
  nodes.provider->hold_requests();
  wait_for_workers(100);
  ASSERT_TRUE(heard.until([this] { return nodes.provider->requested_nodes() == 3; }));
  wait_for_workers(0);
  ASSERT_TRUE(heard.until([this] { return nodes.provider->withdrawn() == 2; }));
  EXPECT_THAT(heard.joined, IsEmpty());
  nodes.provider->hold_requests(false);
  wait_for_workers(100);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() >= 2; }));
}

TEST_F(OnDemand, ARunThatBeginsAfterAPauseHasANode) {
  const std::filesystem::path seen = directories.make_directory() / "seen";
  std::ofstream(seen) << "this run";
  {
    const engine::cluster::Lease run(*nodes.engine, {}, {seen});
  }
  std::this_thread::sleep_for(1s);
  {
    const engine::cluster::Lease run(*nodes.engine, {}, {seen});
    const WorkerId worker = start(0, many_reports(10));
    ASSERT_TRUE(heard.until_all_exited());
    EXPECT_EQ(heard.exit(worker), engine::conformance::exited_with_0);
    EXPECT_THAT(heard.draining, IsEmpty());
    ASSERT_TRUE(heard.until([this] { return heard.left.size() == 1; }));
  }
  EXPECT_THAT(nodes.engine->nodes(), IsEmpty());
  const engine::cluster::Lease run(*nodes.engine, {}, {seen});
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(1));
}

TEST_F(OnDemand, ARunThatBeginsWhileTheOnlyNodeDrainsHasAnotherOne) {
  const engine::NodeId drained = nodes.engine->nodes().at(0).id;
  {
    const engine::cluster::Lease run(*nodes.engine, {}, {});
    const WorkerId worker = start(0, {report({}), hangs()});
    ASSERT_TRUE(heard_from(worker, 1));
    ::kill(agent(0), SIGTERM);
    ASSERT_TRUE(heard.until([this] { return !heard.draining.empty(); }));
  }
  const engine::cluster::Lease run(*nodes.engine, {}, {});
  ASSERT_THAT(nodes.engine->nodes(), SizeIs(1));
  EXPECT_NE(nodes.engine->nodes()[0].id, drained);
}

TEST_F(OnDemand, NodesFollowDemandAlsoAfterARunThatCouldNotBegin) {
  const std::filesystem::path seen = directories.make_directory() / "seen";
  std::ofstream(seen) << "this run";
  nodes.provider->fail();
  EXPECT_THROW(engine::cluster::Lease(*nodes.engine, {}, {seen}), EngineError);
  const engine::cluster::Lease run(*nodes.engine, {}, {});
  wait_for_workers(100);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 2; }));
}

TEST_F(OnDemand, ANodeThatIsLostComesAgainOnlyIfSomethingWaits) {
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 1; }));
  heard.until([until = std::chrono::steady_clock::now() + 1500ms] { return std::chrono::steady_clock::now() > until; });
  EXPECT_THAT(heard.joined, IsEmpty());
  wait_for_workers(1);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 1; }));
}

TEST_F(OnDemand, WhatCannotHaveANodeEndsWithTheProvidersWords) {
  nodes.provider->refuse();
  const WorkerId busy = start(0, {report({}), hangs()});
  wait_for_workers(1);
  ASSERT_TRUE(heard_from(busy, 1));
  EXPECT_FALSE(heard.until([until = std::chrono::steady_clock::now() + 2s] {
    return std::chrono::steady_clock::now() > until;
  }) && !heard[busy].exits.empty())
      << "others go on";
  nodes.engine->kill(busy);
  EXPECT_THAT([this] { heard.until([] { return false; }); },
              ::testing::ThrowsMessage<EngineError>(HasSubstr("no other one can be had: there are no more")));
}

class LeastOnDemand : public OnDemand {
 protected:
  LeastOnDemand() : OnDemand(2) {}
};

TEST_F(LeastOnDemand, TheLeastAreThereAlways) {
  ASSERT_THAT(nodes.engine->nodes(), SizeIs(2));
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 1; }));
  wait_for_workers(1);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 2; }));
  wait_for_workers(0);
  ASSERT_TRUE(heard.until([this] { return heard.draining.size() == 1 && heard.left.size() == 2; }));
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(2));
}

class StdioOnDemand : public OnDemand {
 protected:
  StdioOnDemand() : OnDemand(0, true) {}
};

TEST_F(StdioOnDemand, NodesComeAndGo) {
  const WorkerId busy = start(0, {report({}), hangs()});
  ASSERT_TRUE(heard_from(busy, 1));
  wait_for_workers(2);
  ASSERT_TRUE(heard.until([this] { return heard.joined.size() == 2; }));
  wait_for_workers(0);
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 2; }));
  nodes.engine->kill(busy);
  ASSERT_TRUE(heard.until_all_exited());
}

std::vector<std::string> after(const std::string& script) {
  return {"/bin/sh", "-c", script + "; exec \"$0\"", std::filesystem::read_symlink("/proc/self/exe")};
}

TEST(StdioNoise, WhatIsPrintedBeforeInitIsSkipped) {
  const Nodes nodes =
      make_nodes(1, {.over_stdio = true, .command = after("echo CDRA; head -c 500000 /dev/zero; printf half")});
  EXPECT_THAT(nodes.engine->nodes(), SizeIs(1));
}

TEST(StdioNoise, TooMuchOfItIsAnErrorThatQuotesIt) {
  EXPECT_THAT([] { make_nodes(1, {.over_stdio = true, .command = after("yes 'epoch 1'")}); },
              ::testing::ThrowsMessage<EngineError>(::testing::AllOf(
                  HasSubstr("it has printed more than 1048576 bytes before cadre::init"), HasSubstr("epoch 1"),
                  HasSubstr("call cadre::init at the beginning of the program"))));
}

// ---- Connections of others

class Visit {
 public:
  explicit Visit(const AgentSettings& settings)
      : tls_(channel::tls().client(settings.certificate)), stream_(tls_->open(connect(settings))) {}

  // Sends bytes; then reads what comes, until the other end closes the connection.
  std::string say(const channel::Bytes& bytes, engine::Engine& engine) {
    std::string heard;
    std::size_t sent = 0;
    const auto until = std::chrono::steady_clock::now() + 30s;
    try {
      while (std::chrono::steady_clock::now() < until) {
        sent += stream_->write(std::span(bytes).subspan(sent));
        std::array<std::byte, 4096> space;
        const std::size_t count = stream_->read(space);
        heard.append(reinterpret_cast<const char*>(space.data()), count);
        engine.wait(1ms);
      }
    } catch (const channel::StreamEnded& end) {
      return heard.empty() ? end.what() : heard;
    }
    return "nothing happened";
  }

 private:
  static base::FileDescriptor connect(const AgentSettings& settings) {
    const std::uint16_t port = engine::cluster::to_addresses(settings.addresses).at(0).port;
    base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  std::unique_ptr<channel::TlsEndpoint> tls_;
  std::unique_ptr<channel::Stream> stream_;
};

class StrangersTest : public ClusterEngineTest {
 protected:
  Hello hello() const {
    const AgentSettings settings = nodes.provider->settings();
    return {.build = engine::cluster::build_id(),
            .version = "0.1.0",
            .token = settings.token,
            .request = settings.request,
            .session = 1,
            .host = "stranger",
            .pid = 1};
  }
  std::string answer_to(const Hello& said) {
    channel::Bytes bytes;
    append(bytes, said);
    return Visit(nodes.provider->settings()).say(bytes, *nodes.engine);
  }
  // The engine goes on as if nobody had come.
  void expect_all_is_well() {
    const WorkerId worker = start(0, many_reports(10));
    ASSERT_TRUE(heard.until_all_exited());
    EXPECT_EQ(heard[worker].reports.size(), 10U);
    EXPECT_THAT(nodes.engine->nodes(), SizeIs(2));
    EXPECT_THAT(heard.joined, IsEmpty());
  }
};

TEST_F(StrangersTest, AnotherTokenIsRefused) {
  Hello said = hello();
  said.token[3] ^= 1;
  EXPECT_THAT(answer_to(said), HasSubstr("its token is not one of this experiment"));
  expect_all_is_well();
}

TEST_F(StrangersTest, AnotherRequestIsRefusedWithTheTokenOfAnother) {
  Hello said = hello();
  said.request = 2;
  EXPECT_THAT(answer_to(said), HasSubstr("its token is not one of this experiment"));
}

TEST_F(StrangersTest, AnotherBuildIsRefusedByName) {
  Hello said = hello();
  said.build = "0123";
  EXPECT_THAT(answer_to(said), HasSubstr("stranger has another build of the program than the controller"));
  expect_all_is_well();
}

TEST_F(StrangersTest, AnotherProtocolIsRefused) {
  Hello said = hello();
  said.protocol = 99;
  EXPECT_THAT(answer_to(said), HasSubstr("it speaks version 99 of the protocol of agents"));
  expect_all_is_well();
}

TEST_F(StrangersTest, AnAgentDoesNotTakeThePlaceOfAnother) {
  EXPECT_THAT(answer_to(hello()), HasSubstr("another agent has its place"));
  expect_all_is_well();
}

TEST_F(StrangersTest, NoiseIsNotAnswered) {
  EXPECT_THAT(Visit(nodes.provider->settings()).say(channel::Bytes(1 << 20, std::byte{7}), *nodes.engine),
              HasSubstr("connection"));
  expect_all_is_well();
}

TEST_F(StrangersTest, OneWhoSaysNothingIsDismissedAfterAWhile) {
  EXPECT_THAT(Visit(nodes.provider->settings()).say({}, *nodes.engine), HasSubstr("connection"));
  expect_all_is_well();
}

// Counts turns.
class TurnCounter final : public engine::cluster::FilePeer {
 public:
  void arrived(engine::NodeId, const engine::cluster::Piece&) override {}
  void arrived(engine::NodeId, const engine::cluster::Printed&) override {}
  void arrived(engine::NodeId, const engine::cluster::TriedStorage&) override {}
  void arrived(engine::NodeId, const engine::cluster::FilesStored&) override {}
  void arrived(engine::NodeId, const engine::cluster::FilesLoaded&) override {}
  void send_more() override { ++turns; }

  int turns = 0;
};

TEST_F(StrangersTest, OneForWhomThereIsNoDescriptorWaitsAndIsNotAskedForAllTheTime) {
  Visit visit(nodes.provider->settings());
  TurnCounter counter;
  nodes.engine->set_file_peer(&counter);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < 1s) nodes.engine->wait(1s);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  nodes.engine->set_file_peer(nullptr);
  EXPECT_LT(counter.turns, 100);
  Hello said = hello();
  said.token[3] ^= 1;
  channel::Bytes bytes;
  append(bytes, said);
  EXPECT_THAT(visit.say(bytes, *nodes.engine), HasSubstr("its token is not one of this experiment"));
  expect_all_is_well();
}

TEST_F(StrangersTest, AClientTrustsTheControllersCertificateOnly) {
  AgentSettings settings = nodes.provider->settings();
  settings.certificate = channel::tls().make_identity().certificate;
  channel::Bytes bytes;
  append(bytes, hello());
  EXPECT_THAT(Visit(settings).say(bytes, *nodes.engine), HasSubstr("certificate verify failed"));
  expect_all_is_well();
}

// Refuses sockets of IPv6 to this thread and what it starts, as a kernel without it. Returns false if that fails.
bool do_without_ipv6() {
  std::array<sock_filter, 6> filter = {
      {{.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)},
       {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 3, .k = SYS_socket},
       {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, args)},
       {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = AF_INET6},
       {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ERRNO | EAFNOSUPPORT},
       {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW}}};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ClusterEngineWithoutIpv6, NodesConnect) {
  bool is_without = false;
  std::string fault;
  std::size_t there = 0;
  std::thread([&] {
    is_without = do_without_ipv6() && !base::FileDescriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!is_without) return;
    try {
      there = make_nodes(1).engine->nodes().size();
    } catch (const Error& error) {
      fault = error.what();
    }
  }).join();
  if (!is_without) GTEST_SKIP() << "calls cannot be refused to a thread here";
  EXPECT_EQ(fault, "");
  EXPECT_EQ(there, 1U);
}

TEST(ClusterEngineErrors, AnAgentThatEndsBeforeItConnectsIsAnError) {
  EXPECT_THAT(
      [] {
        ClusterEngine(std::make_unique<Processes>(),
                      ClusterOptions{.requests = {{.id = 1}}, .start = {.command = {"/bin/false"}}});
      },
      ::testing::ThrowsMessage<EngineError>(HasSubstr("a node cannot be had: an agent has ended: exit code 1")));
}

// Sends SIGTERM to this process a moment after it has begun to handle it.
std::jthread interrupt_soon(std::chrono::milliseconds moment = 50ms) {
  return std::jthread([moment] {
    struct sigaction handled{};
    do {
      std::this_thread::sleep_for(1ms);
      ::sigaction(SIGTERM, nullptr, &handled);
    } while (handled.sa_handler == SIG_DFL);
    std::this_thread::sleep_for(moment);
    ::kill(::getpid(), SIGTERM);
  });
}

TEST_F(ClusterEngineTest, ASignalInterruptsAlsoWhileNodesAreAskedWhatTheySee) {
  const std::filesystem::path here = directories.make_directory() / "mark";
  std::ofstream(here) << "of this run";
  const pid_t stopped = agent(0);
  ::kill(stopped, SIGSTOP);
  const std::jthread signal = interrupt_soon();
  EXPECT_THROW(nodes.engine->use_nodes_that_see({here}), Interrupted);
  ::kill(stopped, SIGCONT);
  nodes.engine->use_nodes_that_see({});
}

TEST_F(OnDemand, ANodeThatARunAwaitsAtItsBeginningIsNotWithdrawn) {
  ::kill(agent(0), SIGKILL);
  ASSERT_TRUE(heard.until([this] { return heard.left.size() == 1; }));
  nodes.provider->hold_requests();
  const std::jthread signal = interrupt_soon(1500ms);
  EXPECT_THROW(engine::cluster::Lease(*nodes.engine, {}, {}), Interrupted);
  EXPECT_EQ(nodes.provider->withdrawn(), 0);
}

// As Slurm does with all processes of a job: some agents end before the controller has its signal.
TEST(ClusterEngineErrors, ASignalToAllInterruptsAlsoIfItComesToAgentsFirst) {
  const std::jthread signal = interrupt_soon();
  EXPECT_THROW(ClusterEngine(std::make_unique<Processes>(),
                             ClusterOptions{.requests = {{.id = 1}}, .start = {.command = {"/bin/false"}}}),
               Interrupted);
}

}  // namespace
}  // namespace cadre::system_tests

namespace cadre::engine::conformance {

INSTANTIATE_TYPED_TEST_SUITE_P(Agents, EngineConformance, system_tests::Subject<system_tests::make_agents>);
INSTANTIATE_TYPED_TEST_SUITE_P(AgentsOverStdio, EngineConformance,
                               system_tests::Subject<system_tests::make_agents_over_stdio>);
INSTANTIATE_TYPED_TEST_SUITE_P(BrokenConnections, EngineConformance,
                               system_tests::Subject<system_tests::make_agents_with_broken_connections>);

}  // namespace cadre::engine::conformance
