/// \file
/// The covariance matrix adaptation evolution strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cadre/tune/constraint.h"
#include "cadre/tune/searcher.h"
#include "cadre/value.h"

namespace cadre::tune {

/// How CMA-ES begins anew after it has converged.
enum class Restart {
  none,   ///< not at all
  ipop,   ///< elsewhere with twice the population (Auger and Hansen 2005)
  bipop,  ///< alternately so, and with small populations and steps (Hansen 2009)
};

/// CMA-ES: draws configs from a normal distribution that follows the best ones (Hansen 2016, "The CMA Evolution
/// Strategy: A Tutorial", https://arxiv.org/abs/1604.00772, with negative weights). For hundreds of trials or more of
/// up to some hundred parameters, most of them real. Peer: Optuna's CmaEsSampler, with the package cmaes.
///
/// It works in the cube of Parameters, where real parameters are quantiles of their domains. Its normal random numbers
/// come from a scrambled Sobol sequence (Teytaud and Gelly 2007, "DCMA"), up to 256 parameters. Points outside of the
/// cube are moved to its border, and the distribution is adapted to them there, so that an optimum at the border is
/// found exactly. Integers and other ordered discrete parameters
/// have a normal distribution as well, whose margin keeps them from being stuck at one value (Hamano et al. 2022,
/// "CMA-ES with Margin"). Choices have categorical distributions, which follow the natural gradient and have a margin
/// too (Hamano et al. 2024, "CatCMA"). Parameters with one value are left out.
///
/// Parameters of a condition: a trial that lacks one changes neither its mean nor, as far as the best trials lack it,
/// its standard deviation. It is drawn nevertheless, so that the covariance of the others is adapted as ever.
///
/// A generation ends when `popsize` trials have ended with a result, whichever these are, so no trial is wasted that
/// runs in parallel. Those that were suggested in an earlier generation, and those with configs that it has not
/// suggested, count by their rank as well, but none can move the distribution far (Hansen 2011, "Injecting external
/// solutions into CMA-ES"). Trials that were suggested before a restart of CMA-ES do not count. With more than
/// `popsize` trials at a time, set popsize to their number.
///
/// Trials are ranked by their last results. Those that break constraints come after those that keep them, and NaN comes
/// after every number. Trials that a scheduler stopped come after those that ran to their end; among them, those that
/// came further are better. Failed trials, and those without the metric, do not count: others take their place.
struct CMAES {
  /// Initial standard deviation of each ordered parameter, as a share of the cube; above 0.
  double sigma0 = 0.2;
  /// The config around which it begins: a value for each parameter, those of conditions that it meets. For a choice,
  /// half of the first trials have this option for that reason. Default: the middle of the cube.
  std::optional<Config> x0 = {};
  /// Number of trials of a generation, at least 2. Default: 4 + 3 ln(number of parameters), rounded down.
  std::optional<std::int64_t> popsize = {};
  Restart restart = Restart::ipop;           ///< what follows convergence
  std::vector<Constraint> constraints = {};  ///< limits that results should keep

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, CMAES>;
inline const bool knows_cmaes = HeldOptionsOf<Searcher, SearcherSetting, CMAES>::known();
}  // namespace detail

}  // namespace cadre::tune
