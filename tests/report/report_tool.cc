// Makes the experiments of the tests of `cadre report`: report_tool <storage path> <kind> <name> [<trials>].
//
// Kinds: population (Population Based Training of three parameters), search (random search; one trial in seven fails),
// long (a trial with 100,000 results and two short ones), hostile (names, values and errors that would break a page),
// run (a training run of two workers, one of which fails once, with validations), ranked_run (the same, whose
// checkpoints are ranked by what validations find).
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>

#include "cadre/train.h"
#include "cadre/tune.h"

namespace {

using namespace cadre;
namespace fs = std::filesystem;

// Ends an element and a comment, opens a string, breaks the line, clears a terminal, reverses the writing direction.
const std::string kHostile =
    "</script><script>window.broken=1</script><!--<img src=x onerror=window.broken=1>\"'`${1}\\\r\n\t\x1b[2J\x01"
    "\xe2\x80\xa8\xe2\x80\xae \xe8\xa9\xb1 \xf0\x9f\x98\x80 & &lt;";
// The same without "/", which parameters have between the names of their path.
const std::string kHostileName =
    "<img src=x onerror=window.broken=1><!--<script>\"'`${1}\\\n\x1b[2J\xe2\x80\xa8\xe2\x80\xae \xe8\xa9\xb1";
// A lone surrogate and a byte that is no UTF-8.
const std::string kBroken = "lone \xed\xa0\x80 and \xff bytes";

void learn(const Config& config) {
  double score = 0;
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step >> score;
  for (;;) {
    ++step;
    const double speed = config.get<std::string>("act") == "relu" ? 0.1 : 0.05;
    score += config.get<double>("lr") * (1 - score) * speed;
    Metrics metrics{{"score", score}, {"eval", {{"loss", std::exp(-3 * score)}}}};
    if (step > 3)
      metrics.set("late", step == 5 ? std::nan("") : step == 6 ? std::numeric_limits<double>::infinity() : score);
    tune::report(metrics, [&](const fs::path& directory) {
      std::ofstream file(directory / "state");
      file.precision(17);
      file << step << ' ' << score;
    });
  }
}

void search(const Config& config) {
  const auto lr = config.get<double>("lr");
  const auto width = static_cast<double>(config.get<std::int64_t>("width"));
  for (std::int64_t step = 1; step <= 10; ++step) {
    const double loss = std::abs(std::log10(lr) + 2) + 8 / width + 1 / static_cast<double>(step);
    if (step == 4 && config.get<std::int64_t>("width") % 7 == 3)
      throw std::runtime_error("the loss is not finite\nlast line of trial " + tune::get_context().get_trial_id());
    tune::report({{"loss", loss}, {"latency", 1 + width / 8 + lr}});
  }
}

void oscillate(const Config& config) {
  const auto steps = config.get<std::int64_t>("steps");
  for (std::int64_t step = 1; step <= steps; ++step)
    tune::report({{"value", step == 70'012 ? 100.0 : std::sin(static_cast<double>(step) / 5000)}});
}

void speak(const Config&) {
  Metrics metrics{{"score", 0.5}, {"big", (std::int64_t{1} << 62) + 1}, {"none", std::nan("")}};
  metrics.set(kHostile, 1.5);
  metrics.set(kHostileName, 2.5);
  tune::report(metrics, [](const fs::path& directory) { std::ofstream(directory / "state") << 1; });
  tune::report(metrics);
  if (tune::get_context().get_trial_id() == "00001") throw std::runtime_error(kHostile + kBroken);
}

void train_one(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step;
  const fs::path failed = train::get_context().get_storage() / "failed";
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    if (step == 5 && train::get_context().get_world_rank() == 1 && !fs::exists(failed)) {
      std::ofstream(failed) << "once";
      throw std::runtime_error("out of luck");
    }
    train::ReportOptions options;
    options.validation = train::ValidationTask();
    train::report(
        {{"loss", 1.0 / static_cast<double>(step)}},
        [&](const fs::path& directory) { std::ofstream(directory / "state") << step; }, std::move(options));
  }
}

Metrics validate(const Checkpoint& checkpoint, const Config&) {
  std::int64_t step = 0;
  std::ifstream(checkpoint.path() / "state") >> step;
  if (step == 7) throw std::runtime_error("the seventh cannot be validated");
  return {{"accuracy", 1 - 0.5 / static_cast<double>(step)}};
}

tune::TunerOptions population(std::int64_t trials) {
  return {.param_space = {{"lr", tune::loguniform(1e-3, 1)},
                          {"momentum", tune::uniform(0, 1)},
                          {"act", tune::choice({"relu", "tanh"})},
                          {"name", "caf\xc3\xa9"}},
          .tune_config = {.metric = tune::maximize("score"),
                          .num_samples = trials,
                          .scheduler =
                              tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                                            .perturbation_interval = 4,
                                                            .hyperparam_mutations = {{"lr", tune::loguniform(1e-3, 1)},
                                                                                     {"momentum", tune::uniform(0, 1)},
                                                                                     {"act", {"relu", "tanh"}}}},
                          .seed = 5},
          .run_config = {.stop = {{"training_iteration", 24}}, .checkpoint_config = {.num_to_keep = 2}}};
}

tune::TunerOptions random_search(std::int64_t trials) {
  return {.param_space = {{"lr", tune::loguniform(1e-4, 1)},
                          {"width", tune::randint(8, 65)},
                          {"model", {{"kind", tune::choice({"small", "large"})}}}},
          .tune_config = {.metric = tune::minimize("loss"), .num_samples = trials, .seed = 5}};
}

tune::TunerOptions long_curves() {
  return {.param_space = {{"steps", tune::grid_search({100'000, 20, 10})}},
          .tune_config = {.metric = tune::maximize("value")}};
}

tune::TunerOptions hostile() {
  return {.param_space = {{"lr", tune::uniform(0, 1)}, {kHostileName, tune::choice({Value(kHostile), Value("good")})}},
          .tune_config = {.metric = tune::maximize(kHostileName), .num_samples = 3, .seed = 1}};
}

CheckpointConfig ranking_of(const std::string& kind) {
  if (kind != "ranked_run") return {.num_to_keep = 4};
  return {.num_to_keep = 4, .checkpoint_score_attribute = maximize("accuracy")};
}

void fit(tune::Trainable trainable, tune::TunerOptions options, tune::RunConfig run) {
  run.stop = options.run_config.stop;
  run.checkpoint_config = options.run_config.checkpoint_config;
  options.run_config = std::move(run);
  tune::Tuner(std::move(trainable), std::move(options)).fit();
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv, {.num_cpus = 4});
  if (argc < 4) return 2;
  const std::string kind = argv[2];
  const std::int64_t trials = argc > 4 ? std::stoll(argv[4]) : 12;
  const tune::RunConfig run{.name = argv[3], .storage_path = argv[1], .verbose = 0};
  try {
    if (kind == "population") fit(fn<learn>, population(trials), run);
    if (kind == "search") fit(fn<search>, random_search(trials), run);
    if (kind == "long") fit(fn<oscillate>, long_curves(), run);
    if (kind == "hostile") fit(fn<speak>, hostile(), run);
    if (kind == "run" || kind == "ranked_run")
      train::Trainer(fn<train_one>, {.train_loop_config = {{"steps", 10}},
                                     .scaling_config = {.num_workers = 2},
                                     .run_config = {.name = argv[3],
                                                    .storage_path = argv[1],
                                                    .failure_config = {.max_failures = 1},
                                                    .checkpoint_config = ranking_of(kind),
                                                    .verbose = 0},
                                     .validation = {.function = fn<validate>}})
          .fit();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "report_tool: " << error.what() << '\n';
    return 1;
  }
}
