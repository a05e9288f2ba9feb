#include "cadre/init.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "cadre/error.h"
#include "engine/cluster/agent.h"
#include "engine/cluster/carrier.h"
#include "engine/cluster/cluster_engine.h"
#include "engine/cluster/lease.h"
#include "engine/cluster/stdio.h"
#include "engine/forwarding_engine.h"
#include "engine/local/fork_server.h"
#include "engine/local/local_engine.h"
#include "resources/gpu_kinds.h"
#include "resources/gpus.h"
#include "resources/machine_labels.h"
#include "resources/resource_ledger.h"
#include "worker/cluster.h"
#include "worker/entries.h"
#include "worker/given_nodes.h"
#include "worker/host.h"
#include "worker/root_engine.h"
#include "worker/uncaught_errors.h"
#include "worker/worker.h"

namespace cadre {
namespace {

// State set up by cadre::init in this process, or set at the start of a worker that may start workers; empty in other
// processes.
struct Process {
  Resources resources;
  std::unique_ptr<engine::local::ForkServerConnection> server;
  std::optional<ClusterConfig> cluster = {};
  std::vector<std::string> command = {};                            // this program, for agents
  std::unique_ptr<engine::cluster::ClusterEngine> nodes = nullptr;  // made when they are needed first
};

std::unique_ptr<Process>& process() {
  static std::unique_ptr<Process> instance;
  return instance;
}

bool init_was_called = false;

// The resources of this machine; workers inherit them.
Resources& machine() {
  static Resources instance{.cpus = 0};
  return instance;
}

void check_amount(std::vector<std::string>& faults, const std::string& name, double amount,
                  double most = resources::kMostOfAResource) {
  if (!(amount >= 0 && amount <= most))
    faults.push_back(name + " is " + to_json(amount) + "; it must be a number from 0 to " + to_json(most));
}

std::vector<std::string> faults_of(const InitOptions& options) {
  std::vector<std::string> faults;
  check_amount(faults, "num_cpus", options.num_cpus.value_or(0));
  check_amount(faults, "num_gpus", options.num_gpus.value_or(0), resources::kMostGpus);
  for (const auto& [name, amount] : options.resources) {
    check_amount(faults, "resource \"" + name + "\"", amount);
    if (name.empty()) faults.emplace_back("a resource has no name");
  }
  if (options.accelerator_type) {
    const double gpus = options.num_gpus.value_or(resources::count_gpus());
    if (std::string fault = resources::fault_of_kinds({.gpus = gpus, .accelerator_type = *options.accelerator_type});
        !fault.empty())
      faults.push_back("accelerator_type: " + fault);
  }
  if (std::string fault = resources::fault_of_labels({.labels = options.labels}); !fault.empty())
    faults.push_back("labels: " + fault);
  if (options.cluster) {
    for (std::string& fault : worker::faults_of(*options.cluster)) faults.push_back(std::move(fault));
  }
  for (const std::string& name : worker::duplicate_entry_names()) {
    faults.push_back("two functions are registered under the name \"" + name + "\"; give one of them another name");
  }
  return faults;
}

void check(const InitOptions& options) {
  std::string text;
  for (const std::string& fault : faults_of(options)) text += "\n  " + fault;
  if (!text.empty()) throw InvalidArgument("cadre::init cannot start:" + text);
}

Resources resources_of(const InitOptions& options) {
  Resources resources = engine::local::machine_resources();
  resources.cpus = options.num_cpus.value_or(resources.cpus);
  resources.gpus = options.num_gpus.value_or(resources::count_gpus());
  resources.custom = options.resources;
  if (resources.gpus > 0) resources.accelerator_type = resources::accelerator_types();
  if (!resources::fault_of_kinds(resources).empty()) resources.accelerator_type.clear();  // num_gpus is another number
  if (options.accelerator_type) resources.accelerator_type = *options.accelerator_type;
  resources.labels = options.labels;
  return resources;
}

// Raises the soft limit of open files to the hard limit. A live trial needs a handful of open files, and the usual soft
// limit of 1024 is meant for programs that use select(). Workers keep the old limit, because the fork server has
// started before.
void allow_many_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Does not return in the server.
std::unique_ptr<engine::local::ForkServer> start_server(const InitOptions& options, char** argv,
                                                        const std::vector<int>& not_inherited) {
  using engine::local::ForkServer;
  Host* const host = options.host;
  if (host == nullptr) {
    ForkServer::run_if_executed(worker::run_worker, options.preload);
    return ForkServer::start(worker::run_worker, options.preload, argv, not_inherited);
  }
  ForkServer::run_if_executed(worker::run_worker,
                              [&] {
                                if (options.preload != nullptr) options.preload();
                                host->before_first_fork();
                              },
                              {.fd = host->server_input(), .handle = [host] { host->on_server_input(); }});
  return ForkServer::execute(host->server_command());
}

// Returns this program and its arguments; empty for a host.
std::vector<std::string> own_command(int argc, char** argv) {
  if (argc == 0) return {};
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe")};
  for (int i = 1; i < argc; ++i) command.emplace_back(argv[i]);
  return command;
}

// For a run that has ended.
class IdleEngine final : public engine::ForwardingEngine {
 public:
  explicit IdleEngine(std::unique_ptr<engine::Engine> inner) : ForwardingEngine(*inner), inner_(std::move(inner)) {}
  void start(engine::WorkerId, const engine::WorkerSpec&) override {
    throw EngineError("a run that has ended was to start a worker: that is a mistake in Cadre");
  }

