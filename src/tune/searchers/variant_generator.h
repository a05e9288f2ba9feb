// The configs of an experiment's trials, from its search space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Of an experiment; more are refused.
inline constexpr std::int64_t kMostTrials = std::int64_t{1} << 31;

struct Variant {
  Config config;
  Dict sampled;            // what differs between trials, by path ("model/width"), in the order of the space
  std::string fault = {};  // a function of the space threw; the config is what there was before it
};

// Each sample gives a trial for every combination of the grids, the first grid by path fastest. The n-th of
// points_to_evaluate settles what it names for the n-th sample, grids too; where there are more points than samples,
// all points are taken.
//
// The trial of a PopulationBasedTrainingReplay begins with the first config of its schedule.
//
// Every value depends on nothing but the seed, its path and the trial's index (with constant_grid_search the sample's):
// another key in the space changes none of the others.
// Source: Ray Tune's BasicVariantGenerator; docs/from-ray-tune.md lists the differences.
class VariantGenerator {
 public:
  // The options must have passed check_options().
  VariantGenerator(Space space, const TuneConfig& tune);

  std::int64_t size() const { return size_; }  // trials in all
  // The config of a trial, 0 to size() - 1.
  Variant operator()(std::int64_t trial) const;
  // What of a trial's config differs between trials, by path: what the space draws, and what the point names that the
  // trial evaluates.
  Dict sampled(std::int64_t trial, const Config& config) const;

 private:
  Space space_;
  std::uint64_t seed_;
  bool constant_grid_search_;
  std::vector<Config> points_;
  std::vector<std::int64_t> ends_;  // for each point, the number of trials up to it and with it
  std::int64_t combinations_;       // trials of a sample without a point
  std::int64_t size_;
};

// How many trials a sample has, at most `limit`.
std::int64_t count_combinations(const Space& space, const Config& point, std::int64_t limit);

// "lr=0.1000,width=3": sorted by path, only the last part of each path; floats with four decimals,
// below 0.01 with three significant digits ("0.00123", "1e-05"); other text with everything but letters, digits, '_' and
// '-' as '_'. Source: Ray Tune's experiment tags, which have four decimals always.
std::string format_variables(const Dict& sampled);

}  // namespace cadre::tune
