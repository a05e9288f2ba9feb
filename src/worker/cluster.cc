#include "worker/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/seconds.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "engine/cluster/dialler.h"
#include "engine/cluster/nodes_by_command.h"
#include "engine/cluster/processes.h"
#include "engine/cluster/ray_actors.h"
#include "engine/cluster/slurm.h"
#include "engine/cluster/slurm_jobs.h"
#include "engine/cluster/slurm_steps.h"
#include "resources/gpu_kinds.h"
#include "resources/machine_labels.h"

namespace cadre::worker {
namespace {

using engine::cluster::NodeRequest;
using engine::cluster::Provider;

constexpr std::chrono::seconds kLeastPatience{25};
constexpr std::chrono::seconds kMostWait{86400};

// Engines.
constexpr const char* kProcesses = "processes";
constexpr const char* kCommands = "commands";
constexpr const char* kRay = "ray";
constexpr const char* kSlurm = "slurm";

constexpr const char* kPort = "port";
constexpr const char* kStdio = "stdio";

struct NamedProvider {
  std::unique_ptr<Provider> provider;
  std::string name;       // of its kind, in the plural
  std::string jobs = {};  // the name that is common to all its jobs
};

NamedProvider make_processes(const ClusterConfig&, const std::string&) {
  return {std::make_unique<engine::cluster::Processes>(), "processes of this machine"};
}

// Names the jobs of an engine, so that they differ from those of all others, also of this process.
std::string name_of_jobs() {
  static std::atomic<int> engines = 0;
  return fmt::format("{}-{}-{}-{}", base::host_name(), ::getpid(), static_cast<std::int64_t>(base::wall_seconds()),
                     ++engines);
}

NamedProvider make_slurm(const ClusterConfig&, const std::string& kept_jobs) {
  engine::cluster::Variables own = engine::cluster::own_variables();
  if (engine::cluster::slurm::is_in_allocation(own))
    return {std::make_unique<engine::cluster::SlurmSteps>(std::move(own)), "steps of Slurm"};
  const std::string jobs = kept_jobs.empty() ? name_of_jobs() : kept_jobs;
  return {std::make_unique<engine::cluster::SlurmJobs>(jobs, std::move(own)), "jobs of Slurm", jobs};
}

NamedProvider make_ray(const ClusterConfig&, const std::string&) {
  return {std::make_unique<engine::cluster::RayActors>(engine::cluster::own_variables()), "actors of Ray"};
}

NamedProvider make_by_command(const ClusterConfig& cluster, const std::string& kept_jobs) {
  const std::string jobs = kept_jobs.empty() ? name_of_jobs() : kept_jobs;
  return {std::make_unique<engine::cluster::NodesByCommand>(cluster.commands, jobs, engine::cluster::own_variables()),
          "nodes by " + (cluster.commands.submit.empty() ? "nothing" : cluster.commands.submit.front()), jobs};
}

std::int64_t one_node(const NodeGroup&) { return 1; }
std::int64_t one_on_each_host(const NodeGroup& group) {
  return std::max<std::int64_t>(1, std::ssize(engine::cluster::hosts_of(group.options)));
}
std::int64_t all_of_the_allocation(const NodeGroup&) {
  const engine::cluster::Variables own = engine::cluster::own_variables();
  return engine::cluster::slurm::is_in_allocation(own) ? engine::cluster::slurm::allocated_nodes(own).value_or(1) : 1;
}

// An engine's name, how its provider is made, and how many nodes a group has that does not say.
struct EngineKind {
  const char* name;
  // `kept_jobs` names the jobs of a process that was killed; empty: there are none.
  NamedProvider (*make)(const ClusterConfig& cluster, const std::string& kept_jobs);
  std::int64_t (*usual_nodes)(const NodeGroup& group);
};

constexpr std::array kEngines{
    EngineKind{kSlurm, make_slurm, all_of_the_allocation}, EngineKind{kRay, make_ray, one_node},
    EngineKind{kCommands, make_by_command, one_on_each_host}, EngineKind{kProcesses, make_processes, one_node}};

const EngineKind* find_engine(const std::string& name) {
  for (const EngineKind& kind : kEngines) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string engine_names() {
  std::string names;
  for (const EngineKind& kind : kEngines) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", kind.name);
  return names;
}

NodeRequest to_request(const NodeGroup& group, const EngineKind& kind) {
  return {.group = group.name,
          .nodes = group.nodes > 0 ? group.nodes : kind.usual_nodes(group),
          .cpus = static_cast<double>(group.cpus),
          .gpus = group.gpus,
          .options = group.options};
}

std::string accelerator_type_of(const ClusterConfig& cluster, const NodeGroup& group) {
  const auto option = group.options.find("accelerator_type");
  const bool is_option_of_ray = cluster.engine == kRay && option != group.options.end();
  return group.accelerator_type.empty() && is_option_of_ray ? option->second : group.accelerator_type;
}

bool is_on_demand(const NodeGroup& group, const NodeRequest& request) {
  return group.min_nodes && *group.min_nodes < request.nodes;
}

void add_faults_of_groups(const ClusterConfig& cluster, std::vector<std::string>& faults) {
  const EngineKind* const kind = find_engine(cluster.engine);
  std::set<std::string> names;
  bool is_any_on_demand = false;
  for (const NodeGroup& group : cluster.groups) {
    const auto add = [&](const std::string& fault) {
      faults.push_back(fmt::format("cluster.groups: \"{}\": {}", group.name, fault));
    };
    names.insert(group.name);
    if (const std::string fault = resources::fault_of_labels({.labels = {{engine::cluster::group_label, group.name}}});
        !fault.empty())
      add(fmt::format("the name is that of a label, too: {}", fault));
    if (!(group.linger.count() >= 0 && group.linger <= kMostWait))
      add(fmt::format("linger is {:g} s; it must be from 0 to {} s, a day", group.linger.count(), kMostWait.count()));
    if (!(group.price >= 0 && std::isfinite(group.price)))
      add(fmt::format("price is {:g}; it must be a number of at least 0", group.price));
    if (const std::string fault =
            resources::fault_of_kinds({.gpus = static_cast<double>(std::max<std::int64_t>(group.gpus, 1)),
                                       .accelerator_type = group.accelerator_type});
        !fault.empty())
      add("accelerator_type: " + fault);
    if (!group.min_nodes || kind == nullptr) continue;
    const NodeRequest request = to_request(group, *kind);
    if (*group.min_nodes < 0 || *group.min_nodes > request.nodes)
      add(fmt::format("min_nodes is {}; it must be from 0 to nodes, which is {}", *group.min_nodes, request.nodes));
    if (!is_on_demand(group, request)) continue;
    is_any_on_demand = true;
    if (cluster.engine == kRay && group.options.contains("strategy"))
      add("min_nodes goes with no strategy: its nodes come together, and go together");
  }
  if (is_any_on_demand && names.size() < cluster.groups.size())
    faults.emplace_back(
        "cluster.groups: two have the same name; where one has min_nodes, each needs a name of its own");
}

void add_faults_of_commands(const ClusterConfig& cluster, std::vector<std::string>& faults) {
  if (cluster.engine != kCommands) {
    if (cluster.commands != NodeCommands())
      faults.push_back(fmt::format("cluster.commands are for the engine \"{}\", and cluster.engine is \"{}\"",
                                   kCommands, cluster.engine));
    return;
  }
  std::ranges::move(engine::cluster::faults_of(cluster.commands, cluster.link == kStdio), std::back_inserter(faults));
  for (const NodeGroup& group : cluster.groups)
    std::ranges::move(engine::cluster::faults_of(cluster.commands, to_request(group, *find_engine(kCommands))),
                      std::back_inserter(faults));
}

// Returns true for what agents can dial.
bool is_ip_address(const std::string& text) {
  const engine::cluster::Address address{.host = text, .port = 1};
  try {
    return engine::cluster::to_addresses(engine::cluster::to_text({address})).size() == 1;
  } catch (const InvalidArgument&) {
    return false;
  }
}

// Returns what a process that was killed has left to the run; says on standard error why it cannot be read.
std::optional<engine::cluster::KeptNodes> find_kept_nodes(const std::filesystem::path& directory) {
  if (directory.empty()) return std::nullopt;
  try {
    return engine::cluster::read_kept_nodes(directory);
  } catch (const StorageError& error) {
    std::fprintf(stderr, "cadre: %s; others are requested\n", error.what());
    return std::nullopt;
  }
}

ClusterConfig read_cluster(const std::filesystem::path& file) {
  ClusterConfig cluster;
  try {
    from_stored(cluster, Stored(base::parse_json(base::read_file(file), file.string())));
  } catch (const Error& error) {
    throw InvalidArgument(fmt::format("{} does not describe a cluster: {}", file.string(), error.what()));
  }
  return cluster;
}

// Returns true also for what cannot be looked at: to read it says why.
bool may_be_file(const std::string& text) {
  std::error_code unreadable;
  return std::filesystem::status(text, unreadable).type() != std::filesystem::file_type::not_found;
}

ClusterConfig to_cluster(const std::string& text) {
  if (find_engine(text) != nullptr) return ClusterConfig{.engine = text};
  if (!may_be_file(text))
    throw InvalidArgument(
        fmt::format("{} is \"{}\": neither an engine ({}) nor a file", cluster_variable, text, engine_names()));
  return read_cluster(text);
}

}  // namespace

std::optional<ClusterConfig> find_cluster(const std::optional<ClusterConfig>& option) {
  static std::string text;  // as it was found last: an init() that follows a shutdown() has the same cluster
  if (const char* const variable = std::getenv(cluster_variable)) text = variable;
  ::unsetenv(cluster_variable);
  return option || text.empty() ? option : to_cluster(text);
}

void set_cluster(const std::string& cluster) {
  const bool is_file = find_engine(cluster) == nullptr && may_be_file(cluster);
  const std::string text = is_file ? std::filesystem::absolute(cluster).string() : cluster;
  ::setenv(cluster_variable, text.c_str(), 1);
}

void check_cluster() {
  const char* const variable = std::getenv(cluster_variable);
  if (variable == nullptr) return;
  std::string text;
  for (const std::string& fault : faults_of(to_cluster(variable))) text += "\n  " + fault;
  if (!text.empty()) throw InvalidArgument(fmt::format("{} describes no cluster:{}", variable, text));
}

std::vector<std::string> faults_of(const ClusterConfig& cluster) {
  std::vector<std::string> faults;
  if (find_engine(cluster.engine) == nullptr)
    faults.push_back(fmt::format("cluster.engine is \"{}\"; there are {}", cluster.engine, engine_names()));
  if (cluster.groups.empty()) faults.emplace_back("cluster.groups is empty");
  for (const NodeGroup& group : cluster.groups) {
    for (const auto& [name, number] :
         {std::pair{"nodes", group.nodes}, std::pair{"cpus", group.cpus}, std::pair{"gpus", group.gpus}}) {
      if (number < 0) faults.push_back(fmt::format("cluster.groups: {} of \"{}\" is {}", name, group.name, number));
    }
    if (cluster.engine == kProcesses && !group.options.empty())
      faults.push_back(fmt::format("cluster.groups: \"{}\" has the option \"{}\", and the engine \"{}\" has none",
                                   group.name, group.options.begin()->first, kProcesses));
  }
  add_faults_of_groups(cluster, faults);
  if (cluster.engine == kRay) {
    for (const NodeGroup& group : cluster.groups) {
      const std::string fault = engine::cluster::ray::faults_of({.options = group.options});
      if (!fault.empty()) faults.push_back(fmt::format("cluster.groups: \"{}\": {}", group.name, fault));
    }
    if (cluster.link == kStdio)
      faults.push_back(
          fmt::format("cluster.link is \"{}\", and actors of Ray have no input and output here; let the "
                      "nodes dial (\"{}\")",
                      kStdio, kPort));
  }
  add_faults_of_commands(cluster, faults);
  if (cluster.link != kPort && cluster.link != kStdio)
    faults.push_back(fmt::format("cluster.link is \"{}\"; there are \"{}\", \"{}\"", cluster.link, kPort, kStdio));
  if (cluster.link == kStdio && cluster.engine == kSlurm &&
      !engine::cluster::slurm::is_in_allocation(engine::cluster::own_variables()))
    faults.push_back(fmt::format(
        "cluster.link is \"{}\", and this program is in no allocation of Slurm: jobs from the queue have no input and "
        "output here; start the program with sbatch or salloc, or let the nodes dial (\"{}\")",
        kStdio, kPort));
  if (cluster.link == kStdio && !cluster.addresses.empty())
    faults.push_back(
        fmt::format("cluster.addresses are {}, and with cluster.link \"{}\" no node dials this machine; "
                    "leave them out",
                    fmt::join(cluster.addresses, ", "), kStdio));
  for (const std::string& address : cluster.addresses) {
    if (!is_ip_address(address))
      faults.push_back(
          fmt::format("cluster.addresses has \"{}\", which is no IP address; the nodes' agents dial addresses of this "
                      "machine such as 10.0.0.1 or fd00::1",
                      address));
  }
  if (!(cluster.patience >= kLeastPatience))
    faults.push_back(
        fmt::format("cluster.patience is {:g} s; it must be at least {} s, because an agent that is cut off "
                    "ends its workers after 20 s",
                    cluster.patience.count(), kLeastPatience.count()));
  for (const auto& [name, time] :
       {std::pair{"nodes_stay", cluster.nodes_stay}, std::pair{"drain_before", cluster.drain_before}}) {
    if (!(time.count() >= 0 && time <= kMostWait))
      faults.push_back(
          fmt::format("cluster.{} is {:g} s; it must be from 0 to {} s, a day", name, time.count(), kMostWait.count()));
  }
  return faults;
}

std::unique_ptr<engine::cluster::ClusterEngine> make_cluster(const ClusterConfig& cluster,
                                                             const std::vector<std::string>& command,
                                                             const std::filesystem::path& directory) {
  const EngineKind& kind = *find_engine(cluster.engine);
  if (command.empty()) throw EngineError("this program has no command by which it can be started on other nodes");
  std::optional<engine::cluster::KeptNodes> kept = find_kept_nodes(directory);
  NamedProvider made = kind.make(cluster, kept ? kept->jobs : "");
  const bool is_over_stdio = cluster.link == kStdio;
  engine::cluster::ClusterOptions options{
      .start = {.command = command, .directory = std::filesystem::current_path(), .over_stdio = is_over_stdio},
      .addresses = cluster.addresses,
      .patience = std::chrono::ceil<std::chrono::seconds>(base::to_nanoseconds(cluster.patience)),
      .directory = directory,
      .owner = {.host = base::host_name(),
                .provider = made.name,
                .command = command,
                .working_directory = std::filesystem::current_path(),
                .jobs = made.jobs},
      .kept = std::move(kept),
      .stays = directory.empty() || is_over_stdio ? std::chrono::duration<double>(0) : cluster.nodes_stay,
      .drain_before = cluster.drain_before};
  for (const NodeGroup& group : cluster.groups) {
    const NodeRequest& request = options.requests.emplace_back(to_request(group, kind));
    options.prices[group.name] = group.price;
    if (is_on_demand(group, request))
      options.on_demand[group.name] = {
          .least = *group.min_nodes,
          .accelerator_type = accelerator_type_of(cluster, group),
          .linger = std::chrono::duration_cast<std::chrono::steady_clock::duration>(group.linger)};
  }
  return std::make_unique<engine::cluster::ClusterEngine>(std::move(made.provider), std::move(options));
}

}  // namespace cadre::worker
