// The interface to whoever has machines: Slurm, another cluster engine, or this machine itself. A provider starts the
// program as an agent (agent.h) on nodes that it is asked for, and gives nodes back.
//
// A node is there when its agent has connected, and gone when that connection is given up. The events of a provider
// only explain why a node does not come, or where it went: an engine's word is not the truth about work.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::engine::cluster {

// Nodes of one kind: what each of them is to have, and options in the words of the provider, such as
// {"partition", "a100"}.
struct NodeRequest {
  std::uint64_t id = 0;  // assigned by the caller; never reused
  std::string group = {};
  std::int64_t nodes = 1;
  bool all_or_none = false;  // the nodes are of use only together
  double cpus = 0;           // of each node; 0: whatever a node has
  std::int64_t gpus = 0;
  std::map<std::string, std::string> options = {};
  bool operator==(const NodeRequest&) const = default;
};

// Label that a node has, with its group as the value, unless the program says another one.
inline constexpr const char* group_label = "group";

// The program that runs on each node. Variables that all agents of a request share; a node's own number among them is
// added by what starts it (ordinal.h).
struct AgentStart {
  std::vector<std::string> command = {};              // program and arguments
  std::map<std::string, std::string> variables = {};  // added to the environment; secret, so never in a command line
  std::filesystem::path directory = {};               // working directory
  bool outlives = false;  // true: agents go on when this process is killed, for claim() in another one
  std::string mark = {};  // secret text among the variables, by which a process is known again
  // For what an agent prints on standard error, where nobody would see it otherwise: with "_" and the ordinal behind
  // it, or nothing where the nodes are started together. Empty, and where the node cannot write it: nowhere.
  std::filesystem::path log = {};
  // true: an agent's session with the controller is in its standard input and output, or in those of what starts it
  // elsewhere; see Provider::take_connections().
  bool over_stdio = false;
};

// A request of which a process that was killed had nodes, or waited for them.
struct KeptRequest {
  NodeRequest request = {};
  std::set<std::int64_t> ended = {};  // ordinals of nodes that are gone, and were asked for again
  bool operator==(const KeptRequest&) const = default;
};
// By what a provider has a node: a process of this machine, which is the agent or runs it elsewhere, or a job.
struct NodeProcess {
  std::uint64_t request = 0;
  std::optional<std::int64_t> ordinal = {};  // of its node; empty: it has all nodes of the request
  std::int64_t pid = 0;                      // 0: it is no process
  std::string mark = {};                     // as in AgentStart
  std::string job = {};                      // empty: it is none, or known by its name (KeptNodes::jobs)
  std::string host = {};                     // the machine, where the provider chooses it
  bool operator==(const NodeProcess&) const = default;
};

// The request waits for nodes.
struct Queued {
  std::uint64_t request = 0;
  std::string reason = {};                    // in the provider's words
  std::optional<double> expected_start = {};  // seconds since 1970
  std::optional<std::int64_t> ordinal = {};   // the node that waits; empty: all that are not there
};
// The request will never be met.
struct Refused {
  std::uint64_t request = 0;
  std::string reason = {};
};
// An agent has ended, or was ended.
struct AgentEnded {
  std::uint64_t request = 0;
  std::optional<std::int64_t> ordinal = {};  // of the node in its request, from 0; empty: all of them
  std::string reason = {};
  // false: only what had started it elsewhere has ended, and it may run on for a while.
  bool is_certain = true;
};
// Ends of a node that differ by less are one limit, told twice.
inline constexpr std::chrono::seconds same_limit{1};
// A node will end at this time, whatever runs there; empty: no time is known. Comes again when that changes.
struct NodeEnds {
  std::uint64_t request = 0;
  std::optional<std::int64_t> ordinal = {};  // empty: all nodes of the request
  std::optional<std::chrono::steady_clock::time_point> at = {};
};
using ProviderEvent = std::variant<Queued, Refused, AgentEnded, NodeEnds>;

// A connection to an agent that was started with over_stdio.
struct AgentConnection {
  std::uint64_t request = 0;
  std::int64_t ordinal = 0;
  base::FileDescriptor socket = {};
};

// Used by one thread. Nothing blocks longer than it takes to start a process.
class Provider {
 public:
  virtual ~Provider() = default;

  // Requests nodes; returns at once. What goes wrong comes as an event.
  virtual void request(const NodeRequest& request, const AgentStart& start) = 0;
  // Gives all nodes of a request back, or one of them, also those that are not there yet. May be called again. Nodes of
  // an all_or_none request may be kept until all of them are given back.
  virtual void release(std::uint64_t request) = 0;
  virtual void release(std::uint64_t request, std::int64_t ordinal) = 0;
  // For a controller that continues after one that was killed: takes over the nodes of these requests, which that one
  // made, and gives back all others that it had. `processes`: as that one returned them. Before any request().
  virtual void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) = 0;
  // Returns the processes and jobs that claim() needs; they change with requests, and with events.
  virtual std::vector<NodeProcess> processes() const { return {}; }
  // Returns false if an agent may run on after release(), until its controller tells it to leave or it has had none for
  // as long as it stays.
  virtual bool ends_agents() const { return true; }
  // Returns true while whoever has the machines was not told yet of everything that was given back: take_events() goes
  // on with that.
  virtual bool is_giving_back() const { return false; }

  // Returns the connections to agents that were started since the last call: in request(), or in take_events().
  virtual std::vector<AgentConnection> take_connections() { return {}; }

  // Returns when all nodes end together, also those that are still to be requested; empty: each has an end of its own,
  // or none.
  virtual std::optional<std::chrono::steady_clock::time_point> all_end() const { return std::nullopt; }

  // Says which agents are connected now, by request and ordinal; before take_events().
  virtual void note_connected(const std::set<std::pair<std::uint64_t, std::int64_t>>& /*agents*/) {}
  // Asks as soon as possible what became of the nodes, and when they end.
  virtual void look_soon() {}
  // Returns what has happened since the last call, without waiting.
  virtual std::vector<ProviderEvent> take_events() = 0;
  // Returns when take_events() should be called next; empty: when fds() are readable.
  virtual std::optional<std::chrono::steady_clock::time_point> next_look() const = 0;
  // Returns descriptors that are readable when take_events() may return something.
  virtual std::vector<int> fds() const = 0;
};

}  // namespace cadre::engine::cluster
