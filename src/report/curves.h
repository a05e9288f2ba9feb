// The curves of an experiment's trials, as columns, for the document of a report.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::report {

// A place in a trial's results from which another trial has continued.
struct CurveOrigin {
  std::size_t trial = 0;    // index in the grid of the trial that wrote the checkpoint
  std::size_t segment = 0;  // number of its exploits before that
  std::size_t result = 0;   // index in its results; kNoResult: it had none
  static constexpr std::size_t kNoResult = static_cast<std::size_t>(-1);
};
// Returns the origin of each exploit, by the index of the trial. An exploit whose origin is unknown names the trial
// itself.
std::vector<std::vector<CurveOrigin>> origins_of(const tune::ResultGrid& grid);

struct Curves {
  // Paths of the numbers of the results, the experiment's metric first.
  std::vector<std::string> names = {};
  // For each trial its kept results: the number in each segment, which begins anew with each exploit, then a column for
  // each name, or 0 if the trial has no such numbers; consecutive integers are {"from": 1, "count": 30}. Null for a
  // trial without results, or one that is left out.
  List trials = {};
  std::size_t reduced = 0;         // number of trials with more results than were kept
  std::size_t columns_in_all = 0;  // number of paths, of which kMostColumns are there at most
  // For each trial, the index among the kept results of each origin of an exploit.
  std::vector<std::map<std::size_t, std::size_t>> kept_origins = {};

  static constexpr std::size_t kMostColumns = 48;
  static constexpr std::size_t kMostNumbers = 1'500'000;  // in all columns of all trials, about
  static constexpr std::size_t kMostRows = 2000;          // of a trial
  static constexpr std::size_t kFewestRows = 8;
};

// Reads all results. `chosen`: for each trial whether its curve is wanted.
Curves read_curves(const tune::ResultGrid& grid, const std::vector<std::vector<CurveOrigin>>& origins,
                   const std::vector<bool>& chosen);

}  // namespace cadre::report
