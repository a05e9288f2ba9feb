// Trials on the nodes of a cluster, beside the same on this machine: two agents here, connected by TLS.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "process.h"
#include "simulated_experiment.h"
#include "statistics.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

constexpr std::int64_t kNodes = 2;

struct Settings {
  std::int64_t trials = 200;
  std::int64_t reports = 20'000;  // in all
  std::int64_t workers = 1000;
  std::int64_t agents = 50;
  std::int64_t reports_each = 300;
  std::int64_t simulated_trials = 50'000;
  std::int64_t simulated_nodes = 10'000;
  std::int64_t rounds = 3;
  std::filesystem::path storage_path;
};

void report_so_often(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  for (std::int64_t i = 1; i <= reports; ++i)
    tune::report({{"loss", 1 / static_cast<double>(i)}, {"accuracy", 1e-5 * static_cast<double>(i)}, {"epoch", i}});
}

// Runs an experiment. Throws Error if a trial has failed: what it did not do took no time.
Run run_without_errors(const Setup& setup) {
  Run run = run_experiment(setup);
  if (Config(count(run.directory)).get<double>("errors") > 0)
    throw Error("trials have failed; cadre show " + run.directory.string() + " says why");
  return run;
}

// Returns the order of a round, true for on nodes: each side begins in every other round, so that neither always finds
// what the other has left behind.
std::array<bool, 2> in_turns(std::int64_t round) {
  const bool nodes_begin = round % 2 != 0;
  return {nodes_begin, !nodes_begin};
}

// Measures trials with so many reports each, in turns here and on nodes. Prints a line; its figure is the ratio of what
// nodes take to what this machine takes.
void compare(const Settings& settings, std::int64_t trials, std::int64_t reports, std::int64_t slots,
             const std::string& figure, double limit) {
  double cpu_s = 0;
  std::vector<double> here;
  std::vector<double> nodes;
  std::vector<double> ratios;
  std::vector<double> cpu_ratios;
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    double controller_here_s = 0;
    double controller_on_nodes_s = 0;
    for (const bool on_nodes : in_turns(round)) {
      const std::string name = fmt::format("{}_trials_{}_{}", trials, on_nodes ? "on_nodes" : "here", round);
      const Run run =
          run_without_errors({.trainable = fn<report_so_often>,
                              .options = {.param_space = {{"reports", reports}},
                                          .tune_config = {.num_samples = trials},
                                          .run_config = {.name = name, .storage_path = settings.storage_path}},
                              .slots = slots,
                              .nodes = on_nodes ? kNodes : 0});
      cpu_s += run.usage.cpu_s;
      (on_nodes ? controller_on_nodes_s : controller_here_s) = run.controller_cpu_s;
      (on_nodes ? nodes : here).push_back(run.wall_s);
    }
    ratios.push_back(nodes.back() / here.back());
    cpu_ratios.push_back(controller_on_nodes_s / controller_here_s);
  }
  const double ratio = median(ratios);
  std::vector<Figure> figures{
      {.name = figure, .value = ratio, .unit = "", .budget = Budget::at_most(limit), .ratio = ratio}};
  const double cpu_ratio = median(cpu_ratios);
  if (reports > 0)
    figures.push_back({.name = figure + ": the controller's CPU",
                       .value = cpu_ratio,
                       .unit = "",
                       .budget = Budget::at_most(1.25),
                       .ratio = cpu_ratio});
  print_line(
      "cluster", {{"trials", trials}, {"reports", reports}, {"slots", slots}, {"nodes", kNodes}}, median(nodes), cpu_s,
      {{"here_s", median(here)}, {"nodes_s", median(nodes)}, {"ratio", ratio}, {"controller_cpu_ratio", cpu_ratio}},
      figures);
}

// ---- Many workers

constexpr const char* kBegunFile = "begun";      // beside the experiments; each trial that is there appends a byte
constexpr const char* kLatencies = "latencies";  // of a trial's reports, in seconds, after the times of first and last

