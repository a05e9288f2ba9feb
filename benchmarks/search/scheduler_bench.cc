// Tunes the networks of mnist_table.csv by random search with one of Cadre's schedulers, in a simulated experiment: the
// real controller, store and files, without processes. Each epoch takes as long as each other one. Prints a line of
// JSON for each seed: the smallest error after each epoch of all trials together, the rows of the table by trial, and
// the seconds of the experiment.
//
//   cadre_scheduler_bench --scheduler '{"type": "ASHAScheduler", "max_t": 27}' --trials 300 --parallel 8 --seeds 30
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/json.h"
#include "cadre/stored.h"
#include "cadre/tune.h"
#include "search/mnist_table.h"
#include "simulated_experiment.h"
#include "tune/assignment.h"

namespace cadre::benchmarks {
namespace {

namespace sim = engine::simulated;

struct Options {
  std::string scheduler = R"({"type": "FIFO"})";
  std::int64_t trials = 100;
  std::int64_t parallel = 8;
  std::uint64_t seeds = 1;
  std::uint64_t first_seed = 0;
  std::filesystem::path storage_path = std::filesystem::temp_directory_path() / "cadre_scheduler_bench";
};

void train_network(const Config&) {}  // a Network instead

// A trial, which reports its row's errors.
class Network final : public sim::Behaviour {
 public:
  explicit Network(const tune::TrialAssignment& trial)
      : errors_(mnist_errors(mnist_row(trial.config))), epoch_(trial.step) {}

  sim::Step next(const channel::Answer&) override {
    if (epoch_ == mnist_epochs) return {{}, sim::Step::Return{}};
    const double error = errors_.at(static_cast<std::size_t>(epoch_));
    ++epoch_;
    return {{}, channel::Report{.step = epoch_, .metrics = {{"training_iteration", epoch_}, {"error", error}}}};
  }

 private:
  const std::vector<double>& errors_;
  std::int64_t epoch_;
};

class BestErrors final : public tune::Callback {
 public:
  void on_trial_start(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial) override {
    rows_.emplace_back(mnist_row(trial.config));
  }
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics& result) override {
    best_ = std::min(best_, result.get<double>("error"));
    bests_.emplace_back(best_);
  }
  const List& rows() const { return rows_; }
  const List& bests() const { return bests_; }

 private:
  double best_ = 1;
  List rows_ = {};
  List bests_ = {};
};

void tune_networks(const Options& options, std::uint64_t seed) {
  tune::AnyScheduler scheduler;
  read_stored(scheduler, Stored(base::parse_json(options.scheduler, "--scheduler")));
  const auto bests = std::make_shared<BestErrors>();
  const std::filesystem::path storage = options.storage_path / std::to_string(seed);
  std::filesystem::remove_all(storage);
  // A paused trial that lost its process would begin anew, as these have no checkpoints.
  const double seconds = bench::run_simulated_experiment(
      {.trainable = fn<train_network>,
       .options = {.param_space = mnist_space(),
                   .tune_config = {.metric = tune::minimize("error"),
                                   .num_samples = options.trials,
                                   .scheduler = scheduler,
                                   .seed = seed,
                                   .parking = {.max_workers = options.trials, .min_free_memory = 0}},
                   .run_config = {.name = "networks", .storage_path = storage, .callbacks = {bests}}},
       .slots = options.parallel,
       .behave = [](const engine::WorkerSpec& spec) {
         return std::make_unique<Network>(tune::to_assignment(spec.assignment.payload));
       }});
  std::filesystem::remove_all(storage);
  if (std::ssize(bests->rows()) != options.trials) throw Error("not every trial has begun once");
  std::cout << to_json(Dict{{"scheduler", options.scheduler},
                            {"parallel", options.parallel},
                            {"seed", seed},
                            {"seconds", seconds},
                            {"rows", bests->rows()},
                            {"best", bests->bests()}})
            << std::endl;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Tunes networks with one of Cadre's schedulers, in a simulated experiment.");
  app.add_option("--scheduler", options.scheduler, "its options as JSON, with its name as \"type\"");
  app.add_option("--trials", options.trials, "number of trials of each seed");
  app.add_option("--parallel", options.parallel, "number of trials that run at a time");
  app.add_option("--seeds", options.seeds, "number of seeds");
  app.add_option("--first-seed", options.first_seed, "the first of them");
  app.add_option("--storage-path", options.storage_path, "folder for the experiments, which are removed");
  CLI11_PARSE(app, argc, argv);
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed)
    tune_networks(options, seed);
  return 0;
}

}  // namespace
}  // namespace cadre::benchmarks

int main(int argc, char** argv) try { return cadre::benchmarks::run(argc, argv); } catch (const std::exception& error) {
  std::cerr << "cadre_scheduler_bench: " << error.what() << "\n";
  return 1;
}
