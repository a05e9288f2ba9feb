#include "engine/cluster/ray.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "engine/cluster/ray_launcher.h"

namespace cadre::engine::cluster::ray {
namespace {

constexpr std::array<std::string_view, 6> kOptions = {"accelerator_type", "address",   "memory",
                                                      "python",           "resources", "strategy"};
constexpr std::array<std::string_view, 4> kStrategies = {"PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"};
// Resources that a request has in other members.
constexpr std::array<std::string_view, 4> kOtherResources = {"CPU", "GPU", "memory", "object_store_memory"};
constexpr std::chrono::seconds kLongestTime{std::chrono::hours(24 * 365)};

std::string option_of(const NodeRequest& request, const std::string& name) {
  const auto found = request.options.find(name);
  return found == request.options.end() ? "" : found->second;
}

// Returns bytes from "16G"; empty if the text is none.
std::optional<std::int64_t> memory_bytes(std::string_view text) {
  constexpr std::string_view units = "KMGT";
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  const bool is_unit = unit.empty() || (unit.size() == 1 && power != 0);
  if (fault != std::errc() || !is_unit || number <= 0 || number > (std::int64_t{1} << 60 >> (10 * power)))
    return std::nullopt;
  return number << (10 * power);
}

// Returns amounts by name; throws Error if the text has none.
std::map<std::string, double> named_resources(const std::string& text) {
  std::map<std::string, double> resources;
  if (text.empty()) return resources;
  const Value value = base::parse_json(text, "it");
  for (const auto& [name, amount] : Stored(value).dict()) {
    if (name.empty() || std::ranges::find(kOtherResources, name) != kOtherResources.end())
      throw InvalidArgument(fmt::format("\"{}\" is no resource of its own", name));
    const auto number = amount.get<double>();
    if (!(number > 0) || std::isinf(number)) throw InvalidArgument(fmt::format("{:g} of \"{}\"", number, name));
    resources[name] = number;
  }
  return resources;
}

// A line to a launcher, and one from it.
struct Order {
  std::string order = {};
  std::uint64_t request = 0;
  std::vector<std::int64_t> ordinals = {};
  bool together = false;
  std::string strategy = {};
  double cpus = 0;
  std::int64_t gpus = 0;
  std::int64_t memory = 0;
  std::string accelerator_type = {};
  std::map<std::string, double> resources = {};
  std::vector<std::string> command = {};
  std::map<std::string, std::string> variables = {};
  std::string directory = {};
  std::string log = {};
};
struct Saying {
  std::string event = {};
  std::uint64_t request = 0;
  std::optional<std::int64_t> ordinal = {};
  std::string reason = {};
  bool certain = false;
  std::optional<double> seconds = {};
  std::vector<Node> places = {};
};

std::string line_of(const Value& value) {
  std::string line;
  base::append_json(line, value);
  return line + "\n";
}

Said as_event(const Saying& saying, std::chrono::steady_clock::time_point now) {
  if (saying.event == "ready") return Ready{};
  if (saying.event == "failed") return Failed{saying.reason};
  if (saying.event == "has") return Has{saying.places};
  if (saying.event == "queued") return Queued{.request = saying.request, .reason = saying.reason};
  if (saying.event == "refused") return Refused{.request = saying.request, .reason = saying.reason};
  if (!saying.ordinal) throw InvalidArgument(fmt::format("\"{}\" names no node", saying.event));
  if (saying.event == "started") return Started{{saying.request, *saying.ordinal}};
  if (saying.event == "ended")
    return AgentEnded{
        .request = saying.request, .ordinal = saying.ordinal, .reason = saying.reason, .is_certain = saying.certain};
  if (saying.event != "ends") throw InvalidArgument(fmt::format("\"{}\" is no event", saying.event));
  NodeEnds ends{.request = saying.request, .ordinal = saying.ordinal};
  if (saying.seconds && !std::isnan(*saying.seconds)) {
    const std::chrono::duration<double> left(
        std::clamp(*saying.seconds, 0.0, std::chrono::duration<double>(kLongestTime).count()));
    ends.at = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
  }
  return ends;
}

}  // namespace

std::string faults_of(const NodeRequest& request) {
  std::vector<std::string> faults;
  if (request.nodes < 1) faults.push_back(fmt::format("{} nodes are none", request.nodes));
  for (const auto& [name, value] : request.options) {
    if (std::ranges::find(kOptions, name) == kOptions.end()) {
      faults.push_back(fmt::format("there is no option \"{}\"; there are {}", name, fmt::join(kOptions, ", ")));
    } else if (value.empty() || value.find('\n') != value.npos || value.find('\0') != value.npos) {
      faults.push_back(fmt::format("the option \"{}\" is empty, or has a line break", name));
    } else if (name == "strategy" && std::ranges::find(kStrategies, value) == kStrategies.end()) {
      faults.push_back(
          fmt::format("the option \"strategy\" is \"{}\"; there are {}", value, fmt::join(kStrategies, ", ")));
    } else if (name == "memory" && !memory_bytes(value)) {
      faults.push_back(
          fmt::format("the option \"memory\" is \"{}\"; it must be a number of bytes, as in 16G (K, M, G, T)", value));
    } else if (name == "resources") {
      try {
        named_resources(value);
      } catch (const Error& error) {
        faults.push_back(
            fmt::format("the option \"resources\" must be JSON with amounts by name, as in "
                        "{{\"tpu\": 1}}: {}",
                        error.what()));
      }
    }
  }
  return fmt::format("{}", fmt::join(faults, "; "));
}

LauncherKind launcher_kind(const NodeRequest& request, const AgentStart& start) {
  LauncherKind kind{
      .python = option_of(request, "python"), .address = option_of(request, "address"), .outlives = start.outlives};
  if (!kind.python.empty()) return kind;
  kind.python = "python3";
  const std::string program = start.command.empty() ? "" : start.command.front();
  const std::string name = std::filesystem::path(program).filename().string();
  if (name.starts_with("python") || name.starts_with("pypy")) kind.python = program;
  return kind;
}

std::vector<std::string> launcher_command(const LauncherKind& kind) {
  std::string settings;
  base::append_json(settings, Dict{{"address", kind.address}, {"outlives", kind.outlives}});
  return {kind.python, "-c", std::string(kRayLauncher), settings};
}

std::string socket_name(std::int64_t launcher) { return fmt::format("cadre-ray-{}", launcher); }

Variables agent_variables(const Variables& own, const Variables& added) {
  Variables variables = added;
  for (const auto& [name, value] : own) {
    if (!is_of_this_machine(name)) variables.emplace(name, value);
  }
  return variables;
}

std::string request_line(const NodeRequest& request, const std::vector<std::int64_t>& ordinals, const AgentStart& start,
                         const Variables& own) {
  const std::string strategy = option_of(request, "strategy");
  return line_of(to_stored(Order{.order = "request",
                                 .request = request.id,
                                 .ordinals = ordinals,
                                 .together = request.all_or_none || !strategy.empty(),
                                 .strategy = strategy.empty() ? "STRICT_SPREAD" : strategy,
                                 .cpus = request.cpus,
                                 .gpus = request.gpus,
                                 .memory = memory_bytes(option_of(request, "memory")).value_or(0),
                                 .accelerator_type = option_of(request, "accelerator_type"),
                                 .resources = named_resources(option_of(request, "resources")),
                                 .command = start.command,
                                 .variables = agent_variables(own, start.variables),
                                 .directory = start.directory.string(),
                                 .log = start.log.string()}));
}

std::string release_line(std::uint64_t request, std::int64_t ordinal) {
  return line_of(Dict{{"order", "release"}, {"request", request}, {"ordinal", ordinal}});
}
std::string look_line() { return line_of(Dict{{"order", "look"}}); }
std::string continue_line(const std::string& mark) { return line_of(Dict{{"mark", mark}}); }

Said parse_said(std::string_view line, std::chrono::steady_clock::time_point now) {
  Saying saying;
  const Value value = base::parse_json(line, "a line of the launcher");
  from_stored(saying, Stored(value));
  return as_event(saying, now);
}

}  // namespace cadre::engine::cluster::ray
