// What must be true of an experiment of subject.h, however often it was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "survival/survivor.h"

namespace cadre::survival {

// How an experiment came out: with `synch` the same whatever happened on the way.
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
  bool finished = false;                // the experiment has come to its end
  bool leftovers = false;               // something could not be deleted: the next restore does it
  std::int64_t worker_deaths = 0;       // at most; each may have failed a trial once
  std::optional<Outcome> outcome = {};  // of the same experiment when nothing disturbs it
};

// Part of the faults of an outcome that is another one because checkpoints were lost with the machine's power.
inline constexpr char kAfterALoss[] = ", after checkpoints were lost";

// Each fault in a line; none where all is well. The directory may be that of a controller that was killed this moment:
// a copy of the store is looked at, so that the next controller finds the files as the kill left them.
std::vector<std::string> faults_of(const std::filesystem::path& experiment, const Setting& setting,
                                   const Expectation& expectation);

// Returns what those who only look make of it: ResultGrid::from_directory, and `program`, which is cadre, where one is
// given. Each fault in a line. A copy of the store is looked at here as well.
std::vector<std::string> faults_of_readers(const std::filesystem::path& experiment, const Setting& setting,
                                           const std::filesystem::path& program);

Outcome outcome_of(const std::filesystem::path& experiment);

}  // namespace cadre::survival
