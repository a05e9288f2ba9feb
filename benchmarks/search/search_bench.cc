// Minimises functions with one of Cadre's searchers. Prints a line of JSON for each seed: the best value after each
// observation, and the seconds that all suggestions took together.
//
//   cadre_search_bench --searcher '{"type": "TPE"}' --function hartmann6 --trials 100 --seeds 30 --parallel 8
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <limits>

#include "base/json.h"
#include "cadre/stored.h"
#include "cadre/tune.h"
#include "search/functions.h"

namespace cadre::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string searcher = R"({"type": "RandomSearch"})";
  std::string function = "branin";
  std::int64_t trials = 100;
  std::uint64_t seeds = 1;
  std::uint64_t first_seed = 0;
  std::size_t parallel = 1;
};

void minimise(const Options& options, const Function& function, std::uint64_t seed) {
  tune::AnySearcher searcher;
  read_stored(searcher, Stored(base::parse_json(options.searcher, "--searcher")));
  tune::Study study(
      function.space,
      {.metric = tune::minimize("value"), .num_samples = options.trials, .searcher = searcher, .seed = seed});
  std::deque<tune::Suggestion> open;
  double best = std::numeric_limits<double>::infinity();
  List bests;
  Clock::duration time{};
  while (std::ssize(bests) < options.trials) {
    if (open.size() < options.parallel && study.num_trials() < options.trials) {
      const Clock::time_point begin = Clock::now();
      open.push_back(*study.suggest());
      time += Clock::now() - begin;
      continue;
    }
    const auto [trial, config] = open.front();
    open.pop_front();
    const double value = function.value(config);
    const Clock::time_point begin = Clock::now();
    study.observe(trial, {{"value", value}});
    time += Clock::now() - begin;
    best = std::min(best, value);
    bests.emplace_back(best);
  }
  std::cout << to_json(Dict{{"searcher", options.searcher},
                            {"function", options.function},
                            {"parallel", static_cast<std::int64_t>(options.parallel)},
                            {"seed", seed},
                            {"seconds", std::chrono::duration<double>(time).count()},
                            {"best", bests}})
            << "\n";
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Minimises functions with one of Cadre's searchers.");
  app.add_option("--searcher", options.searcher, "its options as JSON, with its name as \"type\"");
  app.add_option("--function", options.function, "the function to minimise");
  app.add_option("--trials", options.trials, "number of trials of each seed");
  app.add_option("--seeds", options.seeds, "number of seeds");
  app.add_option("--first-seed", options.first_seed, "the first of them");
  app.add_option("--parallel", options.parallel, "number of trials open at a time");
  CLI11_PARSE(app, argc, argv);
  const auto function = std::ranges::find(functions(), options.function, &Function::name);
  if (function == functions().end()) throw InvalidArgument("there is no function " + options.function);
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed)
    minimise(options, *function, seed);
  return 0;
}

}  // namespace
}  // namespace cadre::benchmarks

int main(int argc, char** argv) try { return cadre::benchmarks::run(argc, argv); } catch (const std::exception& error) {
  std::cerr << "cadre_search_bench: " << error.what() << "\n";
  return 1;
}
