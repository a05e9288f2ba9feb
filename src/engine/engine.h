// The interface that starts workers, carries their messages and reports their ends. It is the controllers' only
// access to processes, machines and time. Every engine passes the same conformance suite
// (tests/system/engine_conformance.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cadre/resources.h"
#include "channel/message.h"
#include "resources/node.h"
#include "storage/uri.h"

namespace cadre::engine {

// Assigned by the controller; never reused with the same engine.
using WorkerId = std::uint64_t;

using resources::Node;
using resources::NodeId;

struct WorkerSpec {
  channel::Assignment assignment;
  NodeId node = 0;  // on which it runs
  // Must exist, unless carries_files(); the worker's output is appended to the files "stdout" and "stderr" in it.
  std::filesystem::path directory = {};
  // Directories and files that it reads, by their paths below directory_of_workers(): see Engine::bring().
  std::vector<std::string> needs = {};
  double cpus = 1;  // the worker's share; sets the thread count of numerical libraries (at least 1)
  // Private memory in bytes that each process of the worker may allocate beyond its memory at the start. Empty: no
  // limit.
  std::optional<std::uint64_t> memory_bytes = {};
  // True if the worker may start workers itself, which end with it: worker::make_root_engine() then works there too.
  bool starts_workers = false;
};

// The way a process ended.
struct Exit {
  // not_started: no process, or its setup failed; lost: the engine that ran it is gone; node_lost: the node is, and the
  // engine goes on
  enum class Kind { code, signal, not_started, lost, node_lost };
  Kind kind = Kind::lost;
  int value = 0;  // the exit code or the signal's number
  // More about the end, such as why the worker did not start or why the engine ended it; often empty.
  std::string detail = {};
  // The last lines of stderr and the back trace, formatted for messages, of a worker that ended by itself before its
  // last message; often empty.
  std::string output = {};
  bool operator==(const Exit&) const = default;
};
// Returns "exited with code 3", "was ended by signal 11 (SIGSEGV)", "could not be started", "was lost with the engine
// that ran it" or "was lost with its node", followed by ": " and the detail if there is one.
std::string to_string(const Exit& exit);
// Returns "\nThe last lines of its stderr:\n..." to append to that text; empty if there was no output.
std::string output_text(const Exit& exit);

// A message arrived.
struct Received {
  WorkerId worker = 0;
  channel::Message message = {};
};
// The process and its whole process group are gone. Comes once for each started worker, after all its messages.
struct Exited {
  WorkerId worker = 0;
  Exit exit = {};
};
// Engine::fetch has brought a directory, or cannot have it.
struct Fetched {
  NodeId node = 0;
  std::string from = {};
  std::string fault = {};  // empty: it is there
};
// A node can run workers from now on.
struct NodeJoined {
  Node node = {};
};
// A node will go: no worker is to be started there any more. Those that run there may end in order.
struct NodeDraining {
  NodeId node = 0;
  std::optional<double> seconds_left = {};  // until it goes, whatever runs; empty: unknown
  std::string reason = {};                  // for people
};
// A node is gone. Comes after the Exited events of all its workers.
struct NodeLeft {
  NodeId node = 0;
  std::string reason = {};  // for people
};
using Event = std::variant<Received, Exited, Fetched, NodeJoined, NodeDraining, NodeLeft>;

// Workers that wait because no node has room for them.
struct Demand {
  Resources worker = {};  // of each
  std::int64_t workers = 1;
  bool operator==(const Demand&) const = default;
};

// The storage where a run is published, for nodes that do not see the run's directory.
struct RunStorage {
  storage::Uri uri = {};
  // The name of a file there that only this run's controller has written, and what it holds: a node that finds it
  // reaches the same storage.
  std::string file = {};
  std::string contents = {};
  // Returns the place there for a directory that a worker reports, by its path below the run's. No two reports have
  // one; parts of one checkpoint may have the same, and differ in their part.
  struct Place {
    std::string directory = {};
    std::string part = {};  // the directory in it that the files are in; empty: that one itself
  };
  std::function<Place(const std::string& reported)> place_of = {};
};

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Engine() = default;