// Waits until all trials are there, then reports so often.
void report_together(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  const std::filesystem::path begun = config.get<std::string>("begun");
  std::ofstream(begun, std::ios::app) << '.' << std::flush;
  while (std::filesystem::file_size(begun) < static_cast<std::uintmax_t>(config.get<std::int64_t>("trials")))
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::vector<double> latencies;
  const double first = now_seconds();
  for (std::int64_t i = 1; i <= reports; ++i) {
    const double before = now_seconds();
    tune::report({{"loss", 1 / static_cast<double>(i)}, {"accuracy", 1e-5 * static_cast<double>(i)}, {"epoch", i}});
    latencies.push_back(now_seconds() - before);
  }
  std::ofstream file(tune::get_context().get_trial_dir() / kLatencies);
  file.precision(17);
  file << first << ' ' << now_seconds();
  for (const double latency : latencies) file << ' ' << latency;
}

struct Together {
  double reports_per_s = 0;  // while all trials report
  double p99_s = 0;          // of the durations of report()
  double wall_s = 0;         // of the run
  double cpu_s = 0;          // of all processes
};

Together report_from(const Settings& settings, const std::string& name, std::int64_t trials, std::int64_t nodes) {
  const std::filesystem::path begun = settings.storage_path / (name + "_" + kBegunFile);
  const std::int64_t each = std::max<std::int64_t>(1, settings.workers * settings.reports_each / trials);
  const Run run =
      run_without_errors({.trainable = fn<report_together>,
                          .options = {.param_space = {{"reports", each}, {"trials", trials}, {"begun", begun.string()}},
                                      .tune_config = {.num_samples = trials},
                                      .run_config = {.name = name, .storage_path = settings.storage_path}},
                          .slots = trials,
                          .nodes = nodes});
  std::vector<double> all;
  double first = now_seconds();
  double last = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.directory)) {
    std::ifstream file(entry.path() / kLatencies);
    double began = 0;
    double ended = 0;
    if (!(file >> began >> ended)) continue;
    first = std::min(first, began);
    last = std::max(last, ended);
    for (double latency = 0; file >> latency;) all.push_back(latency);
  }
  const auto count = static_cast<double>(all.size());
  return {.reports_per_s = count / (last - first),
          .p99_s = quantile(all, 0.99),
          .wall_s = run.wall_s,
          .cpu_s = run.usage.cpu_s};
}

// Measures reports of many workers on many agents, in turns with as many on this machine, which are too many for its
// caches, too, and with 16 trials on it.
void compare_many(const Settings& settings) {
  constexpr std::int64_t kHere = 16;
  std::vector<double> here;
  std::vector<double> as_many_here;
  std::vector<double> nodes;
  std::vector<double> ratios;
  std::vector<double> ratios_to_as_many;
  std::vector<double> p99;
  std::vector<double> wall;
  double cpu_s = 0;
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    for (const bool on_nodes : in_turns(round)) {
      if (on_nodes) {
        const Together many =
            report_from(settings, fmt::format("together_on_nodes_{}", round), settings.workers, settings.agents);
        nodes.push_back(many.reports_per_s);
        p99.push_back(many.p99_s);
        wall.push_back(many.wall_s);
        cpu_s += many.cpu_s;
      } else {
        here.push_back(report_from(settings, fmt::format("together_here_{}", round), kHere, 0).reports_per_s);
        as_many_here.push_back(
            report_from(settings, fmt::format("together_as_many_here_{}", round), settings.workers, 0).reports_per_s);
      }
    }
    ratios.push_back(here.back() / nodes.back());
    ratios_to_as_many.push_back(as_many_here.back() / nodes.back());
  }
  const double ratio = median(ratios);
  const double ratio_to_as_many = median(ratios_to_as_many);
  print_line("cluster",
             {{"workers", settings.workers}, {"agents", settings.agents}, {"reports_each", settings.reports_each}},
             median(wall), cpu_s,
             {{"here_reports_per_s", median(here)},
              {"as_many_here_reports_per_s", median(as_many_here)},
              {"nodes_reports_per_s", median(nodes)},
              {"p99_ms", median(p99) * 1e3},
              {"ratio", ratio}},
             {{.name = "reports of many workers on many agents, beside 16 trials on this machine",
               .value = ratio,
               .unit = "",
               .budget = Budget::at_most(1 / 0.9),
               .ratio = ratio},
              {.name = "reports of many workers on many agents, beside as many on this machine",
               .value = ratio_to_as_many,
               .unit = "",
               .budget = Budget::at_most(1 / 0.9),
               .ratio = ratio_to_as_many},
              {.name = "99th percentile of report() on them",
               .value = median(p99) * 1e3,
               .unit = "ms",
               .budget = Budget::at_most(100)}});
}

