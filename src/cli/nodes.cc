// cadre nodes: the nodes that an experiment or a training run has or had.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/tune/study.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/node_history.h"
#include "cli/output.h"
#include "cli/training_run.h"
#include "engine/cluster/kept_nodes.h"
#include "engine/cluster/provider.h"
#include "store/experiment_reader.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

using engine::cluster::WaitingNodes;

constexpr std::size_t kMostReasons = 10;

struct NodesOptions {
  std::string experiment = {};
  bool present = false;
  bool json = false;
};

struct Nodes {
  std::string name = {};
  fs::path directory = {};
  bool is_training_run = false;
  std::string controller = {};  // the process that runs it; empty: none
  bool is_as_published = false;
  std::int64_t sessions = 0;
  std::vector<NodeHistory> histories = {};
  std::optional<std::vector<WaitingNodes>> waiting = {};  // empty: unknown
  std::string why_unknown = {};
};

// The file is on the machine of the controller only, and for its user only.
void find_waiting(Nodes& nodes) {
  if (nodes.controller.empty()) return;
  try {
    nodes.waiting = engine::cluster::read_waiting_nodes(nodes.directory);
  } catch (const StorageError& error) {
    nodes.why_unknown = error.what();
  }
}

Nodes read_nodes(const Found& found) {
  if (tune::Study::exists(found.directory))
    throw InvalidArgument(place_text(found.directory) +
                          " is a study: it has no nodes, because the program that asks it runs the trials");
  const store::ExperimentReader reader(found.directory, store::ExperimentReader::Check::whole);
  Nodes nodes{.name = reader.info().name,
              .directory = fs::canonical(found.directory),
              .is_training_run = is_training_run(found.directory),
              .controller = reader.controller().value_or("")};
  NodeLog log(nodes.is_training_run);
  const auto follow = [&](const auto& row) { log.on(row); };
  reader.visit({.result = follow, .event = follow, .decision = follow});
  // Nobody knows here whether a published run that has not finished is being run.
  nodes.is_as_published = found.copy != nullptr && !reader.finished();
  if (nodes.controller.empty() && !nodes.is_as_published)
    log.end_session(reader.finished() ? "the run has finished" : "its controller has ended");
  nodes.sessions = log.sessions();
  nodes.histories = log.nodes();
  find_waiting(nodes);
  return nodes;
}

// ---- As JSON

Value time_value(const std::optional<double>& time) { return time ? Value(*time) : Value(); }

Dict document_of(const NodeHistory& history, bool of_ranks) {
  List running;
  for (const std::int64_t one : history.running) running.emplace_back(one);
  List validated;
  for (const std::string& checkpoint : history.validated) validated.emplace_back(checkpoint);
  Dict document{{"session", history.session},
                {"node", history.node.id},
                {"name", history.node.name},
                {"address", history.node.address},
                {"state", history.state()},
                {"resources", to_stored(history.node.resources)},
                {of_ranks ? "ranks" : "trials", std::move(running)},
                {"workers", history.workers},
                {"busy", history.busy},
                {"price", history.node.price},
                {"joined", history.joined},
                {"draining", time_value(history.draining)},
                {"left", time_value(history.left)},
                {"reason", history.reason}};
  if (of_ranks) document.emplace_back("validations", std::move(validated));
  return document;
}

void print_json(const Nodes& nodes, const std::vector<NodeHistory>& chosen) {
  List documents;
  for (const NodeHistory& history : chosen) documents.emplace_back(document_of(history, nodes.is_training_run));
  Value waiting;
  if (nodes.waiting) {
    List requests;
    for (const WaitingNodes& one : *nodes.waiting)
      requests.emplace_back(Dict{{"group", one.group},
                                 {"nodes", one.nodes},
                                 {"reason", one.reason},
                                 {"expected_start", time_value(one.expected_start)}});
    waiting = std::move(requests);
  }
  write_json(Dict{{"name", nodes.name},
                  {"path", place_text(nodes.directory)},
                  {"controller", nodes.controller},
                  {"sessions", nodes.sessions},
                  {"nodes", std::move(documents)},
                  {"waiting", std::move(waiting)}});
}

// ---- For people

std::string counts_of(const std::vector<NodeHistory>& histories) {
  std::string text;
  for (const char* const state : {"ready", "draining", "left", "lost"}) {
    const auto count = std::ranges::count_if(histories, [&](const NodeHistory& one) { return one.state() == state; });
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  }
  return text;
}

std::string waiting_text(const WaitingNodes& waiting) {
  return fmt::format("{} of \"{}\": {}{}", waiting.nodes, shown(waiting.group),
                     waiting.reason.empty() ? "requested" : shown(waiting.reason),
                     waiting.expected_start ? ", expected " + time_text(*waiting.expected_start) : "");
}

