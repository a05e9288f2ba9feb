// Invariants of an experiment of subject.h, however often it was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "survival/survivor.h"

namespace cadre::survival {

// Outcome of an experiment; with `synch` it is the same whatever interrupts the experiment.
struct Outcome {
  struct Trial {
    std::string config;  // JSON
    double score = 0;
    bool operator==(const Trial&) const = default;
  };
  std::vector<Trial> trials;
  std::string pbt_global;
  bool operator==(const Outcome&) const = default;
};

struct Expectation {
  bool finished = false;                // the experiment is finished
  bool leftovers = false;               // something could not be deleted: the next restore deletes it
  std::int64_t worker_deaths = 0;       // at most; each may have failed a trial once
  std::optional<Outcome> outcome = {};  // outcome of the same experiment without disturbances
};

// Part of a fault's text if the outcome differs because checkpoints were lost with the machine's power.
inline constexpr char kAfterALoss[] = ", after checkpoints were lost";

// Returns faults, a line each; empty if there are none. The directory may be that of a controller that was killed a
// moment ago: reads a copy of the store, so that the next controller finds the files as the kill left them.
std::vector<std::string> faults_of(const std::filesystem::path& experiment, const Setting& setting,
                                   const Expectation& expectation);

// Returns the faults that readers find, a line each. Readers are ResultGrid::from_directory and `program`, the program
// cadre (empty: not run). Reads a copy of the store, too.
std::vector<std::string> faults_of_readers(const std::filesystem::path& experiment, const Setting& setting,
                                           const std::filesystem::path& program);

Outcome outcome_of(const std::filesystem::path& experiment);

}  // namespace cadre::survival
