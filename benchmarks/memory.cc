// Memory use of the controller, the fork server and trials: idle, with running trials, and with parked ones.
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "gate.h"
#include "learner.h"
#include "memory_use.h"
#include "parts.h"
#include "plain.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::int64_t trials = 16;
  fs::path storage_path;
};

// ---- Trainables. All trials have trained before their memory is measured.

void train_briefly() {
  Learner learner(0.01);
  learner.train({});
}

void train_and_return(const Config&) { train_briefly(); }

void train_and_come_to_the_gate(const Config& config) {
  train_briefly();
  tune::report({{"score", config.get<double>("lr")}});
  pass_gate(config.get<std::string>("gate"));
}

// Runs on one slot, with a synchronous schedule: when the last trial arrives at the gate, all others are parked.
void park_or_come_to_the_gate(const Config& config) {
  const bool is_last = std::stoll(tune::get_context().get_trial_id()) + 1 == config.get<std::int64_t>("trials");
  train_briefly();
  if (is_last) pass_gate(config.get<std::string>("gate"));
  for (;;) tune::report({{"score", config.get<double>("lr")}});
}

// ---- Programs that are measured

tune::TunerOptions options_of(const std::string& name, const fs::path& storage_path, const std::string& gate,
                              std::int64_t trials) {
  return {.param_space = {{"lr", tune::uniform(0.001, 1)}, {"gate", gate}, {"trials", trials}},
          .tune_config = {.num_samples = trials},
          .run_config = {.name = name, .storage_path = storage_path, .verbose = 0}};
}

// Trains in one trial, then arrives at the gate itself, after the experiment.
void be_idle(const fs::path& storage_path, const std::string& gate) {
  init_with_slots(1);
  tune::Tuner(fn<train_and_return>, options_of("idle", storage_path, gate, 1)).fit();
  pass_gate(gate);
}

void run_trials(const fs::path& storage_path, const std::string& gate, std::int64_t trials) {
  init_with_slots(trials);
  tune::Tuner(fn<train_and_come_to_the_gate>, options_of("running", storage_path, gate, trials)).fit();
}

void park_trials(const fs::path& storage_path, const std::string& gate, std::int64_t trials) {
  init_with_slots(1);
  tune::TunerOptions options = options_of("parked", storage_path, gate, trials);
  options.tune_config.scheduler =
      tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                    .metric = tune::maximize("score"),
                                    .perturbation_interval = 1,
                                    .hyperparam_mutations = {{"lr", tune::uniform(0.001, 1)}},
                                    .quantile_fraction = 0,  // no trial exploits, so none saves
                                    .synch = true};
  options.tune_config.parking.min_free_memory = 0;  // parks whatever else runs on this machine
  options.run_config.stop = {{"training_iteration", 2}};
  tune::Tuner(fn<park_or_come_to_the_gate>, std::move(options)).fit();
}

// ---- Measurements

struct Program {
  MemoryUse controller;
  MemoryUse fork_server;
  MemoryUse watcher = {};  // the server's child that is not a worker
  std::vector<MemoryUse> workers = {};
  std::int64_t paused = 0;  // number of trials
  double wall_s = 0;
  double cpu_s = 0;

  // Returns the sum over all processes, in bytes.
  std::int64_t anonymous() const {
    std::int64_t sum = controller.anonymous + fork_server.anonymous + watcher.anonymous;
    for (const MemoryUse& worker : workers) sum += worker.anonymous;
    return sum;
  }
};

std::int64_t largest_private(const std::vector<MemoryUse>& processes) {
  std::int64_t largest = 0;
  for (const MemoryUse& use : processes) largest = std::max(largest, use.private_);
  return largest;
}

std::vector<MemoryUse> memory_of_children(pid_t parent) {
  std::vector<MemoryUse> children;
  for (const pid_t process : children_of(parent)) children.push_back(memory_of(process));
  return children;
}

bool is_watcher(pid_t process) { return base::read_file(fmt::format("/proc/{}/comm", process)) == "cadre-watcher\n"; }

// Executes a part, and measures its processes when `arrivals` of them have arrived at the gate.
Program look_at(const Settings& settings, const std::string& what, std::int64_t arrivals) {
  const Gate gate(settings.storage_path / (what + "_gate"));
  Process process = Process::execute(
      "hold-trials", {what, settings.storage_path.string(), gate.path().string(), std::to_string(settings.trials)});
  gate.await(arrivals, process);
  const std::vector<pid_t> children = children_of(process.id());
  if (children.size() != 1) throw Error("a controller has one child, its fork server");
  Program program{.controller = memory_of(process.id()), .fork_server = memory_of(children.front())};
  for (const pid_t child : children_of(children.front()))
    is_watcher(child) ? void(program.watcher = memory_of(child)) : program.workers.push_back(memory_of(child));
  for (const tune::Result& trial : tune::ResultGrid::from_directory(settings.storage_path / what))
    program.paused += trial.status == tune::TrialStatus::paused ? 1 : 0;
  gate.open(arrivals);
  const Process::Ended ended = process.wait();
  program.wall_s = ended.seconds;
  program.cpu_s = ended.usage.cpu_s;
  return program;
}

