// The commands of the engine "commands" (cadre/cluster.h): their words, the script that starts an agent, and what they
// print. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/cluster.h"
#include "engine/cluster/provider.h"
#include "engine/cluster/variables.h"

namespace cadre::engine::cluster {

using Words = std::vector<std::string>;

// Returns all faults of the commands, and of a group's request for nodes by them; none if it is empty. `over_stdio`:
// see AgentStart.
std::vector<std::string> faults_of(const NodeCommands& commands, bool over_stdio);
std::vector<std::string> faults_of(const NodeCommands& commands, const NodeRequest& request);

// Returns true if `submit` queues an agent, and false if it runs as long as the agent.
inline bool has_queue(const NodeCommands& commands) { return !commands.list.empty(); }
// Returns true if each node is on a host of its group.
bool has_hosts(const NodeCommands& commands);
// Returns the machines that a request's options name.
std::vector<std::string> hosts_of(const std::map<std::string, std::string>& options);

// Returns the name of a node: small letters, digits and dashes, at most 63, as Kubernetes demands. `jobs` is common to
// all nodes of a program.
std::string node_name(std::string_view jobs, std::uint64_t request, std::int64_t ordinal);
// Returns what placeholders of a node stand for, but for its job's id.
std::map<std::string, std::string> values_of(const NodeRequest& request, std::string name, std::string host);
// Returns a command's words with the values in place of the placeholders, and with `ids` in place of a word {ids}. A
// placeholder without a value stays: commands may be for nodes that a program with other commands has requested.
Words filled(const Words& command, const std::map<std::string, std::string>& values, const Words& ids = {});

// Returns the script that sets the variables of this process, `own`, and of the start, and runs an agent. One that runs
// as long as the agent says at its end how that has ended, which agent_end() finds in the errors of `submit`: for
// otherwise the end of a remote shell says nothing of what it has started. `is_queued`: see has_queue().
std::string start_script(const AgentStart& start, const Variables& own, std::int64_t ordinal, bool is_queued);
std::optional<std::string> agent_end(std::string_view errors);

// Returns the id of a job from what `submit` prints; empty if there is none. `pattern`: NodeCommands::id.
std::optional<std::string> job_id(std::string_view printed, const std::string& pattern);
// Returns the line that has an id as a word, without blanks at its ends; empty if there is none.
std::optional<std::string> line_of(std::string_view printed, std::string_view id);
// Returns true if a regular expression finds something in a line; false for an empty one.
bool finds(const std::string& pattern, const std::string& line);

}  // namespace cadre::engine::cluster
