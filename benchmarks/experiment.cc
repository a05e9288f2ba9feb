#include "experiment.h"

#include <ctime>

#include "parts.h"

namespace cadre::bench {

namespace {

// Returns the CPU time that all threads of this process have taken.
double own_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void init_with_slots(std::int64_t slots, std::int64_t nodes) {
  const std::int64_t slots_each = nodes > 0 ? (slots + nodes - 1) / nodes : slots;
  static std::string words[] = {"cadre_bench", kPartOption, "fork-server", std::to_string(slots_each)};
  static char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  InitOptions options{.num_cpus = static_cast<double>(slots_each)};
  if (nodes > 0) options.cluster = ClusterConfig{.engine = "processes", .groups = {{.nodes = nodes}}};
  cadre::init(4, argv, options);
}

Dict be_fork_server(const Arguments& arguments) {
  cadre::init(arguments.argc, arguments.argv, {.num_cpus = std::stod(arguments[0])});
  throw Error("this process was not started to be a fork server, or an agent");
}

Run run_experiment(const Setup& setup) {
  Process process = Process::fork([&] {
    init_with_slots(setup.slots, setup.nodes);
    tune::TunerOptions options = setup.options;
    options.run_config.verbose = 0;
    tune::Tuner tuner(setup.trainable, std::move(options));
    const Stopwatch stopwatch;
    const double cpu_before = own_cpu_seconds();
    tuner.fit();
    return Dict{{"wall_s", stopwatch.seconds()}, {"controller_cpu_s", own_cpu_seconds() - cpu_before}};
  });
  const Process::Ended ended = process.wait();
  const Config said(ended.said);
  const tune::RunConfig& run = setup.options.run_config;
  return {.wall_s = said.get<double>("wall_s"),
          .controller_cpu_s = said.get<double>("controller_cpu_s"),
          .usage = ended.usage,
          .directory = run.storage_path / run.name};
}

Dict count(const std::filesystem::path& experiment) {
  const tune::ResultGrid trials = tune::ResultGrid::from_directory(experiment);
  std::size_t results = 0;
  std::size_t exploits = 0;
  std::size_t checkpoints = 0;
  for (const tune::Result& trial : trials) {
    results += trial.num_results();
    exploits += trial.exploits.size();
    checkpoints += trial.best_checkpoints.size();
  }
  return {{"trials", trials.size()},       {"terminated", trials.num_terminated()},
          {"errors", trials.num_errors()}, {"results", results},
          {"exploits", exploits},          {"checkpoints", checkpoints}};
}

}  // namespace cadre::bench
