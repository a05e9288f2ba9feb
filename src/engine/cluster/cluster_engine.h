// Workers on the nodes of a cluster: an engine whose calls go to an agent on each node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/pulse.h"
#include "channel/link.h"
#include "channel/patience.h"
#include "channel/poller.h"
#include "channel/tls.h"
#include "engine/cluster/dialler.h"
#include "engine/cluster/handshake.h"
#include "engine/cluster/kept_nodes.h"
#include "engine/cluster/messages.h"
#include "engine/cluster/node_requests.h"
#include "engine/cluster/pool.h"
#include "engine/cluster/provider.h"
#include "engine/cluster/stdio.h"
#include "engine/engine.h"
#include "engine/interrupts.h"

namespace cadre::engine::cluster {

// A group that has more nodes while there is work for them.
struct OnDemand {
  std::int64_t least = 0;                         // nodes that are there always
  std::string accelerator_type = {};              // of their GPUs; empty: unknown
  std::chrono::steady_clock::duration linger{0};  // how long another one may have nothing to do
};

struct ClusterOptions {
  std::vector<NodeRequest> requests = {};  // their ids are assigned by the engine
  // Limits of the groups that follow demand (see Pool), by name. No other request has a name that is here, and a
  // request for such a group asks for the most nodes that it may have. One node of the first request is asked for at
  // the beginning in any case.
  std::map<std::string, OnDemand> on_demand = {};
  std::map<std::string, double> prices = {};  // of a node for an hour, by group; nothing if it is not here
  AgentStart start = {};                      // without the agent's settings
  // IP addresses of this machine by which nodes reach it. Empty: all but those of the loopback device.
  std::vector<std::string> addresses = {};
  // How long a node may be cut off before it is given up. At least 25 s: its agent ends its workers after 20.
  std::chrono::seconds patience{30};
  // Directory of the run that is to find the nodes again after this process was killed; empty: nobody finds them.
  std::filesystem::path directory = {};
  // Says whose the nodes are, and how their jobs are called: see there. The engine fills in the rest.
  KeptNodes owner = {};
  std::optional<KeptNodes> kept = {};  // what a process that was killed has left in the directory
  // How long agents wait for who continues after this process; not over standard streams (AgentStart::over_stdio).
  std::chrono::duration<double> stays{0};
  // How long before its time limit a node is drained; at most half of the time that it had left when it joined.
  std::chrono::duration<double> drain_before{120};
  // false: agents do not end when this process is silent, and it may be for long: between turns the time stands still
  // after which nodes are given up (AgentSettings::ends_by_itself).
  bool ends_agents = true;
};

// Takes part in the turns of an engine, for files that it sends to nodes and gets from them (carrier.h).
class FilePeer {
 public:
  virtual ~FilePeer() = default;
  virtual void arrived(NodeId node, const Piece& piece) = 0;
  virtual void arrived(NodeId node, const Printed& printed) = 0;
  virtual void arrived(NodeId node, const TriedStorage& tried) = 0;
  virtual void arrived(NodeId node, const FilesStored& stored) = 0;
  virtual void arrived(NodeId node, const FilesLoaded& loaded) = 0;
  // Is called before the engine waits: may send while a node has room.
  virtual void send_more() = 0;
};

// Used by one thread at a time. Gives all nodes back when destroyed, which ends what runs there.
class ClusterEngine final : public Engine {
 public:
  // Requests the nodes and waits until one is there; then for others, ten seconds, but only one if all of those wait in
  // a queue. Those that come later join, and one whose agent ends is requested again. Nodes of an earlier process are
  // awaited for as long as they may run its workers, at most 25 s. Says on standard error what it waits for. Throws
  // EngineError if the provider refuses, or if an agent ends before any has connected, and Interrupted after a signal
  // to end (engine/interrupts.h); nodes are given back then.
  ClusterEngine(std::unique_ptr<Provider> provider, ClusterOptions options);
  ~ClusterEngine() override;

  // Without those that drained before the run has begun.
  std::vector<Node> nodes() const override;
  // Returns them as the last call of use_nodes_that_see() found them.
  std::string blind_nodes() const override { return blind_nodes_; }
  bool follows_demand() const override { return pool_.follows_demand(); }
  void set_demand(std::vector<Demand> demand) override;
  Resources resources() const override;
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  void reply(WorkerId worker, const channel::StoreReply& reply) override;
  void reply(WorkerId worker, const channel::Reply& reply) override;
  void kill(WorkerId worker) override;
  // Throws EngineError if all nodes are gone and the provider has no others.
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;
  // Not empty once all nodes drain because their common time limit comes, and nothing runs there any more or the last
  // quarter of that time has begun.
  std::string closing() const override { return closing_; }
  void wake() noexcept override;
  Clock::time_point now() const override { return Clock::now(); }
  double wall_seconds() const override;
  Clock::duration stopped() const override { return pulse_.stopped(); }

