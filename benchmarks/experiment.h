// Experiments as the workloads run them: in a process of their own, and read back afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cadre/tune.h"
#include "process.h"

namespace cadre::bench {

// cadre::init of a machine of `slots` CPUs, for a process of the benchmark's that is about to run an experiment.
void init_with_slots(std::int64_t slots);

// A trial takes one CPU: `slots` are how many run at a time.
struct Setup {
  tune::Trainable trainable;
  tune::TunerOptions options;  // with name and storage_path
  std::int64_t slots = 1;
};

struct Run {
  double wall_s = 0;  // of Tuner::fit
  Usage usage;        // of all processes, cadre::init and the end included
  std::filesystem::path directory;
};

// Runs an experiment in a process of its own, silently.
Run run_experiment(const Setup& setup);

// What an experiment's directory has: "trials", "terminated", "errors", "results" (each step of a trial once),
// "exploits" and "checkpoints" (that are kept).
Dict count(const std::filesystem::path& experiment);

}  // namespace cadre::bench
