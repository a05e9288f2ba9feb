// Nodes that commands of the user's start (NodeCommands): by a remote shell, where an agent runs as long as the
// command, or by a batch system, which queues it. What a batch system has queued lives on when this process ends.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/command.h"
#include "engine/cluster/node_commands.h"

namespace cadre::engine::cluster {

// A command for each node, so that each can be given back; one at a time lists jobs: every 5 s in the minute after a
// change, else every 30 s.
class NodesByCommand final : public Provider {
 public:
  using Place = std::pair<std::uint64_t, std::int64_t>;  // a request, and an ordinal

  // Time without an answer about a job after which one whose agent is not connected counts as ended.
  static constexpr std::chrono::minutes unanswered_end{10};

  // `jobs` is common to the names of all nodes; `own` is the environment of this process. The commands have no faults.
  NodesByCommand(NodeCommands commands, std::string jobs, Variables own,
                 std::chrono::milliseconds patience = unanswered_end);

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) override;
  std::vector<NodeProcess> processes() const override;
  // A remote shell that ends leaves what it runs alone.
  bool ends_agents() const override { return has_queue(commands_) || !commands_.cancel.empty(); }
  bool is_giving_back() const override;
  std::vector<AgentConnection> take_connections() override { return std::exchange(connections_, {}); }
  void note_connected(const std::set<Place>& agents) override { connected_ = agents; }
  void look_soon() override;
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override;

 private:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  struct Node {
    NodeRequest request = {};
    AgentStart start = {};
    std::string host = {};  // empty: it needs none, or waits for one
    std::string job = {};   // its id; empty: not queued yet, or there is no queue
    std::unique_ptr<Command> submit = {};
    TimePoint submitted = {};
    std::string told = {};    // the last Queued event
    std::int64_t missed = 0;  // answers without it, in a row
    // The beginning of the first list in a row that was no answer about it.
    std::optional<TimePoint> unanswered_since = {};
    bool is_released = false;
    TimePoint released = {};
    bool has_ended = false;
    std::unique_ptr<Command> cancel = {};
    TimePoint next_cancel = TimePoint::max();  // to start that command
    bool is_cancelled = false;                 // the command has ended
    TimePoint cancelled = {};                  // then
  };

  // A list of jobs.
  struct Listing {
    std::string printed = {};
    std::string errors = {};
    bool is_whole = false;  // it has succeeded
    bool has_some = false;  // it has lines of jobs of this program, and its end
  };

  void begin(const Place& place, Node& node);
  std::string free_host(const Node& node) const;
  void look(const Place& place, Node& node);
  void look_at_agent(const Place& place, Node& node);
  void look_at_submission(const Place& place, Node& node);
  void cancel(const Place& place, Node& node);
  void look_at_cancellation(const Place& place, Node& node);
  bool is_to_be_cancelled(const Node& node) const;
  void look_at_list();
  void compare(const Place& place, Node& node, const Listing& list);
  void end(const Place& place, Node& node, const std::string& reason, bool is_certain = true);
  void tell_waiting(const Place& place, Node& node, const std::string& why);
  void give_back(const Place& place, Node& node);
  std::unique_ptr<Command> run(const Words& command, const Place& place, const Node& node) const;
  bool is_listing_due() const;

  NodeCommands commands_;
  std::string jobs_;
  Variables own_;
  std::chrono::milliseconds patience_;
  std::set<Place> connected_ = {};
  std::map<Place, Node> nodes_ = {};
  std::map<std::string, TimePoint> last_used_ = {};  // hosts without a node
  std::unique_ptr<Command> list_ = {};
  TimePoint listed_ = {};  // when that was begun last
  TimePoint next_list_ = TimePoint::max();
  TimePoint changed_ = {};
  std::vector<AgentConnection> connections_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
