#include "engine/cluster/node_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>
#include <utility>

#include "engine/cluster/ordinal.h"
#include "engine/cluster/shell.h"

namespace cadre::engine::cluster {
namespace {

constexpr const char* kHosts = "hosts";  // an option
constexpr const char* kIds = "{ids}";    // a word
constexpr std::size_t kMostNameBytes = 63;
// A regular expression is matched recursively, a call for each character.
constexpr std::size_t kMostMatchedBytes = 4096;
constexpr std::string_view kAgentEnd = "cadre: the agent has ended with exit code ";

bool is_of_a_name(char c) {
  return std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-';
}

// Calls `take(text, is_placeholder)` with the parts of a word in their order; a placeholder comes without its braces.
// Other braces are text, as in JSON.
template <class Take>
void split_word(std::string_view word, const Take& take) {
  while (!word.empty()) {
    const std::size_t open = word.find('{');
    if (open == word.npos) return take(word, false);
    const std::size_t close = std::ranges::find_if_not(word.substr(open + 1), is_of_a_name) - word.begin();
    const bool is_placeholder = close > open + 1 && close < word.size() && word[close] == '}';
    if (!is_placeholder) {
      take(word.substr(0, open + 1), false);
      word.remove_prefix(open + 1);
      continue;
    }
    if (open > 0) take(word.substr(0, open), false);
    take(word.substr(open + 1, close - open - 1), true);
    word.remove_prefix(close + 1);
  }
}

// Returns the names of the placeholders in a command, but for {ids}.
std::set<std::string> placeholders(const Words& command) {
  std::set<std::string> names;
  for (const std::string& word : command) {
    if (word == kIds) continue;
    split_word(word, [&](std::string_view text, bool is_placeholder) {
      if (is_placeholder) names.emplace(text);
    });
  }
  return names;
}

std::set<std::string> all_placeholders(const NodeCommands& commands) {
  std::set<std::string> names = placeholders(commands.submit);
  names.merge(placeholders(commands.cancel));
  names.merge(placeholders(commands.list));
  return names;
}

bool has_word(const Words& command, std::string_view word) { return std::ranges::find(command, word) != command.end(); }

std::string fault_of_pattern(const char* member, const std::string& pattern) {
  try {
    static_cast<void>(std::regex(pattern));
    return "";
  } catch (const std::regex_error& error) {
    return fmt::format("cluster.commands.{} is no regular expression: \"{}\" ({})", member, pattern, error.what());
  }
}

// Returns true for a variable that the login on a node sets itself.
bool is_of_a_login(std::string_view name) {
  static constexpr std::array<std::string_view, 5> names = {"HOME", "LOGNAME", "MAIL", "SHELL", "USER"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("XDG_");
}

// Returns true for what a shell can set.
bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)); });
}

}  // namespace

// ---- Faults

std::vector<std::string> faults_of(const NodeCommands& commands, bool over_stdio) {
  std::vector<std::string> faults;
  if (commands.submit.empty())
    faults.emplace_back(
        "cluster.commands.submit is empty; it starts the program on a node, such as [\"ssh\", \"{host}\", \"sh\"]");
  if (has_queue(commands) && commands.cancel.empty())
    faults.emplace_back("cluster.commands.list is there, and cancel is not: nodes could not be given back");
  if (!has_queue(commands) && !(commands.id + commands.ended).empty())
    faults.emplace_back("cluster.commands has id or ended, which need list");
  if (has_queue(commands) && over_stdio)
    faults.emplace_back(
        "cluster.link is \"stdio\", and a job that cluster.commands queue has no input and output here; leave out "
        "list, "
        "if submit runs as long as the agent, or let the nodes dial (\"port\")");
  for (const auto& [name, command] :
       {std::pair{"submit", &commands.submit}, {"cancel", &commands.cancel}, {"list", &commands.list}}) {
    const std::set<std::string> used = placeholders(*command);
    if (name == std::string_view("submit") && (used.contains("id") || has_word(*command, kIds)))
      faults.emplace_back("cluster.commands.submit has {id}, and there is none before it");
    if (name == std::string_view("list") && !used.empty())
      faults.push_back(fmt::format("cluster.commands.list has {{{}}}; it is for all nodes, and can have a word {{ids}}",
                                   *used.begin()));
    if (name == std::string_view("cancel") && !command->empty() && !used.contains("id") && !used.contains("name") &&
        !used.contains("host"))
      faults.emplace_back("cluster.commands.cancel has no {id}, so it does not say what to end");
    if (used.contains("ids"))
      faults.push_back(fmt::format("cluster.commands.{} has {{ids}} within a word; it stands for several", name));
  }
  for (const auto& [member, pattern] : {std::pair{"id", &commands.id}, {"ended", &commands.ended}}) {
    if (std::string fault = fault_of_pattern(member, *pattern); !fault.empty()) faults.push_back(std::move(fault));
  }
  return faults;
}

