// Runs a workload's experiment in a process of its own, and counts its rows afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cadre/tune.h"
#include "process.h"

namespace cadre::bench {

// Calls cadre::init for a machine of `slots` CPUs, in a benchmark process that is about to run an experiment. `nodes`:
// agents on this machine that have these CPUs together; 0: none.
void init_with_slots(std::int64_t slots, std::int64_t nodes = 0);

// An experiment for a machine of `slots` CPUs. A trial takes one CPU, so `slots` trials run at a time.
struct Setup {
  tune::Trainable trainable;
  tune::TunerOptions options;  // with name and storage_path
  std::int64_t slots = 1;
  std::int64_t nodes = 0;  // as init_with_slots() has them
};

struct Run {
  double wall_s = 0;            // duration of Tuner::fit
  double controller_cpu_s = 0;  // of the process that called it, meanwhile
  Usage usage;                  // of all processes, from before cadre::init to their exit
  std::filesystem::path directory;
};

// Runs an experiment in a process of its own, silently.
Run run_experiment(const Setup& setup);

// Returns the counts in an experiment's directory: "trials", "terminated", "errors", "results" (each step of a trial
// once), "exploits" and "checkpoints" (kept ones).
Dict count(const std::filesystem::path& experiment);

}  // namespace cadre::bench
