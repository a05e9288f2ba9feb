/// \file
/// Clusters: trials, the workers of training runs and validators on other machines. See the tutorial "On a cluster".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cadre {

/// Nodes of one kind that are requested together.
struct NodeGroup {
  std::string name = "nodes";  ///< for messages
  /// Number of nodes. Default, 0: with "slurm" inside an allocation all of its nodes; otherwise 1.
  std::int64_t nodes = 0;
  std::int64_t cpus = 0;  ///< CPUs that each node must have for this experiment; default, 0: what the engine gives
  std::int64_t gpus = 0;  ///< GPUs that each node must have; default, 0: what the engine gives
  /// Options in the words of the engine, such as {"partition", "a100"}, {"time", "8:00:00"}: with "slurm" those of
  /// sbatch and srun without their dashes.
  std::map<std::string, std::string> options = {};
  bool operator==(const NodeGroup&) const = default;  ///< compares all members
};

/// A cluster. On each of its nodes one process of this program, started with the same arguments, runs as an agent: it
/// is the program up to cadre::init(), which there never returns. All nodes must see the program and the experiment's
/// directory under the same paths.
struct ClusterConfig {
  /// Whoever has the nodes. "slurm": inside an allocation (SLURM_JOB_ID is set) its nodes, otherwise jobs that are
  /// queued for them. "processes": agents on this machine, to try a program before there is a cluster.
  std::string engine = "slurm";
  std::vector<NodeGroup> groups = {NodeGroup()};  ///< the nodes; at least one group
  /// How agents talk to this program. "port": they dial one port of this machine, encrypted. "stdio": the session is in
  /// the standard input and output of whatever starts them, such as srun, where no port can be reached: none is opened.
  /// Not for jobs that Slurm queues, so the program must run in an allocation. A program is then not to read its
  /// standard input before cadre::init, nor to print more than 1 MiB there; from then on what it prints on a node goes
  /// to standard error. A node whose connection ends is lost with what runs there, and asked for again; `nodes_stay` is
  /// 0, and `addresses` must be empty.
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
