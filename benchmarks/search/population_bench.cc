// Trains populations on a function in place of a network, under one of Cadre's schedulers: the real decisions, without
// processes or files. Prints a line of JSON for each seed: after each step of all trials, what the best trial so far
// lacks of the most that is possible.
//
//   cadre_population_bench --function surrogate --scheduler pbt --trials 8 --seeds 30
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

#include "cadre/tune.h"
#include "support/experiment_driver.h"
#include "tune/options/options.h"

namespace cadre::benchmarks {
namespace {

using tune::TrialIndex;

struct Options {
  std::string function = "surrogate";
  std::string scheduler = "pbt";
  std::int64_t trials = 8;
  std::uint64_t seeds = 1;
  std::uint64_t first_seed = 0;
};

// The training of a trial, as its checkpoints have it.
struct State {
  std::int64_t step = 0;
  double theta[2] = {0.9, 0.9};
  double score = 0;
};

// A function with two hyper-parameters from 0 to 1.
struct Function {
  std::string name = {};
  std::int64_t steps = 0;
  std::int64_t interval = 0;  // of perturbation
  double most = 0;            // the score that is possible
  void (*train)(State&, double a, double b) = nullptr;
};

// The score is 1.2 - theta_0^2 - theta_1^2. A step follows the gradient of 1.2 - a theta_0^2 - b theta_1^2.
// Source: Jaderberg et al., "Population Based Training of Neural Networks" (2017), figure 2,
// https://arxiv.org/abs/1711.09846.
void follow_surrogate(State& state, double a, double b) {
  constexpr double kRate = 0.02;
  const double weights[2] = {a, b};
  state.score = 1.2;
  for (const int i : {0, 1}) {
    state.theta[i] -= 2 * kRate * weights[i] * state.theta[i];
    state.score -= state.theta[i] * state.theta[i];
  }
}

// Scores grow the more, the nearer the hyper-parameters are to a pair that goes once around a circle.
constexpr std::int64_t kDriftSteps = 60;
void grow_near_drifting_best(State& state, double a, double b) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(state.step) / kDriftSteps;
  const double off_a = a - (0.5 + 0.3 * std::cos(angle));
  const double off_b = b - (0.5 + 0.3 * std::sin(angle));
  state.score += std::exp(-8 * (off_a * off_a + off_b * off_b));
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {.name = "surrogate", .steps = 100, .interval = 4, .most = 1.2, .train = &follow_surrogate},
      {.name = "drift", .steps = kDriftSteps, .interval = 2, .most = kDriftSteps, .train = &grow_near_drifting_best}};
  return all;
}

tune::AnyScheduler scheduler_of(const std::string& name, const Function& function) {
  const auto interval = static_cast<double>(function.interval);
  const tune::Mutations mutations{{"a", tune::uniform(0, 1)}, {"b", tune::uniform(0, 1)}};
  if (name == "pb2")
    return tune::PB2{
        .time_attr = "training_iteration", .perturbation_interval = interval, .hyperparam_bounds = mutations};
  if (name == "mf-pbt")
    return tune::MultipleFrequenciesPBT{.time_attr = "training_iteration",
                                        .perturbation_interval = interval,
                                        .interval_factors = {1, 4},
                                        .hyperparam_mutations = mutations};
  if (name == "pbt")
    return tune::PopulationBasedTraining{
        .time_attr = "training_iteration", .perturbation_interval = interval, .hyperparam_mutations = mutations};
  return tune::FIFO{};
}

List lacking_by_step(const Options& options, const Function& function, std::uint64_t seed) {
  const auto num_trials = static_cast<std::size_t>(options.trials);
  const tune::Trainable trainable{"population_bench"};
  std::vector<std::string> notes;
  test_support::Driver driver(tune::resolve(trainable,
                                            {.param_space = {{"a", tune::uniform(0, 1)}, {"b", tune::uniform(0, 1)}},
                                             .tune_config = {.metric = tune::maximize("score"),
                                                             .num_samples = options.trials,
                                                             .scheduler = scheduler_of(options.scheduler, function),
                                                             .seed = seed}},
                                            notes),
                              static_cast<double>(options.trials));
  std::vector<State> states(num_trials);
  std::vector<double> best(static_cast<std::size_t>(function.steps), -HUGE_VAL);
  while (std::ranges::min(states, {}, &State::step).step < function.steps) {
    for (TrialIndex trial = 0; trial < num_trials; ++trial) {
      State& state = states[trial];
      if (state.step == function.steps) continue;
      const Config& config = driver.trial(trial).config;
      function.train(state, config.get<double>("a"), config.get<double>("b"));
      double& best_here = best[static_cast<std::size_t>(state.step++)];
      best_here = std::max(best_here, state.score);
      driver.report(trial, {{"training_iteration", state.step}, {"score", state.score}}, ".reporting");
      for (const tune::LogExploit* const exploit : driver.all<tune::LogExploit>()) {
        if (exploit->target != trial) throw Error("a trial exploits that has not reported");
        state = states[exploit->donor];
        if (state.step != exploit->donor_iteration) throw Error("a donor's checkpoint is not its last one");
      }
      if (driver.all<tune::LogExploit>().empty()) continue;
      driver.feed(tune::FunctionReturned{trial, driver.trial(trial).attempt});
    }
  }
  List lacking;
  double so_far = -HUGE_VAL;
  for (const double one : best) {
    so_far = std::max(so_far, one);
    lacking.emplace_back(function.most - so_far);
  }
  return lacking;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Trains populations on a function under one of Cadre's schedulers.");
  app.add_option("--function", options.function, "surrogate or drift");
  app.add_option("--scheduler", options.scheduler, "pbt, pb2, mf-pbt or none")
      ->check(CLI::IsMember({"pbt", "pb2", "mf-pbt", "none"}));
  app.add_option("--trials", options.trials, "number of trials of each seed");
  app.add_option("--seeds", options.seeds, "number of seeds");
  app.add_option("--first-seed", options.first_seed, "the first of them");
  CLI11_PARSE(app, argc, argv);
  const auto function = std::ranges::find(functions(), options.function, &Function::name);
  if (function == functions().end()) throw InvalidArgument("there is no function " + options.function);
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed)
    std::cout << to_json(Dict{{"scheduler", options.scheduler},
                              {"function", options.function},
                              {"trials", options.trials},
                              {"seed", seed},
                              {"errors", lacking_by_step(options, *function, seed)}})
              << std::endl;
  return 0;
}

}  // namespace
}  // namespace cadre::benchmarks

int main(int argc, char** argv) try { return cadre::benchmarks::run(argc, argv); } catch (const std::exception& error) {
  std::cerr << "cadre_population_bench: " << error.what() << "\n";
  return 1;
}
