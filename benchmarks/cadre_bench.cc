// What Cadre adds to the work of its users, measured beside the plain operation in the same run. One JSON line a
// figure.
//
//   cadre_bench empty-trial --trials 200 --slots 2     a trial in a new process that reports nothing
//   cadre_bench reports --trials 1 --reports 20000     reports of three metrics, with all result files
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <deque>
#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "base/json.h"
#include "cadre/tune.h"

namespace {

namespace fs = std::filesystem;
using cadre::Config;
using cadre::Dict;
namespace tune = cadre::tune;

double seconds_of(const auto& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of this process and its children that have ended.
double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  }
  return sum;
}

struct Flags {
  std::int64_t trials = 0;
  std::int64_t slots = 2;
  std::int64_t reports = 0;
  fs::path storage_path;
};

void return_at_once(const Config&) {}

void report_often(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  for (std::int64_t i = 1; i <= reports; ++i)
    tune::report({{"loss", 1.0 / static_cast<double>(i)}, {"accuracy", 1e-5 * static_cast<double>(i)}, {"epoch", i}});
}

tune::ResultGrid run(const std::string& name, tune::Trainable trainable, const Flags& flags, tune::Space space) {
  trainable.resources.cpus = 1.0 / static_cast<double>(flags.slots);  // cadre::init was told of one CPU
  tune::Tuner tuner(std::move(trainable),
                    {.param_space = std::move(space),
                     .tune_config = {.num_samples = flags.trials},
                     .run_config = {.name = name, .storage_path = flags.storage_path, .verbose = 0}});
  return tuner.fit();
}

// The same number of processes without Cadre, as many at a time.
double plain_forks(const Flags& flags) {
  return seconds_of([&] {
    std::deque<pid_t> running;
    const auto wait_for_first = [&] {
      ::waitpid(running.front(), nullptr, 0);
      running.pop_front();
    };
    for (std::int64_t i = 0; i < flags.trials; ++i) {
      if (std::ssize(running) == flags.slots) wait_for_first();
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      running.push_back(child);
    }
    while (!running.empty()) wait_for_first();
  });
}

// The same results as lines of JSON in a file.
double plain_lines(const Flags& flags) {
  return seconds_of([&] {
    cadre::base::AppendFile file(flags.storage_path / "plain.json");
    for (std::int64_t i = 1; i <= flags.trials * flags.reports; ++i)
      file.append(cadre::base::to_json(
          {{"loss", 1.0 / static_cast<double>(i)}, {"accuracy", 1e-5 * static_cast<double>(i)}, {"epoch", i}}));
  });
}

void measure_empty_trials(const Flags& flags) {
  const double cpu_before = cpu_seconds();
  std::size_t errors = 0;
  const double wall =
      seconds_of([&] { errors = run("empty_trial", tune::trainable<return_at_once>(), flags, {}).num_errors(); });
  const double cpu = cpu_seconds() - cpu_before;  // the workers are the fork server's children: theirs is not in it
  const double plain = plain_forks(flags);
  const auto trials = static_cast<double>(flags.trials);
  std::cout << cadre::base::to_json(Dict{{"workload", "empty-trial"},
                                         {"trials", flags.trials},
                                         {"slots", flags.slots},
                                         {"errors", errors},
                                         {"wall_s", wall},
                                         {"controller_cpu_s", cpu},
                                         {"wall_ms_per_trial", wall / trials * 1e3},
                                         {"plain_fork_ms_per_trial", plain / trials * 1e3},
                                         {"ratio", wall / plain}})
            << std::endl;
}

void measure_reports(const Flags& flags) {
  const double wall =
      seconds_of([&] { run("reports", tune::trainable<report_often>(), flags, {{"reports", flags.reports}}); });
  const double plain = plain_lines(flags);
  const auto reports = static_cast<double>(flags.trials * flags.reports);
  std::cout << cadre::base::to_json(Dict{{"workload", "reports"},
                                         {"trials", flags.trials},
                                         {"reports", flags.reports},
                                         {"wall_s", wall},
                                         {"reports_per_s", reports / wall},
                                         {"wall_ms_per_report", wall / static_cast<double>(flags.reports) * 1e3},
                                         {"plain_line_ms", plain / reports * 1e3},
                                         {"ratio", wall / plain}})
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 1});
  CLI::App app("Measures what Cadre costs");
  app.require_subcommand(1);
  Flags empty_flags;
  Flags report_flags;
  CLI::App* empty = app.add_subcommand("empty-trial", "trials that return at once, each in a new process");
  CLI::App* reports = app.add_subcommand("reports", "trials that do nothing but report");
  empty->add_option("--trials", empty_flags.trials)->default_val(200);
  empty->add_option("--slots", empty_flags.slots, "trials at a time")->default_val(2);
  reports->add_option("--trials", report_flags.trials, "all at a time")->default_val(1);
  reports->add_option("--reports", report_flags.reports, "of each trial")->default_val(20'000);
  for (auto [workload, path] : {std::pair(empty, &empty_flags.storage_path), {reports, &report_flags.storage_path}})
    workload->add_option("--storage-path", *path, "folder for the experiment, which stays there")->required();
  CLI11_PARSE(app, argc, argv);
  report_flags.slots = report_flags.trials;
  try {
    const Flags& flags = *empty ? empty_flags : report_flags;
    fs::create_directories(flags.storage_path);
    *empty ? measure_empty_trials(flags) : measure_reports(flags);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cadre_bench: " << error.what() << "\n";
    return 1;
  }
}
