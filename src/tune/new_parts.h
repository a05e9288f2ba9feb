// The parts of an experiment that its options describe, new.
#pragma once

#include <memory>

#include "cadre/tune/tuner.h"
#include "tune/stoppers/stopper_set.h"

namespace cadre::tune {

inline std::unique_ptr<Searcher> new_searcher(const TunerOptions& options) {
  const TuneConfig& tune = options.tune_config;
  return tune.searcher.make({.seed = tune.seed,
                             .space = options.param_space,
                             .metric = {tune.metric.name, tune.mode},
                             .num_samples = tune.num_samples});
}

inline std::unique_ptr<Scheduler> new_scheduler(const TunerOptions& options) {
  return options.tune_config.scheduler.make({.seed = options.tune_config.seed});
}

inline StopperSet new_stoppers(const TunerOptions& options) {
  return {options.run_config.stop, {.seed = options.tune_config.seed, .space = options.param_space}};
}

}  // namespace cadre::tune
