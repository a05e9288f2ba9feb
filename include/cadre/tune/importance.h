/// \file
/// Importance of hyper-parameters: which of them made good trials good.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::tune {

/// The importance of one hyper-parameter.
struct Importance {
  std::string key = {};        ///< its path in a config: "model/width"; "sizes/0" of a list's item
  double importance = 0;       ///< from 0 to 1; those of all keys add up to 1
  std::size_t num_trials = 0;  ///< trials that count and have it: not all, if it exists only with another one's option
};

/// Options of importances().
struct ImportanceOptions {
  Objective metric = {};               ///< metric that makes a trial good; default: the TuneConfig's
  std::optional<Mode> mode = {};       ///< required, here or in `metric`, unless it is the TuneConfig's metric
  Scope scope = Scope::last;           ///< results of a trial that count
  double quantile = 0.1;               ///< share of trials that are good, above 0 and below 1
  std::vector<std::string> keys = {};  ///< keys to compare with each other; default: all of the search space
};

/// Returns the importance of the hyper-parameters of an experiment for being among its best trials, the most important
/// first: how much the values of the best trials are distributed differently from those of all trials. So the figures
/// are about the values that were tried: a searcher that soon gave up the bad values of a hyper-parameter makes it look
/// less important than random search does. What two hyper-parameters do only together does not show.
///
/// Trials with a finite number of the metric count, as in ResultGrid::get_best_result, at least 10 of them. Below 100
/// trials the figures change much from seed to seed. Left out are trials whose config an exploit has changed, because
/// their result comes from several configs. A hyper-parameter that only some trials have, because it is within an
/// option of a choice, is judged by those; if it is drawn from several domains, by which one as well. Numbers are
/// compared on the scale on which they are drawn, options of a choice or a grid as such. Constants and functions have
/// no importance; neither has a choice or a list with a function within it. A hyper-parameter with one value in all
/// trials has 0.
///
/// Reads all results for every scope except Scope::last. Throws InvalidArgument for options that are out of range, a
/// metric without a direction, too few trials, or if nothing distinguishes the best trials; NotFound if no trial has
/// the metric; StorageError if results cannot be read.
///
/// Source: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary
/// Subspaces" (2023), and its extension to conditional spaces, as in Optuna 5's PedAnovaImportanceEvaluator.
std::vector<Importance> importances(const ResultGrid& results, const ImportanceOptions& options = {});

}  // namespace cadre::tune
