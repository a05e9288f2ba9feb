// Validation concurrent with training: the time until a checkpoint has its validator's metrics, and the slowdown of
// steps.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "cadre/train.h"

#include "figures.h"
#include "plain.h"
#include "statistics.h"
#include "training.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::int64_t validations = 50;
  double validator_ms = 20;
  std::int64_t steps = 400;
  double step_ms = 5;
  std::int64_t interval = 20;
  std::int64_t pairs = 5;
  std::int64_t in_flight = 8;
  double waiting_ms = 200;
  fs::path storage_path;
};

// Does CPU work, the same amount for each round.
double work(std::int64_t rounds) {
  double sum = 0;
  for (std::int64_t i = 0; i < rounds; ++i) sum += std::sqrt(static_cast<double>(i % 1000) + sum * 1e-9);
  return sum;
}

// Returns the number of rounds that take `ms` on an otherwise idle machine.
std::int64_t rounds_of(double ms) {
  constexpr std::int64_t probe = 2'000'000;
  double fastest = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch stopwatch;
    if (work(probe) < 0) return 0;
    fastest = std::min(fastest, stopwatch.seconds() * 1e3);
  }
  return static_cast<std::int64_t>(ms / fastest * static_cast<double>(probe));
}

// ---- Functions of ranks and validators

CheckpointWriter small_checkpoint() {
  return [](const fs::path& directory) { write_file(directory / "model", "parameters"); };
}

Metrics says_how_long(const Checkpoint&, const Config& config) {
  const Stopwatch stopwatch;
  const double sum = work(config.get<std::int64_t>("rounds"));
  return {{"sum", sum}, {"own_s", stopwatch.seconds()}};
}

// Returns the times from each report to the metrics of its validation, without the validator's own time.
Value waits_for_metrics(const Config& config) {
  List times;
  for (std::int64_t i = 1; i <= config.get<std::int64_t>("validations"); ++i) {
    const Stopwatch stopwatch;
    train::report({{"step", i}}, small_checkpoint(), {.validation = true});
    const auto reported = train::get_all_reported_checkpoints(train::CheckpointConsistency::validated);
    times.emplace_back(stopwatch.seconds() - reported.back().metrics.get<double>("own_s"));
  }
  return times;
}

// Waits without using CPU time.
Metrics waits(const Checkpoint&, const Config& config) {
  const Stopwatch stopwatch;
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(config.get<double>("waiting_ms")));
  return {{"own_s", stopwatch.seconds()}, {"began_s", now_seconds() - stopwatch.seconds()}};
}

// Returns how many validators ran at a time at most, from the begin times and durations in their metrics.
std::int64_t most_at_a_time(const std::vector<train::ReportedCheckpoint>& validated) {
  std::int64_t most = 0;
  for (const train::ReportedCheckpoint& one : validated) {
    const auto began = one.metrics.get<double>("began_s");
    most = std::max<std::int64_t>(most, std::ranges::count_if(validated, [&](const train::ReportedCheckpoint& other) {
                                    const auto other_began = other.metrics.get<double>("began_s");
                                    return other_began <= began &&
                                           began < other_began + other.metrics.get<double>("own_s");
                                  }));
  }
  return most;
}

// Makes several reports in a row, then measures from the last report until all have their metrics, without the waiting
// time of the last validator; repeats this. Also returns how many validators waited at a time.
Value waits_for_several(const Config& config) {
  const auto in_flight = config.get<std::int64_t>("in_flight");
  List times;
  std::int64_t most = 0;
  for (std::int64_t round = 0; round < config.get<std::int64_t>("rounds"); ++round) {
    for (std::int64_t i = 0; i < in_flight; ++i)
      train::report({{"round", round}}, small_checkpoint(), {.validation = true});
    const Stopwatch stopwatch;
    const auto reported = train::get_all_reported_checkpoints(train::CheckpointConsistency::validated);
    times.emplace_back(stopwatch.seconds() - reported.back().metrics.get<double>("own_s"));
    most = std::max(most, most_at_a_time(reported));
  }
  return Dict{{"times", times}, {"most_at_a_time", most}};
}

// Runs steps, with a checkpoint at an interval. Returns the durations of the steps, without the reports.
Value steps(const Config& config) {
  const bool validates = config.get<bool>("validates");
  const auto interval = config.get<std::int64_t>("interval");
  const auto rounds = config.get<std::int64_t>("rounds");
  List times;
  for (std::int64_t step = 1; step <= config.get<std::int64_t>("steps"); ++step) {
    const Stopwatch stopwatch;
    const double sum = work(rounds);
    times.emplace_back(stopwatch.seconds());
    if (step % interval == 0) train::report({{"sum", sum}}, small_checkpoint(), {.validation = validates});
  }
  return times;
}

// ---- Runs

std::vector<double> milliseconds(const Value& times) {
  std::vector<double> all;
  for (const Value& time : times.items()) all.push_back(time.get<double>() * 1e3);
  return all;
}