  // Returns the nodes whose NodeJoined events wait() has returned, without those that have left; and those that were
  // there from the beginning, for which there is no event.
  virtual std::vector<Node> nodes() const { return {{.resources = resources()}}; }
  // Returns the total resources of all nodes, including those in use.
  virtual Resources resources() const = 0;
  // Returns the directory in which the run's workers are to work on a node; empty: the run's own. It is one of those
  // that the engine was made with (worker/root_engine.h), or if carries_files() one of the node's own.
  virtual std::filesystem::path directory_of_workers(NodeId /*node*/) const { return {}; }
  // Returns true if nodes see none of the run's directories. Then what a worker reports as its checkpoint is in the
  // run's directory, too, when its Report comes, and so is what it prints.
  virtual bool carries_files() const { return false; }
  // Returns which nodes do not see which of the run's directories, and why, for people; empty if it does not carry
  // files.
  virtual std::string blind_nodes() const { return {}; }
  // If carries_files(), copies a directory that workers have made, by its path below their node's, to a path in the
  // run's directory, which must be free. Fetched follows, also if workers or the node end meanwhile. Of what its node
  // has stored (use_storage()) the list comes.
  virtual void fetch(NodeId /*node*/, const std::string& /*from*/, const std::string& /*to*/) {}
  // If carries_files(), names what was fetched `name` on its node: it has all files of that directory of the run's, so
  // bring() need not send them, and its node keeps them until it is given the next one. Empty: removes it there.
  virtual void keep_fetched(NodeId /*node*/, const std::string& /*from*/, const std::string& /*name*/) {}

  // If carries_files(), lets nodes use a storage in place of their connections, if they reach it: they store there what
  // their workers report, and load from there what is there only. Of what was stored, the run's directory then has the
  // list (storage/remote_directory.h) when a Report comes. Each node tries it once: call this before the first worker
  // starts; it returns when the present nodes have tried, after 20 s at the latest. Those that join later have done so
  // when they are announced. Returns the reasons of nodes that do not reach it, by name.
  virtual std::map<std::string, std::string> use_storage(RunStorage /*storage*/) { return {}; }
  // Returns true if a node uses it now.
  virtual bool reaches_storage(NodeId /*node*/) const { return false; }

  // Returns true if there are more nodes while something waits for them: then set_demand() is to be called.
  virtual bool follows_demand() const { return false; }
  // Says all that waits for nodes, in place of what was said before.
  virtual void set_demand(std::vector<Demand> /*demand*/) {}

  // Starts a worker on a node. A failure to start is reported as an Exited event, also if the node has left.
  virtual void start(WorkerId worker, const WorkerSpec& spec) = 0;
  // If carries_files(), has a worker find directories and files of the run's directory, by their paths in it, below its
  // node's when it is told something after this call; of what is in a storage only, too. Otherwise they are there. One
  // that cannot be brought ends it; if a Reply was what it was to be told, that has the error instead.
  virtual void bring(WorkerId /*worker*/, const std::vector<std::string>& /*files*/) {}
  // Replies to the worker's last Report. Does nothing if the worker is gone.
  virtual void answer(WorkerId worker, const channel::Answer& answer) = 0;
  // Replies to a call of the worker, whose number the reply has. Does nothing if the worker is gone.
  virtual void reply(WorkerId worker, const channel::StoreReply& reply) = 0;
  virtual void reply(WorkerId worker, const channel::Reply& reply) = 0;
  // Kills the worker's process group; Exited follows. Does nothing if the worker is gone.
  virtual void kill(WorkerId worker) = 0;

  // Waits for events, at most for `timeout` (empty: without limit), and returns all events so far in the order in
  // which they happened; none after a timeout or after wake() ended the wait.
  virtual std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) = 0;
  // Returns why what runs must be ended in order, as after an interrupt: all nodes go, and no others come. Empty: they
  // do not. wait() returns when this changes.
  virtual std::string closing() const { return {}; }
  // Ends the current wait(), or the next one. For other threads and for signal handlers.
  virtual void wake() noexcept = 0;

  // Returns the total time this process was stopped, by Ctrl-Z or in a frozen container. Events that it waits for may
  // have happened meanwhile, and processes with a deadline may have been stopped too.
  virtual Clock::duration stopped() const { return Clock::duration(0); }
  // Return monotonic time for timers, and the wall clock in seconds since 1970 for display.
  virtual Clock::time_point now() const = 0;
  virtual double wall_seconds() const = 0;
};

}  // namespace cadre::engine
