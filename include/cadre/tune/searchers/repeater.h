/// \file
/// Several trials for each suggestion, against noise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// Another searcher, each suggestion of which is tried by `repeat` trials, one after another in the order of trials. It
/// observes them as one: when all of them have ended, their average of each metric, without NaN, over those that have a
/// result; a trial of it that has failed counts for nothing, and if all have failed so has the whole. Trials differ by
/// their random numbers: tune::get_context().get_seed(). TuneConfig::num_samples counts trials; points_to_evaluate are
/// refused.
struct Repeater {
  AnySearcher searcher = {};  ///< the searcher that is asked; must be set
  std::int64_t repeat = 2;    ///< trials for each suggestion, at least 1

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;   ///< returns the searcher
  void complete(TunerOptions& options, std::vector<std::string>& notes);  ///< completes the searcher's options
  void check(const TunerOptions& options, Faults& faults) const;          ///< finds what is wrong
  void take_over(const Repeater& stored);                                 ///< passes stored options on
  Searcher::Traits traits() const;                                        ///< returns those of the searcher
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, Repeater>;
inline const bool knows_repeater = HeldOptionsOf<Searcher, SearcherSetting, Repeater>::known();
}  // namespace detail

}  // namespace cadre::tune
