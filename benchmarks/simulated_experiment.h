// Experiments of any number of trials on the simulated engine: the real controller, store and result files, and no
// processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cadre/tune.h"

namespace cadre::bench {

struct SimulatedSetup {
  tune::Trainable trainable;
  tune::TunerOptions options;   // with name, storage_path and num_samples
  std::int64_t slots = 2;       // trials at a time, of a CPU each
  std::int64_t unfinished = 0;  // of the last trials, at most `slots`; the others return at once
};

// Runs an experiment in this process, in which cadre::init was not called. Returns the seconds that the controller
// took. With unfinished trials it never returns: when only they run, the process ends as by kill -9.
double run_simulated_experiment(const SimulatedSetup& setup);

}  // namespace cadre::bench