 private:
  std::unique_ptr<engine::Engine> inner_;
};

bool runs_on_nodes(const Process& process) { return process.cluster || worker::has_given_nodes(); }

// Returns the nodes for a run in a directory, which are requested the first time. Nodes that wait for the run are
// better than those that this process has had so far.
engine::cluster::ClusterEngine& nodes_for(Process& process, const std::filesystem::path& directory) {
  if (process.nodes != nullptr && engine::cluster::has_kept_nodes(directory) && process.nodes->claim())
    process.nodes.reset();
  if (process.nodes == nullptr && worker::has_given_nodes()) process.nodes = worker::make_cluster_of_given_nodes();
  if (process.nodes == nullptr) {
    Host* const host = worker::find_host();
    process.nodes =
        worker::make_cluster(*process.cluster, host == nullptr ? process.command : host->agent_command(), directory);
  }
  return *process.nodes;
}

engine::cluster::ClusterEngine& requested_nodes(Process& process) {
  if (process.nodes == nullptr)
    throw std::logic_error("a run's nodes were asked for before its engine was made: that is a mistake in Cadre");
  return *process.nodes;
}

Process& initialised_process() {
  if (process() != nullptr) return *process();
  if (!init_was_called) worker::report_uncaught_errors();  // otherwise init() does it
  throw EngineError(init_was_called
                        ? "this worker cannot start workers of its own. A trial can, when its trainable has a "
                          "PlacementGroup with a bundle for each of them (tune::with_resources), and a validator when "
                          "ValidationConfig::workers has"
                        : "cadre::init was not called; it must be at the beginning of main");
}

}  // namespace

void init(int argc, char** argv, const InitOptions& given) {
  if (init_was_called) throw InvalidArgument("cadre::init was called twice; it is for the beginning of main only");
  const auto agent = engine::cluster::take_agent_settings();  // which workers must not inherit
  // Before anything is printed here or in the fork server.
  engine::cluster::StandardStreams streams;
  if (agent && agent->over_stdio) streams = engine::cluster::take_standard_streams();
  base::open_closed_standard_streams();
  InitOptions options = given;
  options.cluster = worker::find_cluster(given.cluster);
  check(options);
  machine() = resources_of(options);  // before the fork server exists
  if (agent && agent->cpus && !options.num_cpus) machine().cpus = std::min(machine().cpus, *agent->cpus);
  if (agent && !agent->group.empty()) machine().labels.try_emplace(engine::cluster::group_label, agent->group);
  worker::set_host(options.host);
  init_was_called = true;  // also in workers
  try {
    process() = std::make_unique<Process>(
        Process{.resources = machine(),
                .server = start_server(options, argv, {streams.input.get(), streams.output.get()}),
                .cluster = options.cluster,
                .command = options.cluster ? own_command(argc, argv) : std::vector<std::string>()});
  } catch (...) {
    init_was_called = false;
    throw;
  }
  allow_many_open_files();
  if (agent) {
    engine::local::LocalEngine engine(*process()->server, process()->resources);
    engine::cluster::run_agent(*agent, std::move(streams), engine, resources::gpu_names(process()->resources.gpus));
  }
  if (options.host == nullptr) worker::report_uncaught_errors();  // a host reports its own
}

void shutdown() {
  if (process() == nullptr) return;
  if (!process()->server->claim())
    throw InvalidArgument("cadre::shutdown was called while something runs: it is for after fit()");
  process().reset();
  init_was_called = false;
}

namespace worker {

std::unique_ptr<engine::Engine> make_root_engine(const std::filesystem::path& directory,
                                                 const std::vector<std::filesystem::path>& marks) {
  Process& process = initialised_process();
  if (!runs_on_nodes(process)) return make_local_engine();
  engine::cluster::ClusterEngine& nodes = nodes_for(process, directory);
  // Given nodes are gone when this process is killed.
  const std::filesystem::path found_in = has_given_nodes() ? std::filesystem::path() : directory;
  auto lease = std::make_unique<engine::cluster::Lease>(nodes, found_in, marks);
  if (marks.empty() || !lease->seen().empty()) return lease;
  return std::make_unique<engine::cluster::Carrier>(std::move(lease), nodes, directory);
}

std::unique_ptr<engine::local::LocalEngine> make_local_engine() {
  Process& process = initialised_process();
  return std::make_unique<engine::local::LocalEngine>(*process.server, process.resources);
}

std::unique_ptr<engine::Engine> make_idle_engine() { return std::make_unique<IdleEngine>(make_further_engine()); }

std::unique_ptr<engine::Engine> make_further_engine() {
  Process& process = initialised_process();
  return std::make_unique<engine::local::LocalEngine>(process.server->connect(), process.resources);
}

Resources root_resources() { return initialised_process().resources; }

bool has_cluster() { return runs_on_nodes(initialised_process()); }

bool awaits_nodes() {
  Process& process = initialised_process();
  return runs_on_nodes(process) && requested_nodes(process).awaits_nodes();
}

std::vector<engine::Node> root_nodes() {
  Process& process = initialised_process();
  if (runs_on_nodes(process)) return requested_nodes(process).nodes();
  return {{.resources = process.resources}};
}

void start_workers_through(base::FileDescriptor fork_server) {
  process() = std::make_unique<Process>(
      Process{{.cpus = 0}, std::make_unique<engine::local::ForkServerConnection>(std::move(fork_server))});
}

void set_root_resources(Resources resources) {
  resources.labels = machine().labels;
  initialised_process().resources = std::move(resources);
}

}  // namespace worker
}  // namespace cadre
