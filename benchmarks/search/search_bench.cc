// Minimises functions with one of Cadre's searchers. Prints a line of JSON for each seed: the best value after each
// observation, and the CPU time that all suggestions took together, without those of the first --untimed trials.
//
//   cadre_search_bench --searcher '{"type": "TPE"}' --function hartmann6 --trials 100 --seeds 30 --parallel 8
#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <deque>
#include <iostream>
#include <limits>

#include "base/json.h"
#include "cadre/stored.h"
#include "cadre/tune.h"
#include "search/functions.h"

namespace cadre::benchmarks {
namespace {

struct Options {
  std::string searcher = R"({"type": "RandomSearch"})";
  std::string function = "branin";
  std::int64_t trials = 100;
  std::int64_t untimed = 0;
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
  std::clock_t time = 0;
  const auto add_time_since = [&](std::clock_t begin) {
    if (study.num_trials() > options.untimed) time += std::clock() - begin;
  };
  while (std::ssize(bests) < options.trials) {
    if (open.size() < options.parallel && study.num_trials() < options.trials) {
      const std::clock_t begin = std::clock();
      open.push_back(*study.suggest());
      add_time_since(begin);
      continue;
    }
    const auto [trial, config] = open.front();
    open.pop_front();
    const double value = function.value(config);
    const std::clock_t begin = std::clock();
    study.observe(trial, {{"value", value}});
    add_time_since(begin);
    best = std::min(best, value);
    bests.emplace_back(best);
  }
  std::cout << to_json(Dict{{"searcher", options.searcher},
                            {"function", options.function},
                            {"parallel", static_cast<std::int64_t>(options.parallel)},
                            {"seed", seed},
                            {"seconds", static_cast<double>(time) / CLOCKS_PER_SEC},
                            {"best", bests}})
            << "\n";
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Minimises functions with one of Cadre's searchers.");
  app.add_option("--searcher", options.searcher, "its options as JSON, with its name as \"type\"");
  app.add_option("--function", options.function, "the function to minimise");
  app.add_option("--trials", options.trials, "number of trials of each seed");
  app.add_option("--untimed", options.untimed, "number of first trials whose time does not count");
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