std::vector<std::string> faults_of(const NodeCommands& commands, const NodeRequest& request) {
  std::vector<std::string> faults;
  const auto add = [&]<class... Args>(fmt::format_string<Args...> text, Args&&... args) {
    faults.push_back(fmt::format("cluster.groups: \"{}\" ", request.group) +
                     fmt::format(text, std::forward<Args>(args)...));
  };
  std::map<std::string, std::string> values = values_of(request, "", "");
  values["id"];
  const std::set<std::string> used = all_placeholders(commands);
  for (const std::string& name : used) {
    if (name == "ids" || values.contains(name)) continue;
    std::vector<std::string> known;
    for (const auto& [value, text] : values) known.push_back("{" + value + "}");
    add("has no option \"{}\", and cluster.commands have {{{}}}; it has {}", name, name, fmt::join(known, ", "));
  }
  for (const auto& [name, value] : request.options) {
    if (name != kHosts && !used.contains(name))
      add("has the option \"{}\", and no word of cluster.commands has {{{}}}", name, name);
    if (value.find('\0') != value.npos) add("has the option \"{}\" with a null character", name);
  }
  if (used.contains("cpus") && request.cpus <= 0) add("says no cpus, and cluster.commands have {{cpus}}");
  const std::vector<std::string> hosts = hosts_of(request.options);
  if (has_hosts(commands) && hosts.empty()) add("has no option \"{}\", and cluster.commands have {{host}}", kHosts);
  if (!has_hosts(commands) && request.options.contains(kHosts))
    add("has the option \"{}\", and no word of cluster.commands has {{host}}", kHosts);
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (host->starts_with('-')) add("has the host \"{}\", which a command would take for an option", *host);
    if (std::find(hosts.begin(), host, *host) != host)
      add("has the host {} twice; a node has all of its machine", *host);
  }
  if (!hosts.empty() && request.nodes > std::ssize(hosts))
    add("wants {} nodes, and has {} hosts", request.nodes, hosts.size());
  return faults;
}

// ---- Words

bool has_hosts(const NodeCommands& commands) { return all_placeholders(commands).contains("host"); }

std::vector<std::string> hosts_of(const std::map<std::string, std::string>& options) {
  const auto found = options.find(kHosts);
  std::vector<std::string> hosts;
  if (found == options.end()) return hosts;
  std::string host;
  for (const char c : found->second + ",") {
    if (c != ',' && std::isspace(static_cast<unsigned char>(c)) == 0) {
      host += c;
    } else if (!host.empty()) {
      hosts.push_back(std::exchange(host, ""));
    }
  }
  return hosts;
}

std::string node_name(std::string_view jobs, std::uint64_t request, std::int64_t ordinal) {
  constexpr std::string_view prefix = "cadre-";
  const std::string number = fmt::format("-{}-{}", request, ordinal);
  const std::size_t most = kMostNameBytes - prefix.size() - number.size();
  if (jobs.size() > most) jobs.remove_prefix(jobs.size() - most);
  std::string name = fmt::format("{}{}{}", prefix, jobs, number);
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!is_of_a_name(c) || c == '_') c = '-';
  }
  return name;
}

std::map<std::string, std::string> values_of(const NodeRequest& request, std::string name, std::string host) {
  std::map<std::string, std::string> values = request.options;
  values.erase(kHosts);
  values["cpus"] = fmt::format("{:g}", request.cpus);
  values["gpus"] = std::to_string(request.gpus);
  values["group"] = request.group;
  values["name"] = std::move(name);
  values["host"] = std::move(host);
  return values;
}