  // Returns true if there may be more nodes than are there.
  bool awaits_nodes() const { return nodes().size() < wanted_; }

  // Reserve all nodes for a run; claim() returns false if another one has them. Any thread.
  bool claim() { return !claimed_.exchange(true); }
  void release() { claimed_ = false; }
  // Keeps the nodes in the directory of the run that has claimed them, whose lock this process holds, and in no other;
  // empty: in none. Does nothing for an engine that was made without a directory.
  void keep_in(const std::filesystem::path& directory);
  // Call when a run begins. Between runs nobody has used the nodes, and all on demand may have gone: then one is
  // requested and awaited. Throws as the constructor does.
  void begin_run();
  // From now on, only nodes are used that see the first of these files that all present ones see, with what it holds
  // here; returns that file. Each lies in a directory in which the run can work, and belongs to this run only. Nodes
  // that join later and do not see it are given back, with a message. None of them, or none that all nodes see: any
  // node is used. Throws StorageError, and Interrupted after a signal to end.
  std::filesystem::path use_nodes_that_see(const std::vector<std::filesystem::path>& files);
  // For files; `peer` must live until it is replaced, by null in the end.
  void set_file_peer(FilePeer* peer) { file_peer_ = peer; }
  // Returns a node's own directory; empty if it has none, or has left.
  std::filesystem::path own_directory_of(NodeId node) const;
  // Returns true if so little waits to be sent to a node that a Piece does not keep other messages waiting.
  bool has_room(NodeId node) const;
  // Do nothing if the node has left.
  void send(NodeId node, const Piece& piece);
  template <class Message>
  void send(NodeId node, const Message& message);  // Fetch, Move, Drop, UseStorage, StoreFiles or LoadFiles
  // Kills all workers and waits until they have ended, at most ten seconds. Drops their events.
  void end_workers();

  // For tests: breaks the connection to a node, as a network does; returns the process of its agent.
  void break_connection(NodeId node);
  std::int64_t agent_process(NodeId node) const { return members_.at(node).hello.pid; }

 private:
  using TimePoint = Clock::time_point;
  using Place = NodeRequests::Place;

  // A node whose agent has connected.
  struct Member {
    Node node;
    Hello hello;  // without the token
    std::unique_ptr<channel::Link> link;
    std::set<WorkerId> workers = {};  // those that have not ended
    TimePoint joined = {};
    TimePoint idle_since = {};                                    // unless it has workers
    bool has_ended = false;                                       // true: the provider says so
    bool is_end_certain = false;                                  // see AgentEnded
    bool is_draining = false;                                     // true: it leaves when no worker is left
    bool is_dismissed = false;                                    // true: it was told to leave
    bool has_left = false;                                        // true: it has heard that
    bool is_announced = true;                                     // false: the run does not know of it
    std::map<std::filesystem::path, std::string> blindness = {};  // why it does not see a mark; "": it does
    bool is_asked_about = false;  // true: since its connection broke, the provider was asked what became of it
    // When it was to be drained as the provider was asked for its time limit again.
    std::optional<TimePoint> asked_for_limit = {};
    Place place() const { return {hello.request, hello.ordinal}; }
  };
  // A file that nodes must see, and what it holds.
  struct Mark {
    std::filesystem::path file;
    std::uint64_t checksum = 0;
  };
  // A connection whose other end has not greeted yet.
  struct Visitor {
    std::unique_ptr<channel::Stream> stream;
    channel::Bytes in = {};
    TimePoint until = {};
    std::optional<MarkSearch> noise = {};  // comes first, over standard streams
    std::optional<Place> place = {};       // of who must be there
  };

