// Workers on the nodes of a cluster: an engine whose calls go to an agent on each node.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "base/pulse.h"
#include "channel/link.h"
#include "channel/poller.h"
#include "channel/tls.h"
#include "engine/cluster/handshake.h"
#include "engine/cluster/messages.h"
#include "engine/cluster/provider.h"
#include "engine/engine.h"

namespace cadre::engine::cluster {

struct ClusterOptions {
  std::vector<NodeRequest> requests = {};
  AgentStart start = {};  // without the agent's settings
  // IP addresses of this machine by which nodes reach it. Empty: all but those of the loopback device.
  std::vector<std::string> addresses = {};
  // How long a node may be cut off before it is given up. At least 25 s: its agent ends its workers after 20.
  std::chrono::seconds patience{30};
};

// Used by the thread that made it. Gives all nodes back when destroyed, which ends what runs there.
class ClusterEngine final : public Engine {
 public:
  // Requests the nodes, and waits until all are there. Throws EngineError if the provider refuses, or if an agent ends
  // before it has connected.
  ClusterEngine(std::unique_ptr<Provider> provider, ClusterOptions options);
  ~ClusterEngine() override;

  std::vector<Node> nodes() const override;
  Resources resources() const override;
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  void reply(WorkerId worker, const channel::StoreReply& reply) override;
  void reply(WorkerId worker, const channel::Reply& reply) override;
  void kill(WorkerId worker) override;
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;
  void wake() noexcept override;
  Clock::time_point now() const override { return Clock::now(); }
  double wall_seconds() const override;
  Clock::duration stopped() const override { return pulse_.stopped(); }

  // For tests: breaks the connection to a node, as a network does; returns the process of its agent.
  void break_connection(NodeId node);
  std::int64_t agent_process(NodeId node) const { return members_.at(node).hello.pid; }

 private:
  using TimePoint = Clock::time_point;

  // A node whose agent has connected.
  struct Member {
    Node node;
    Hello hello;  // without the token
    std::unique_ptr<channel::Link> link;
    std::set<WorkerId> workers = {};  // those that have not ended
    bool has_ended = false;           // true: the provider says so
  };
  // A connection whose other end has not greeted yet.
  struct Visitor {
    std::unique_ptr<channel::Stream> stream;
    channel::Bytes in = {};
    TimePoint until = {};
  };

  void listen();
  std::vector<std::string> own_addresses() const;
  void request_nodes();
  void await_nodes();
  void accept_visitors();
  void read_from_visitor(int descriptor);
  void admit(Visitor visitor, const Hello& hello);
  Welcome judge(const Hello& hello) const;
  Member& join(const Hello& hello);
  Member* find_member(std::uint64_t request, std::int64_t ordinal);
  Member* member_of(WorkerId worker);
  template <class Message>
  void tell(WorkerId worker, const Message& message);
  void take(NodeId node, const channel::LaneMessage& message);
  void take(Member& member, Received& received);
  void take(Member& member, Exited& exited);
  void take(Member& member, Draining& draining);
  void give_up(NodeId node, const std::string& reason);
  void take_provider_events();
  std::optional<TimePoint> given_up_at(const Member& member) const;
  std::optional<TimePoint> next_deadline() const;
  void handle_time(TimePoint now);
  void flush();
  void turn(std::optional<std::chrono::nanoseconds> timeout);

  std::unique_ptr<Provider> provider_;
  ClusterOptions options_;
  channel::Poller poller_;
  base::FileDescriptor wake_;      // an eventfd
  base::FileDescriptor listener_;  // the port that agents dial
  std::uint16_t port_ = 0;
  std::string secret_;
  channel::Identity identity_;
  std::unique_ptr<channel::TlsEndpoint> tls_;
  std::map<int, Visitor> visitors_ = {};
  std::map<NodeId, Member> members_ = {};
  std::unordered_map<WorkerId, NodeId> workers_ = {};
  std::vector<Event> events_ = {};
  std::vector<std::string> refusals_ = {};  // of requests, and ends of agents that never connected
  NodeId last_node_ = 0;
  bool woken_ = false;
  channel::Bytes bytes_ = {};
  base::Pulse pulse_;
};

}  // namespace cadre::engine::cluster