Words filled(const Words& command, const std::map<std::string, std::string>& values, const Words& ids) {
  Words words;
  for (const std::string& word : command) {
    if (word == kIds) {
      words.insert(words.end(), ids.begin(), ids.end());
      continue;
    }
    std::string& text = words.emplace_back();
    split_word(word, [&](std::string_view part, bool is_placeholder) {
      if (!is_placeholder) return void(text += part);
      const auto value = values.find(std::string(part));
      text += value == values.end() ? fmt::format("{{{}}}", part) : value->second;
    });
  }
  return words;
}

// ---- The script

std::string start_script(const AgentStart& start, const Variables& own, std::int64_t ordinal, bool is_queued) {
  Variables variables = start.variables;
  variables[kOrdinalVariable] = std::to_string(ordinal);
  for (const auto& [name, value] : own) {
    if (!is_of_this_machine(name) && !is_of_a_login(name)) variables.emplace(name, value);
  }
  std::string script = "#!/bin/sh\n";
  for (const auto& [name, value] : variables) {
    if (is_variable_name(name)) script += fmt::format("export {}={}\n", name, shell_word(value));
  }
  if (is_queued && !start.log.empty()) script += log_lines(start.log, fmt::format("_{}", ordinal));
  if (!start.directory.empty()) script += fmt::format("cd {} || exit\n", shell_word(start.directory.string()));
  const std::string agent = shell_line(start.command);
  if (start.over_stdio) return script + fmt::format("exec {}\n", agent);
  if (is_queued) return script + fmt::format("exec {} </dev/null >/dev/null\n", agent);
  // A signal ends the wait, and is passed on.
  return script + fmt::format(R"({} </dev/null >/dev/null &
agent=$!
trap 'kill -TERM "$agent"' HUP INT TERM
while :; do
  wait "$agent"
  end=$?
  kill -0 "$agent" 2>/dev/null || break
done
echo "{}$end" >&2
exit "$end"
)",
                              agent, kAgentEnd);
}

std::optional<std::string> agent_end(std::string_view errors) {
  const std::size_t begin = errors.rfind(kAgentEnd);
  if (begin == errors.npos) return std::nullopt;
  std::string_view end = errors.substr(begin + kAgentEnd.size());
  end = end.substr(0, std::min(end.find_first_not_of("0123456789"), end.size()));
  constexpr int signals = 128;  // a shell's number for the first one is 129
  const int code = end.empty() || end.size() > 3 ? 0 : std::stoi(std::string(end));
  return code > signals ? fmt::format("signal {}", code - signals) : fmt::format("exit code {}", code);
}

// ---- What is printed

std::optional<std::string> job_id(std::string_view printed, const std::string& pattern) {
  std::string id;
  if (pattern.empty()) {
    id = in_one_line(printed);
    if (id.find_first_of(" \t;") != id.npos) return std::nullopt;
  } else {
    std::smatch match;
    const std::string text(printed.substr(0, std::min(printed.find_last_not_of(" \r\n") + 1, kMostMatchedBytes)));
    if (!std::regex_search(text, match, std::regex(pattern))) return std::nullopt;
    id = match[match.size() > 1 ? 1 : 0];
  }
  if (id.empty() || id.starts_with('-')) return std::nullopt;  // which a command would take for an option
  return id;
}

std::optional<std::string> line_of(std::string_view printed, std::string_view id) {
  const auto is_of_a_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = printed.find(id); at != printed.npos; at = printed.find(id, at + 1)) {
    const std::size_t end = at + id.size();
    if ((at > 0 && is_of_a_word(printed[at - 1])) || (end < printed.size() && is_of_a_word(printed[end]))) continue;
    const std::size_t begin = printed.rfind('\n', at) == printed.npos ? 0 : printed.rfind('\n', at) + 1;
    return in_one_line(printed.substr(begin, std::min(printed.find('\n', at), printed.size()) - begin));
  }
  return std::nullopt;
}

bool finds(const std::string& pattern, const std::string& line) {
  return !pattern.empty() && std::regex_search(line, std::regex(pattern));
}

}  // namespace cadre::engine::cluster
