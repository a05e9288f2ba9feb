/// \file
/// Clusters: trials, the workers of training runs and validators on other machines. See the tutorial "On a cluster".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cadre {

/// Nodes of one kind that are requested together.
struct NodeGroup {
  /// Name of the group in messages, and the value of the label "group" that its nodes have (Resources::labels), unless
  /// the program gives them another one: a validator with the label {"group", "validators"} runs there only. Without
  /// spaces and "!(),".
  std::string name = "nodes";
  /// Number of nodes. Default, 0: with "slurm" inside an allocation all of its nodes; with "commands" one on each of
  /// the group's hosts; otherwise 1.
  std::int64_t nodes = 0;
  /// Number of nodes that are there all the time. Default: all. With fewer, down to 0, others are requested while
  /// trials, workers or validations wait that have room on none, as many as those need and at most `nodes` in all, and
  /// given back when they have had nothing to do for `linger`. So validators on hardware of their own have it while
  /// there is something to validate. A program begins with at least one node of the first group. Not with the option
  /// "strategy".
  std::optional<std::int64_t> min_nodes = {};
  /// Kind of GPUs that its nodes have, as in Resources::accelerator_type, for nodes on demand: what waits for another
  /// kind asks for none of them. Default: unknown until there was a node; with "ray" the option of that name.
  std::string accelerator_type = {};
  /// How long a node beyond `min_nodes` may have nothing to do before it is given back; at most a day.
  std::chrono::duration<double> linger = std::chrono::minutes(1);
  /// Price of a node for an hour, in the same currency for all groups. What waits and has room on nodes of several
  /// groups gets those for which it pays least; with equal prices the first group's. `cadre nodes` shows what nodes
  /// have cost. Default, 0: nothing.
  double price = 0;
  /// CPUs that each node must have for this experiment. Default, 0: what the engine gives; with "ray" all of a node.
  std::int64_t cpus = 0;
  std::int64_t gpus = 0;  ///< GPUs that each node must have; default, 0: what the engine gives
  /// Options in the words of the engine, such as {"partition", "a100"}, {"time", "8:00:00"}: with "slurm" those of
  /// sbatch and srun without their dashes; with "commands" what placeholders of that name stand for (NodeCommands).
  /// With "ray": "address" of the cluster ("host:port"; default: RAY_ADDRESS, or the one on this machine), "python"
  /// that has Ray (default: the program's own if it is in Python, or python3 in PATH), "accelerator_type", "memory" of
  /// each node ("16G"), "resources" of each node as JSON ({"tpu": 1}), and "strategy" (PACK, SPREAD, STRICT_PACK,
  /// STRICT_SPREAD): with it all nodes come together, and Ray takes back all or none.
  std::map<std::string, std::string> options = {};
  bool operator==(const NodeGroup&) const = default;  ///< compares all members
};

/// The commands with which the engine "commands" starts and ends nodes: those of a remote shell, or of any batch
/// system. They are run on the machine of this program, without a shell. In their words `{cpus}`, `{gpus}` and
/// `{group}` stand for those of the node's group, an option's name, as in `{queue}`, for its value, `{name}` for a name
/// that no other node has, and `{host}` for a machine that has no node yet: one of the group's option "hosts", which
/// names them with commas between.
struct NodeCommands {
  /// Starts an agent, once for each node. Gets a script for a POSIX shell in its standard input, as `ssh {host} sh` and
  /// qsub take it. The script sets the environment of this program, but for what belongs to this machine or login, and
  /// runs the program; it has secrets.
  std::vector<std::string> submit = {};
  /// Ends an agent or takes it from the queue, by the id `{id}`. Default, none: the end of `submit` is that of the
  /// agent. Needed with `list`.
  std::vector<std::string> cancel = {};
  /// Prints a line for each job that waits or runs, with its id as a word in it; lines of other jobs are ignored. A
  /// word `{ids}` stands for the ids of all jobs of this program. Default, none: `submit` runs as long as the agent
  /// does, and the id is the name. Otherwise `submit` ends at once, when the agent is queued.
  std::vector<std::string> list = {};
  /// A regular expression (ECMAScript) that finds a job's id in what `submit` prints: its first group, or all of it.
  /// Default, none: the only word that is printed.
  std::string id = {};
  /// A regular expression that finds something in lines of `list` about jobs that have ended, as in "Completed|Error".
  /// Default, none: there is no line of a job that has ended.
  std::string ended = {};
  bool operator==(const NodeCommands&) const = default;  ///< compares all members
};

/// A cluster. On each of its nodes one process of this program, started with the same arguments, runs as an agent: it
/// is the program up to cadre::init(), which there never returns. All nodes must see the program under the same path,
/// and best the storage path, too: where they do not, the files of an experiment go over the connections of the agents.
struct ClusterConfig {
  /// Provider of the nodes. "slurm": inside an allocation (SLURM_JOB_ID is set) its nodes, otherwise jobs that are
  /// queued for them. "ray": a Ray cluster that is there already. "commands": whatever `commands` start, such as ssh.
  /// "processes": agents on this machine, to try a program before there is a cluster.
  std::string engine = "slurm";
  std::vector<NodeGroup> groups = {NodeGroup()};  ///< the nodes; at least one group
  NodeCommands commands = {};                     ///< for the engine "commands" only
  /// Connection between agents and this program. "port": they dial one port of this machine, encrypted. "stdio": the
  /// session is in the standard input and output of the command that starts them, such as srun, where no port can be
  /// reached: none is opened. Not for Ray, nor for jobs in a queue, so with Slurm the program must run in an
  /// allocation. A program is then not to read its standard input before cadre::init, nor to print more than 1 MiB
  /// there; from then on what it prints on a node goes to standard error. A node whose connection ends is lost with
  /// what runs there, and asked for again; `nodes_stay` is 0, and `addresses` must be empty.
  std::string link = "port";
  /// IP addresses of this machine, of which nodes reach at least one. Default: all that it has.
  std::vector<std::string> addresses = {};
  /// How long a node may be cut off from this machine before what ran there is started elsewhere; at least 25 s. Its
  /// agent ends the workers after 20 s, so nothing runs twice.
  std::chrono::duration<double> patience = std::chrono::seconds(30);
  /// How long nodes wait for the program after it was killed; 0: not at all. If the same command, on the same machine
  /// and in the same directory, continues the experiment in that time, it goes on there, without the queue; requests
  /// that wait in the queue are kept, too. At most a day.
  std::chrono::duration<double> nodes_stay = std::chrono::minutes(5);
  /// How long before its time limit a node is drained: nothing new starts there, and what runs leaves it with its next
  /// saved report. At most a day, and at most half of the time that the node had left when it joined. Another job is
  /// queued in its place at once. In an allocation all nodes end together: what still runs in the last quarter of that
  /// time is interrupted, as by SIGTERM, and fit() throws Interrupted.
  std::chrono::duration<double> drain_before = std::chrono::minutes(2);
  bool operator==(const ClusterConfig&) const = default;  ///< compares all members
};

}  // namespace cadre