std::string running_text(const NodeHistory& history, bool of_ranks) {
  std::string text;
  for (const std::int64_t one : history.running)
    text += fmt::format("{}{}", text.empty() ? (of_ranks ? "ranks " : "") : ", ", one);
  return text;
}

std::string validated_text(const NodeHistory& history) {
  std::string text;
  for (const std::string& checkpoint : history.validated) text += (text.empty() ? "" : ", ") + shown(checkpoint);
  return text;
}

std::string group_of(const NodeHistory& history) {
  const auto label = history.node.resources.labels.find(engine::cluster::group_label);
  return label == history.node.resources.labels.end() ? "" : label->second;
}

// Returns "zone=eu, memory=64": labels but that of its group, and resources of other kinds.
std::string others_text(const Resources& resources) {
  Dict all;
  for (const auto& [name, value] : resources.labels) {
    if (name != engine::cluster::group_label) all.emplace_back(name, value);
  }
  for (const auto& [name, amount] : resources.custom) all.emplace_back(name, amount);
  return values_text(all);
}

// Returns the time without its year; empty if it is not known.
std::string short_time(double time) {
  const std::string text = time_text(time);
  return text.empty() ? text : text.substr(5);
}

Style style_of(const NodeHistory& history) {
  return history.left ? (history.is_lost ? Style::bad : Style::dim) : history.draining ? Style::bold : Style::good;
}

Table table_of(const Nodes& nodes, const std::vector<NodeHistory>& chosen) {
  Table table;
  const auto add = [&](const char* head, int rank, bool is_number, const auto& text) {
    Column made = column(head, rank, is_number);
    bool is_empty = true;
    for (const NodeHistory& history : chosen) {
      const std::string cell = text(history);
      is_empty = is_empty && cell.empty();
      made.cells.push_back(is_number ? number_cell(cell) : text_cell(cell));
    }
    if (!is_empty) table.columns.push_back(std::move(made));
  };
  if (nodes.sessions > 1)
    add("session", 3, true, [](const NodeHistory& history) { return std::to_string(history.session); });
  add("node", 0, true, [](const NodeHistory& history) { return std::to_string(history.node.id); });
  add("name", 0, false, [](const NodeHistory& history) { return history.node.name; });
  std::set<std::string> groups;
  for (const NodeHistory& history : chosen) groups.insert(group_of(history));
  if (groups.size() > 1) add("group", 1, false, [](const NodeHistory& history) { return shown(group_of(history)); });
  add("state", 0, false, [](const NodeHistory& history) { return history.state(); });
  for (std::size_t i = 0; i < chosen.size(); ++i) table.columns.back().cells[i].style = style_of(chosen[i]);
  add("CPUs", 2, true, [](const NodeHistory& history) { return fmt::format("{:g}", history.node.resources.cpus); });
  add("GPUs", 2, true, [](const NodeHistory& history) {
    return history.node.resources.gpus > 0 ? fmt::format("{:g}", history.node.resources.gpus) : "";
  });
  add("kind", 4, false, [](const NodeHistory& history) { return history.node.resources.accelerator_type; });
  add("has", 7, false, [](const NodeHistory& history) { return others_text(history.node.resources); });
  add(nodes.is_training_run ? "runs" : "trials", 1, false,
      [&](const NodeHistory& history) { return running_text(history, nodes.is_training_run); });
  add("validates", 2, false, validated_text);
  add("workers", 6, true, [](const NodeHistory& history) { return std::to_string(history.workers); });
  add("joined", 3, false, [](const NodeHistory& history) { return short_time(history.joined); });
  add("left", 3, false, [](const NodeHistory& history) { return history.left ? short_time(*history.left) : ""; });
  return table;
}

std::string node_time_text(double seconds) {
  constexpr double minute = 60;
  constexpr double hour = 3600;
  return seconds < minute ? fmt::format("{:.0f} s", seconds)
         : seconds < hour ? fmt::format("{:.1f} min", seconds / minute)
                          : fmt::format("{:.1f} h", seconds / hour);
}

// The nodes of a group, in all.
struct GroupUse {
  double there_s = 0;
  double busy_s = 0;  // of that with a worker
  double cost = 0;
};
using UseByGroup = std::map<std::string, GroupUse>;

