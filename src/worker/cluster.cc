#include "worker/cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "engine/cluster/processes.h"
#include "engine/cluster/slurm.h"
#include "engine/cluster/slurm_jobs.h"
#include "engine/cluster/slurm_steps.h"

namespace cadre::worker {
namespace {

using engine::cluster::NodeRequest;
using engine::cluster::Provider;

constexpr std::chrono::seconds kLeastPatience{25};

std::unique_ptr<Provider> make_processes() { return std::make_unique<engine::cluster::Processes>(); }

// Names the jobs of an engine, so that they differ from those of all others, also of this process.
std::string name_of_jobs() {
  static std::atomic<int> engines = 0;
  return fmt::format("{}-{}-{}-{}", base::host_name(), ::getpid(), static_cast<std::int64_t>(base::wall_seconds()),
                     ++engines);
}

std::unique_ptr<Provider> make_slurm() {
  engine::cluster::Variables own = engine::cluster::own_variables();
  if (engine::cluster::slurm::is_in_allocation(own))
    return std::make_unique<engine::cluster::SlurmSteps>(std::move(own));
  return std::make_unique<engine::cluster::SlurmJobs>(name_of_jobs(), std::move(own));
}

std::int64_t one_node() { return 1; }
std::int64_t all_of_the_allocation() {
  const engine::cluster::Variables own = engine::cluster::own_variables();
  return engine::cluster::slurm::is_in_allocation(own) ? engine::cluster::slurm::allocated_nodes(own).value_or(1) : 1;
}

// An engine's name, how its provider is made, and how many nodes a group has that does not say.
struct EngineKind {
  const char* name;
  std::unique_ptr<Provider> (*make)();
  std::int64_t (*usual_nodes)();
};

constexpr std::array kEngines{EngineKind{"slurm", make_slurm, all_of_the_allocation},
                              EngineKind{"processes", make_processes, one_node}};

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

ClusterConfig read_cluster(const std::filesystem::path& file) {
  ClusterConfig cluster;
  try {
    from_stored(cluster, Stored(base::parse_json(base::read_file(file), file.string())));
  } catch (const Error& error) {
    throw InvalidArgument(fmt::format("{} does not describe a cluster: {}", file.string(), error.what()));
  }
  return cluster;
}

ClusterConfig to_cluster(const std::string& text) {
  if (find_engine(text) != nullptr) return ClusterConfig{.engine = text};
  if (!std::filesystem::exists(text))
    throw InvalidArgument(
        fmt::format("{} is \"{}\": neither an engine ({}) nor a file", cluster_variable, text, engine_names()));
  return read_cluster(text);
}

}  // namespace

std::optional<ClusterConfig> find_cluster(const std::optional<ClusterConfig>& option) {
  const char* const variable = std::getenv(cluster_variable);
  const std::string text = variable == nullptr ? "" : variable;
  ::unsetenv(cluster_variable);
  return option || text.empty() ? option : to_cluster(text);
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
  }
  if (!(cluster.patience >= kLeastPatience))
    faults.push_back(
        fmt::format("cluster.patience is {:g} s; it must be at least {} s, because an agent that is cut off "
                    "ends its workers after 20 s",
                    cluster.patience.count(), kLeastPatience.count()));
  return faults;
}

std::unique_ptr<engine::cluster::ClusterEngine> make_cluster(const ClusterConfig& cluster,
                                                             const std::vector<std::string>& command) {
  const EngineKind& kind = *find_engine(cluster.engine);
  if (command.empty()) throw EngineError("this program has no command by which it can be started on other nodes");
  engine::cluster::ClusterOptions options{
      .start = {.command = command, .directory = std::filesystem::current_path()},
      .addresses = cluster.addresses,
      .patience = std::chrono::seconds(static_cast<std::int64_t>(std::ceil(cluster.patience.count())))};
  for (const NodeGroup& group : cluster.groups)
    options.requests.push_back({.group = group.name,
                                .nodes = group.nodes > 0 ? group.nodes : kind.usual_nodes(),
                                .cpus = static_cast<double>(group.cpus),
                                .gpus = group.gpus,
                                .options = group.options});
  return std::make_unique<engine::cluster::ClusterEngine>(kind.make(), std::move(options));
}

}  // namespace cadre::worker
