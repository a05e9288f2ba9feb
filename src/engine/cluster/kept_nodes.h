// A file in an experiment's directory by which the process that continues the experiment after a kill finds the nodes
// of the controller before: it has the port and the key that agents know, and the requests. Its format is in
// docs/formats.md.
//
// The file is written and read by who holds the experiment's lock only, so two controllers never share the nodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/tls.h"
#include "engine/cluster/provider.h"

namespace cadre::engine::cluster {

inline constexpr const char* kNodesFile = ".cluster.json";  // hidden, as the lock is: no publisher looks at it

// A node whose agent was connected.
struct ConnectedNode {
  std::uint64_t request = 0;
  std::int64_t ordinal = 0;
  std::string name = {};  // for messages
  bool operator==(const ConnectedNode&) const = default;
};

// Nodes of a request that are not there yet.
struct WaitingNodes {
  std::string group = {};
  std::int64_t nodes = 0;
  std::string reason = {};                    // in the provider's words; empty: it has said nothing yet
  std::optional<double> expected_start = {};  // seconds since 1970
  bool operator==(const WaitingNodes&) const = default;
};

struct KeptNodes {
  // Name the machine and the program to which alone the nodes are of use.
  std::string host = {};
  std::string provider = {};
  std::string build = {};  // build_id()
  std::vector<std::string> command = {};
  std::string working_directory = {};
  // As agents know it.
  std::int64_t port = 0;
  channel::Identity identity = {};
  std::string secret = {};  // of the tokens
  // As the provider knows it.
  std::string jobs = {};                    // the name that is common to all jobs
  std::vector<KeptRequest> requests = {};   // that have nodes, or wait for them
  std::vector<NodeProcess> processes = {};  // see Provider::processes()
  std::vector<ConnectedNode> connected = {};
  // Numbers that are in use; further ones follow.
  std::uint64_t last_request = 0;
  std::uint64_t last_node = 0;
  bool operator==(const KeptNodes&) const = default;
};

// Returns the text of a file, and from it; `directory` identifies the directory in which it lies, so that a copy is not
// taken for the original. Throw StorageError with what is wrong.
std::string to_text(const KeptNodes& nodes, const std::string& directory,
                    const std::vector<WaitingNodes>& waiting = {});
KeptNodes parse_kept_nodes(std::string_view text, const std::string& directory);

// Returns true if there is a file, whatever it is.
bool has_kept_nodes(const std::filesystem::path& directory);
// Returns what a controller that was killed has left in a directory; empty if there is no file. Throws StorageError,
// with the path, for a file that is damaged, that others may have written, or that was copied with its directory.
std::optional<KeptNodes> read_kept_nodes(const std::filesystem::path& directory);
// Returns the nodes for which the controller of a run waits, and nothing else of the file: for readers of the run.
// Empty if there is no file. Throws StorageError, also for a file of another user.
std::optional<std::vector<WaitingNodes>> read_waiting_nodes(const std::filesystem::path& directory);
// `waiting` is for read_waiting_nodes(). Throws StorageError.
void write_kept_nodes(const std::filesystem::path& directory, const KeptNodes& nodes,
                      const std::vector<WaitingNodes>& waiting = {});
// Does nothing if there is no file. Throws StorageError.
void remove_kept_nodes(const std::filesystem::path& directory);

// Returns why a program cannot use nodes that another one has kept; empty if it can. `own`: what it would keep itself.
std::string fault_of(const KeptNodes& kept, const KeptNodes& own);

// Divides the kept requests and the wanted ones.
struct Continuation {
  std::vector<KeptRequest> claimed = {};
  std::vector<std::pair<std::uint64_t, std::int64_t>> surplus = {};  // nodes of these: request and ordinal
  std::vector<NodeRequest> missing = {};                             // to be requested, without ids
};
// Claims requests of the same kind for as many nodes as are wanted. The others are for nobody.
Continuation continue_requests(const std::vector<KeptRequest>& kept, const std::vector<NodeRequest>& wanted);

}  // namespace cadre::engine::cluster