UseByGroup use_of(const Nodes& nodes) {
  constexpr double hour_s = 3600;
  const double now = base::wall_seconds();
  UseByGroup by_group;
  for (const NodeHistory& history : nodes.histories) {
    const double end = history.left.value_or(nodes.controller.empty() ? history.joined + history.busy : now);
    const double there_s = std::max(0.0, end - history.joined);
    GroupUse& use = by_group[group_of(history)];
    use.there_s += there_s;
    use.busy_s += history.busy;
    use.cost += history.node.price * there_s / hour_s;
  }
  return by_group;
}

// Returns how long nodes have been there in all, and how much of that with work, by group if there are several:
// "training 4.2 h, 97 % of it with workers; validators 18.0 min, 71 % of it with workers".
std::string times_text(const UseByGroup& by_group) {
  std::string text;
  for (const auto& [group, use] : by_group) {
    if (!text.empty()) text += "; ";
    if (by_group.size() > 1) text += shown(group) + " ";
    text += node_time_text(use.there_s);
    if (use.there_s > 0)
      text += fmt::format(", {:.0f} % of it with workers", std::min(100.0, 100 * use.busy_s / use.there_s));
  }
  return text;
}

// Returns what the nodes have cost, by group if there are several: "12.40: training 11.80; validators 0.60". Empty:
// nothing.
std::string cost_text(const UseByGroup& by_group) {
  double sum = 0;
  std::string parts;
  for (const auto& [group, use] : by_group) {
    sum += use.cost;
    parts += fmt::format("{}{} {:.2f}", parts.empty() ? "" : "; ", shown(group), use.cost);
  }
  if (sum == 0) return "";
  return by_group.size() > 1 ? fmt::format("{:.2f}: {}", sum, parts) : fmt::format("{:.2f}", sum);
}

// Adds why nodes drain or have left, the last ones.
void add_reasons(Page& page, const std::vector<NodeHistory>& chosen) {
  std::vector<const NodeHistory*> gone;
  for (const NodeHistory& history : chosen) {
    if (!history.reason.empty() && !history.left_with_run) gone.push_back(&history);
  }
  const std::size_t first = gone.size() > kMostReasons ? gone.size() - kMostReasons : 0;
  if (first > 0) page.line(fmt::format("... {} more reasons; --json has all", first), Style::dim);
  for (std::size_t i = first; i < gone.size(); ++i)
    page.line(
        fmt::format("Node {} {}: {}", gone[i]->node.id,
                    gone[i]->left ? (gone[i]->is_lost ? "was lost" : "has left") : "drains", shown(gone[i]->reason)),
        gone[i]->is_lost ? Style::bad : Style::plain);
}

void print(const Nodes& nodes, const std::vector<NodeHistory>& chosen) {
  Page page;
  page.heading("Nodes of " + shown(nodes.name));
  page.field("controller", nodes.is_as_published      ? "unknown; the nodes are as published last"
                           : nodes.controller.empty() ? "none"
                                                      : shown(nodes.controller));
  page.field("directory", shown(place_text(nodes.directory)));
  page.field("nodes", counts_of(nodes.histories));
  const UseByGroup use = use_of(nodes);
  page.field("time", times_text(use));
  page.field("cost", cost_text(use));
  if (nodes.waiting) {
    for (const WaitingNodes& waiting : *nodes.waiting) page.field("waits for", waiting_text(waiting));
  }
  page.field("waits for", nodes.why_unknown.empty() ? "" : "unknown: " + shown(nodes.why_unknown));
  if (!chosen.empty()) page.table(table_of(nodes, chosen));
  add_reasons(page, chosen);
  page.write();
}

void run(const NodesOptions& options) {
  const Found found = find_directory(options.experiment);
  const Nodes nodes = read_nodes(found);
  std::vector<NodeHistory> chosen = nodes.histories;
  if (options.present) std::erase_if(chosen, [](const NodeHistory& history) { return history.left.has_value(); });
  if (options.json) return print_json(nodes, chosen);
  const bool waits = nodes.waiting && !nodes.waiting->empty();
  if (!nodes.histories.empty() || waits) return print(nodes, chosen);
  Page page;
  page.line(nodes.sessions == 0 ? shown(nodes.name) + " has not begun, and has no nodes yet"
                                : shown(nodes.name) + " ran on one machine, without a cluster");
  page.write();
}

}  // namespace

void add_nodes(Command& program) {
  const auto options = std::make_shared<NodesOptions>();
  Command command = program.add_command("nodes", "Show the nodes of a cluster that an experiment has");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  command.flag("--present", &options->present, "Only nodes that have not left");
  command.flag("--json", &options->json, "One JSON document with everything");
  command.footer(
      "A node is ready; draining (it will leave, and nothing new starts there); left;\n"
      "or lost: gone without draining. Nodes that still wait in a queue are shown\n"
      "to the user who runs the experiment, on the same file system.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