// ---- Simulated nodes

void return_on_a_node(const Config&) {}

// Measures trials on many simulated nodes that come and go, in turns with as many trials at a time on one machine: what
// the controller and the store take.
void compare_simulated(const Settings& settings) {
  double cpu_s = 0;
  std::vector<double> here;
  std::vector<double> nodes;
  std::vector<double> ratios;
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    for (const bool on_nodes : in_turns(round)) {
      const std::string name = fmt::format("simulated_{}_{}", on_nodes ? "on_nodes" : "here", round);
      Process process = Process::fork([&] {
        return Dict{{"wall_s", run_simulated_experiment(
                                   {.trainable = fn<return_on_a_node>,
                                    .options = {.tune_config = {.num_samples = settings.simulated_trials},
                                                .run_config = {.name = name, .storage_path = settings.storage_path}},
                                    .slots = settings.simulated_nodes,
                                    .has_nodes = on_nodes,
                                    .trial_time = std::chrono::minutes(1)})}};
      });
      const Process::Ended ended = process.wait();
      cpu_s += ended.usage.cpu_s;
      (on_nodes ? nodes : here).push_back(Config(ended.said).get<double>("wall_s"));
    }
    ratios.push_back(nodes.back() / here.back());
  }
  const double ratio = median(ratios);
  const auto trials = static_cast<double>(settings.simulated_trials);
  print_line("cluster",
             {{"simulated_trials", settings.simulated_trials}, {"simulated_nodes", settings.simulated_nodes}},
             median(nodes), cpu_s,
             {{"here_us_per_trial", median(here) / trials * 1e6},
              {"nodes_us_per_trial", median(nodes) / trials * 1e6},
              {"ratio", ratio}},
             {{.name = "simulated trials on nodes that come and go, beside one machine",
               .value = ratio,
               .unit = "",
               .budget = Budget::at_most(1.5),
               .ratio = ratio}});
}

void measure(const Settings& settings) {
  compare(settings, settings.trials, 0, 4, "empty trials on two nodes, beside this machine", 1.3);
  compare(settings, 1, settings.reports, kNodes, "reports of 1 trial on a node, beside this machine", 1 / 0.5);
  compare(settings, 16, settings.reports / 16, 16, "reports of 16 trials on two nodes, beside this machine", 1 / 0.6);
  compare_many(settings);
  compare_simulated(settings);
}

}  // namespace

void add_cluster(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "cluster", "trials on two nodes, beside this machine", settings, measure);
  workload.option("--trials", &settings->trials, "that are empty");
  workload.option("--reports", &settings->reports, "of all trials that report");
  workload.option("--workers", &settings->workers, "that report at the same time");
  workload.option("--agents", &settings->agents, "on which they are");
  workload.option("--reports-each", &settings->reports_each, "of each of these");
  workload.option("--simulated-trials", &settings->simulated_trials, "on nodes that are simulated");
  workload.option("--simulated-nodes", &settings->simulated_nodes, "that come and go");
  workload.option("--rounds", &settings->rounds, "in turns, of which the medians count");
}

}  // namespace cadre::bench