train::TrainerOptions options_of(Config config, std::int64_t validator_rounds) {
  return {.train_loop_config = std::move(config),
          .run_config = {.checkpoint_config = {.num_to_keep = 2}},
          .validation = {.function = fn<says_how_long>, .config = {{"rounds", validator_rounds}}}};
}

// Returns the mean, not the median, because validators that compete for the CPU do so only now and then.
double mean_step_ms(const Settings& settings, const std::string& name, bool validates, std::int64_t rounds,
                    std::int64_t validator_rounds) {
  const TrainRun run = run_training(
      settings.storage_path, name, 2, fn<steps>,
      options_of(
          {{"validates", validates}, {"interval", settings.interval}, {"steps", settings.steps}, {"rounds", rounds}},
          validator_rounds));
  const std::vector<double> times = milliseconds(run.result.return_value);
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

void measure(const Settings& settings) {
  const std::int64_t validator_rounds = rounds_of(settings.validator_ms);
  const TrainRun run = run_training(settings.storage_path, "latency", 2, fn<waits_for_metrics>,
                                    options_of({{"validations", settings.validations}}, validator_rounds));
  const std::vector<double> beyond = milliseconds(run.result.return_value);

  constexpr std::int64_t rounds_in_flight = 10;
  train::TrainerOptions several =
      options_of({{"in_flight", settings.in_flight}, {"rounds", rounds_in_flight}}, validator_rounds);
  several.run_config.checkpoint_config.num_to_keep = settings.in_flight;
  several.validation = {.function = fn<waits>,
                        .config = {{"waiting_ms", settings.waiting_ms}},
                        .resources = {.cpus = 1.0 / static_cast<double>(settings.in_flight)}};
  const TrainRun together = run_training(settings.storage_path, "in_flight", 2, fn<waits_for_several>, several);
  const Config said(together.result.return_value.dict());
  const std::vector<double> beyond_together = milliseconds(said.at("times"));

  // A validation lasts 4/5 of the interval: one runs nearly all the time, never two, on the core that the one rank
  // leaves free.
  const std::int64_t rounds = rounds_of(settings.step_ms);
  const std::int64_t busy_rounds = rounds * settings.interval * 4 / 5;
  std::vector<double> ratios;
  for (std::int64_t i = 0; i < settings.pairs; ++i) {
    double alone_ms = 0;
    double beside_ms = 0;
    const bool begins_alone = i % 2 == 0;  // so that neither side always finds what the other has left behind
    for (const bool validates : {!begins_alone, begins_alone}) {
      const std::string name = (validates ? "beside_" : "alone_") + std::to_string(i);
      (validates ? beside_ms : alone_ms) = mean_step_ms(settings, name, validates, rounds, busy_rounds);
    }
    ratios.push_back(beside_ms / alone_ms);
  }
  print_line("validation",
             {{"validations", settings.validations},
              {"validator_ms", settings.validator_ms},
              {"steps", settings.steps},
              {"step_ms", settings.step_ms},
              {"interval", settings.interval},
              {"pairs", settings.pairs},
              {"in_flight", settings.in_flight},
              {"waiting_ms", settings.waiting_ms}},
             run.wall_s, run.usage.cpu_s,
             {{"results", run.result.metrics_history.size()},
              {"beyond_p50_ms", median(beyond)},
              {"beyond_p99_ms", quantile(beyond, 0.99)},
              {"most_at_a_time", said.at("most_at_a_time")},
              {"in_flight_beyond_p50_ms", median(beyond_together)},
              {"step_ratio", median(ratios)},
              {"step_ratio_best", best(ratios)}},
             {{.name = "Train: report to the metrics of its validation, beyond the validator",
               .value = median(beyond),
               .unit = "ms",
               .budget = Budget::at_most(20)},
              {.name = "Train: the same of the last of several that wait at a time",
               .value = median(beyond_together),
               .unit = "ms",
               .budget = Budget::at_most(20)},
              {.name = "Train: validations in flight",
               .value = said.get<double>("most_at_a_time"),
               .unit = "",
               .budget = Budget::at_least(static_cast<double>(settings.in_flight))},
              {.name = "Train: a step with validation beside it, and without",
               .value = median(ratios),
               .unit = "",
               .budget = Budget::at_most(1.02)}});
}

}  // namespace

void add_validation(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "validation", "checkpoints that are validated beside training", settings, measure);
  workload.option("--validations", &settings->validations, "whose metrics are waited for, one after the other");
  workload.option("--validator-ms", &settings->validator_ms, "of a validator's own work");
  workload.option("--steps", &settings->steps, "of a run");
  workload.option("--step-ms", &settings->step_ms, "of CPU time");
  workload.option("--interval", &settings->interval, "steps between two checkpoints; a validator works for 4/5 of it");
  workload.option("--pairs", &settings->pairs, "of runs, without and with validation");
  workload.option("--in-flight", &settings->in_flight, "validations that only wait, at a time");
  workload.option("--waiting-ms", &settings->waiting_ms, "that each of them waits");
}

}  // namespace cadre::bench
