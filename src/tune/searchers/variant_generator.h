// The configs of an experiment's trials, from its search space.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cadre/tune/tuner.h"

namespace cadre::tune {

// The most trials of an experiment.
inline constexpr std::int64_t kMostTrials = std::int64_t{1} << 31;

struct Variant {
  Config config;
  Dict sampled = {};       // values that differ between trials, by path ("model/width"), in the order of the space
  std::string fault = {};  // set if a function of the space threw; the config is then as it was before that call
};

// The trials and samples that exist when a space becomes that of the experiment.
struct VariantBegin {
  std::int64_t trial = 0;
  std::int64_t sample = 0;
};

// Generates the variants of an experiment. Each sample gives a trial for every combination of the grids; the first grid
// by path varies fastest. The n-th of points_to_evaluate fixes the values it names, grids too, for the n-th sample; if
// there are more points than samples, all points are used.
//
// Every value depends only on the seed, its path and the trial's index (with constant_grid_search the sample's):
// another key in the space changes none of the others.
// Source: Ray Tune's BasicVariantGenerator; docs/from-ray-tune.md lists the differences.
class VariantGenerator {
 public:
  // The options must have passed check_options(). Those of the first trials and samples are made: `begin`.
  // `inserted`: see insert().
  VariantGenerator(Space space, const TuneConfig& tune, VariantBegin begin = {},
                   std::map<TrialIndex, Config> inserted = {});

  // Makes a trial, which is not made yet, one with these values, by path, instead of a variant: that comes later. A
  // grid that they omit has its first option.
  void insert(std::int64_t trial, Config values) {
    inserted_.emplace(static_cast<TrialIndex>(trial), std::move(values));
  }

  std::int64_t size() const;  // number of trials, with those that are made
  // Returns the number of samples that the first trials belong to.
  std::int64_t samples_of(std::int64_t trials) const;
  // Returns true if the trial has a point to evaluate.
  bool has_point(std::int64_t trial) const { return !ends_.empty() && variant(trial) < ends_.back(); }
  // Returns the config of a trial, that of `begin` to size() - 1. `suggestion`: values by path, for a trial without a
  // point; keys that the space lacks are added.
  Variant operator()(std::int64_t trial, const Config& suggestion = {}) const;
  // Returns the values of a trial's first config that differ between trials, by path: those drawn from the space, those
  // named by the trial's point to evaluate, and those that the space lacks.
  Dict sampled(std::int64_t trial, const Config& config) const;

 private:
  // The place of a trial.
  struct Place {
    std::size_t point = 0;  // of its sample; points_.size(): none
    std::int64_t sample = 0;
    std::int64_t combination = 0;  // of grids
  };
  Place place_of(std::int64_t variant) const;
  // Returns the number that a trial would have without those that were inserted before it.
  std::int64_t variant(std::int64_t trial) const;
  std::int64_t inserted_before(std::int64_t trial) const;

  Space space_;
  std::uint64_t seed_;
  bool constant_grid_search_;
  VariantBegin begin_;
  std::vector<Config> points_;      // of the samples from `begin_` on
  std::vector<std::int64_t> ends_;  // for each point, the number of trials up to and including it
  std::map<TrialIndex, Config> inserted_;
  std::int64_t combinations_;  // trials of a sample without a point
  std::int64_t size_;          // without those that were inserted
};

// Returns the number of trials of a sample, at most `limit`.
std::int64_t count_combinations(const Space& space, const Config& point, std::int64_t limit);

// Returns "lr=0.1000,width=3": sorted by path, only the last part of each path; floats with four decimals, below 0.01
// with three significant digits ("0.00123", "1e-05"); in other text, '_' instead of each run of characters other than
// letters, digits, '_' and '-'. Source: Ray Tune's experiment tags, which always have four decimals.
std::string format_variables(const Dict& sampled);

}  // namespace cadre::tune
