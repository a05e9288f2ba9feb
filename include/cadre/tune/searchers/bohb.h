/// \file
/// The model of BOHB: learns from results on the way, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// The searcher of BOHB (Falkner, Klein and Hutter, 2018, "BOHB: Robust and Efficient Hyperparameter Optimization at
/// Scale", https://arxiv.org/abs/1807.01774), for schedulers that end most trials early: HyperBandScheduler with the
/// same max_t and reduction_factor, which together are BOHB, or ASHAScheduler.
///
/// A trial is observed at budgets: max_t, max_t / reduction_factor, and so on down to 1, each rounded down, in units of
/// time_attr. A result counts at the largest budget that it has reached, if it is the trial's first one there. A
/// suggestion is made as by TPE, from densities of good and bad trials, with the observations at the largest budget
/// that has enough of them. A share of the suggestions is random, so that the worst case is that of the scheduler
/// alone.
///
/// Conditional spaces are handled as by TPE. NaN is the worst value. Failed trials count with what they had reported. A
/// result without time_attr or metric changes nothing. Open trials count like others at the budgets that they have
/// reached.
struct BOHB {
  std::string time_attr = "training_iteration";       ///< a metric that only grows
  double max_t = 81;                                  ///< the largest budget; 1 to 10^9
  double reduction_factor = 3;                        ///< ratio of budgets; 1.1 or more
  std::optional<std::int64_t> min_observations = {};  ///< at a budget; at least 2; default: parameters + 3
  double good_fraction = 0.15;                        ///< share of the observations that are good; above 0, below 1
  std::int64_t num_candidates = 64;                   ///< drawn for each suggestion, of which it is the best; from 1
  double random_fraction = 1.0 / 3;                   ///< share of suggestions that are random; from 0 to 1

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
};
/// Ray Tune's name of it.
using TuneBOHB = BOHB;

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, BOHB>;
inline const bool knows_bohb = HeldOptionsOf<Searcher, SearcherSetting, BOHB>::known();
}  // namespace detail

}  // namespace cadre::tune
