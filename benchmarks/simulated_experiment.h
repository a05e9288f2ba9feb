// Experiments of any number of trials on the simulated engine: the real controller, store and result files, without
// worker processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "cadre/tune.h"
#include "engine/simulated/simulated_engine.h"

namespace cadre::bench {

struct SimulatedSetup {
  tune::Trainable trainable;
  tune::TunerOptions options;  // with name, storage_path and num_samples
  std::int64_t slots = 2;      // trials at a time, with one CPU each
  // True: each slot is a node of its own, and after each hundred trials that were started a node leaves, with its
  // trial, and another one joins.
  bool has_nodes = false;
  // Trials take a random time, up to this one, so that they end one by one. It does not pass.
  std::chrono::nanoseconds trial_time{0};
  std::int64_t unfinished = 0;  // number of last trials that never return, at most `slots`; the others return at once
  engine::simulated::SimulatedEngine::MakeBehaviour behave = {};  // of all workers instead, in steps without a delay
};

// Runs an experiment in this process, which must not have called cadre::init. Returns the seconds that the controller
// took. With unfinished trials it never returns: when only they are running, the process kills itself with SIGKILL.
double run_simulated_experiment(const SimulatedSetup& setup);

}  // namespace cadre::bench