  void leave();
  bool listen(std::uint16_t port);
  std::string take_over(const KeptNodes& kept);
  void claim(const KeptNodes& kept);
  void begin();
  KeptNodes kept() const;
  void keep();
  void keep_outstanding();
  bool ends_agents_only_by_word() const;
  bool may_run_on(const Member& member) const;
  std::filesystem::path log_of(std::uint64_t request) const;
  std::string text_of(const AgentEnded& ended) const;
  std::vector<WaitingNodes> waiting() const;
  void tell_how_long_to_stay(Member& member);
  std::vector<std::string> own_addresses() const;
  std::vector<Address> dialled_addresses() const;
  void request_nodes(const Continuation& continuation);
  void request_node(NodeRequest wanted);
  std::size_t usable_nodes() const;
  void announce_usable_nodes();
  void await_nodes(const Interrupts& interrupts);
  std::string awaited_text(Clock::duration waited) const;
  void agent_ended(const AgentEnded& ended);
  void cannot_have(const std::string& reason);
  void ask_again(TimePoint now);
  std::set<Place> places() const;
  bool has_hope() const;
  bool follows_demand(const std::string& group) const { return options_.on_demand.contains(group); }
  double price_in(const std::string& group) const;
  std::size_t index_of(const std::string& group) const;
  std::vector<PoolNodes> pool_nodes() const;
  void follow_demand(TimePoint now);
  void give_back(Member& member, std::string reason);
  void withdraw(const std::string& group, std::int64_t nodes);
  void give_up_group(std::uint64_t request);
  bool is_stuck() const;
  void accept_visitors();
  void accept_started_agents();
  void refuse_started_agent(const Visitor& visitor, const std::string& reason);
  void read_from_visitor(int descriptor);
  void admit(Visitor visitor, const Hello& hello);
  Welcome judge(const Visitor& visitor, const Hello& hello) const;
  bool has_right(const Visitor& visitor, const Hello& hello) const;
  Member& join(const Hello& hello);
  Member* find_member(std::uint64_t request, std::int64_t ordinal);
  Member* member_of(WorkerId worker);
  template <class Message>
  void tell(WorkerId worker, const Message& message);
  void take(NodeId node, const channel::LaneMessage& message);
  void take(Member& member, const Told& told);
  void take(Member& member, Exited& exited);
  void take(Member& member, const Left& left);
  void take(Member& member, Draining& draining);
  void take(Member& member, const Saw& saw);
  template <class OfFiles>
  void take(Member& member, const OfFiles& message);  // Piece, Printed, TriedStorage, FilesStored or FilesLoaded
  void look(Member& member);
  bool has_looked(const Member& member) const;
  std::string blind_to(const Mark& mark) const;
  void choose_mark();
  void dismiss_blind(Member& member, const Mark& mark);
  void drain(Member& member, std::optional<double> seconds_left, std::string reason);
  void give_up(NodeId node, const std::string& reason);
  void watch_provider();
  void take_provider_events();
  Clock::duration drain_time(TimePoint joined, TimePoint end) const;
  std::optional<TimePoint> ends_at(const Member& member) const;
  std::optional<TimePoint> next_drain_step(const Member& member) const;
  void drain_in_time(TimePoint now);
  bool no_node_comes(TimePoint now) const;
  std::optional<TimePoint> closing_at() const;
  std::optional<TimePoint> given_up_at(const Member& member) const;
  std::optional<TimePoint> next_deadline() const;
  void handle_time(TimePoint now);
  void dismiss(Member& member);
  void flush();
  void wait_for_arrivals(std::optional<std::chrono::nanoseconds> timeout);
  void turn(std::optional<std::chrono::nanoseconds> timeout);

  std::unique_ptr<Provider> provider_;
  ClusterOptions options_;
  channel::Poller poller_;
  std::optional<channel::Poller> provider_poller_ = {};
  base::FileDescriptor wake_;      // an eventfd
  base::FileDescriptor listener_;  // the port that agents dial
  std::optional<TimePoint> accepts_again_ = {};
  std::uint16_t port_ = 0;
  std::string secret_;
  channel::Identity identity_;
  std::unique_ptr<channel::TlsEndpoint> tls_;
  std::map<int, Visitor> visitors_ = {};
  std::map<NodeId, Member> members_ = {};
  std::unordered_map<WorkerId, NodeId> workers_ = {};
  std::map<WorkerId, std::string> faults_ = {};  // of workers that are killed because of a message that is none
  std::vector<Event> events_ = {};
  NodeRequests requests_ = {};
  // Nodes of an earlier process, and their names, that were there and may still run its workers.
  std::map<Place, std::string> outstanding_ = {};
  // Nodes whose agents have connected, and are being ended by the provider.
  std::set<Place> given_up_ = {};
  std::vector<Mark> marks_ = {};  // the one that nodes must see; while is_beginning_, all that they are asked about
  std::string blind_nodes_ = {};
  bool is_beginning_ = false;  // true: begin_run() or use_nodes_that_see() has not returned
  FilePeer* file_peer_ = nullptr;
  std::filesystem::path kept_in_ = {};
  bool is_keeping_due_ = false;
  bool has_said_it_keeps_nothing_ = false;
  std::size_t wanted_ = 0;  // nodes, at most
  std::size_t first_ = 0;   // those of them that are requested at the beginning
  Pool pool_ = {};
  bool has_pool_changed_ = true;  // true: what the pool decides on, since it has
  std::optional<TimePoint> pool_decided_ = {};
  std::optional<TimePoint> stuck_since_ = {};
  TimePoint last_turn_ = Clock::now();
  TimePoint listens_since_ = last_turn_;  // without a pause in which a connection would have ended
  std::string refusal_ = {};              // why a node will not come
  bool has_begun_ = false;                // true: there was a node
  std::optional<TimePoint> first_joined_ = {};
  std::string closing_ = {};
  NodeId last_node_ = 0;
  bool woken_ = false;
  bool expects_soon_ = false;  // true: a worker was told something since the last turn
  channel::Patience patience_{std::chrono::microseconds(100)};
  bool is_leaving_ = false;  // true: all nodes are given back, and none is asked for
  std::atomic<bool> claimed_ = false;
  channel::Bytes bytes_ = {};
  base::Pulse pulse_;
};

}  // namespace cadre::engine::cluster
