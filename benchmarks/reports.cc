// Trials that only report, with all result files.
#include "base/file.h"
#include "base/json.h"
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "plain.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

struct Settings {
  std::int64_t trials = 1;
  std::int64_t reports = 20'000;
  std::filesystem::path storage_path;
};

Dict metrics_of(std::int64_t report) {
  const auto number = static_cast<double>(report);
  return {{"loss", 1 / number}, {"accuracy", 1e-5 * number}, {"epoch", report}};
}

void report_often(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  for (std::int64_t i = 1; i <= reports; ++i) tune::report(Metrics(metrics_of(i)));
}

// Writes the same metrics as lines of JSON, in one file per trial, with one write call per line.
void write_lines(const Settings& settings) {
  fork_processes(settings.trials, settings.trials, [&](std::int64_t trial) {
    base::AppendFile file(settings.storage_path / ("plain_" + std::to_string(trial) + ".json"));
    for (std::int64_t i = 1; i <= settings.reports; ++i) file.append(base::to_json(metrics_of(i)) + "\n");
  });
}

std::optional<Budget> budget_of(std::int64_t trials) {
  if (trials == 1) return Budget::at_least(15'000);
  if (trials == 16) return Budget::at_least(30'000);
  return std::nullopt;
}

void measure(const Settings& settings) {
  const Run run = run_experiment({.trainable = fn<report_often>,
                                  .options = {.param_space = {{"reports", settings.reports}},
                                              .tune_config = {.num_samples = settings.trials},
                                              .run_config = {.name = "reports", .storage_path = settings.storage_path}},
                                  .slots = settings.trials});
  const PlainRun plain = run_plainly([&] { write_lines(settings); });
  const auto reports = static_cast<double>(settings.trials * settings.reports);
  const double ratio = run.wall_s / plain.wall_s;
  Dict facts = count(run.directory);
  facts.insert(facts.end(), {{"reports_per_s", reports / run.wall_s},
                             {"wall_ms_per_report", run.wall_s / static_cast<double>(settings.reports) * 1e3},
                             {"cpu_ms_per_report", run.usage.cpu_s / reports * 1e3},
                             {"plain_wall_s", plain.wall_s},
                             {"plain_lines_per_s", reports / plain.wall_s},
                             {"ratio", ratio}});
  print_line("reports", {{"reports", settings.reports}, {"slots", settings.trials}}, run.wall_s, run.usage.cpu_s, facts,
             {{.name = "reports of " + std::to_string(settings.trials) + (settings.trials == 1 ? " trial" : " trials"),
               .value = reports / run.wall_s,
               .unit = "1/s",
               .budget = budget_of(settings.trials),
               .ratio = ratio}});
}

}  // namespace

void add_reports(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload = add_workload(program, "reports", "trials that do nothing but report", settings, measure);
  workload.option("--trials", &settings->trials, "all at a time");
  workload.option("--reports", &settings->reports, "of each trial");
}

}  // namespace cadre::bench