std::vector<MemoryUse> look_at_plain_forks(const Settings& settings) {
  const Gate gate(settings.storage_path / "plain_gate");
  Process process = Process::execute("hold-plain-forks", {gate.path().string(), std::to_string(settings.trials)});
  gate.await(settings.trials, process);
  std::vector<MemoryUse> forks = memory_of_children(process.id());
  gate.open(settings.trials);
  process.wait();
  return forks;
}

Dict to_dict(const std::string& name, const Program& program) {
  return {{name + "_controller_resident_mb", megabytes(program.controller.resident)},
          {name + "_controller_private_mb", megabytes(program.controller.private_)},
          {name + "_fork_server_private_mb", megabytes(program.fork_server.private_)},
          {name + "_anonymous_mb", megabytes(program.anonymous())},
          {name + "_workers", program.workers.size()},
          {name + "_paused", program.paused},
          {name + "_worker_private_mb", megabytes(largest_private(program.workers))}};
}

void measure(const Settings& settings) {
  const Config own(Process::execute("own-memory", {}).wait().said);
  const Program idle = look_at(settings, "idle", 1);
  const Program running = look_at(settings, "running", settings.trials);
  const Program parked = look_at(settings, "parked", 1);
  const std::vector<MemoryUse> forks = look_at_plain_forks(settings);
  const double idle_mb = megabytes(idle.anonymous()) - own.get<double>("anonymous_mb");
  const double running_mb = megabytes(running.anonymous()) - own.get<double>("anonymous_mb");
  const double fork_mb = megabytes(largest_private(forks));
  const double worker_mb = megabytes(largest_private(running.workers));
  const double parked_mb = megabytes(largest_private(parked.workers));

  Dict facts{{"trials", settings.trials},
             {"program_resident_mb", own.get<double>("resident_mb")},
             {"program_anonymous_mb", own.get<double>("anonymous_mb")},
             {"plain_fork_private_mb", fork_mb},
             {"ratio", worker_mb / fork_mb}};
  for (const auto& [name, program] :
       {std::pair<std::string, const Program&>("idle", idle), {"running", running}, {"parked", parked}}) {
    const Dict one = to_dict(name, program);
    facts.insert(facts.end(), one.begin(), one.end());
  }
  const std::string trials = std::to_string(settings.trials) + " trials, ";
  const auto of_a_worker = with_torch() ? std::optional(Budget::at_most(100)) : std::nullopt;
  print_line("memory", {}, idle.wall_s + running.wall_s + parked.wall_s, idle.cpu_s + running.cpu_s + parked.cpu_s,
             facts,
             {{.name = "controller and fork server idle, beyond the program",
               .value = idle_mb,
               .unit = "MB",
               .budget = Budget::at_most(20)},
              {.name = trials + "all processes, beyond the program", .value = running_mb, .unit = "MB"},
              {.name = trials + "private memory of one that runs",
               .value = worker_mb,
               .unit = "MB",
               .budget = of_a_worker,
               .ratio = worker_mb / fork_mb},
              {.name = trials + "private memory of a parked one",
               .value = parked_mb,
               .unit = "MB",
               .budget = of_a_worker,
               .ratio = parked_mb / fork_mb}});
}

}  // namespace

Dict show_own_memory(const Arguments&) {
  const MemoryUse use = memory_of(::getpid());
  return {{"resident_mb", megabytes(use.resident)}, {"anonymous_mb", megabytes(use.anonymous)}};
}

// Arguments: what to hold (idle, running or parked), the storage path, the gate's path, the number of trials.
Dict hold_trials(const Arguments& arguments) {
  const std::string what = arguments[0];
  const std::int64_t trials = std::stoll(arguments[3]);
  if (what == "idle") be_idle(arguments[1], arguments[2]);
  if (what == "running") run_trials(arguments[1], arguments[2], trials);
  if (what == "parked") park_trials(arguments[1], arguments[2], trials);
  return {};
}

// Arguments: the gate's path, the number of processes.
Dict hold_plain_forks(const Arguments& arguments) {
  const std::int64_t count = std::stoll(arguments[1]);
  fork_processes(count, count, [&](std::int64_t) {
    train_briefly();
    pass_gate(arguments[0]);
  });
  return {};
}

void add_memory(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload = add_workload(program, "memory", "what processes have in memory", settings, measure);
  workload.option("--trials", &settings->trials, "at a time, at least 2").in_range(2, 1000);
}

}  // namespace cadre::bench
