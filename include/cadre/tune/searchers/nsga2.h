/// \file
/// A genetic algorithm for one or several objectives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cadre/tune/constraint.h"
#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// How a child's ordered parameters come from those of its two parents. Choices are swapped by all of them.
enum class Crossover {
  uniform,    ///< each from one parent or the other
  sbx,        ///< simulated binary crossover (Deb and Agrawal 1995), distribution index 2
  blx_alpha,  ///< blend crossover (Eshelman and Schaffer 1993), alpha 0.5
};

/// NSGA-II (Deb et al. 2002, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II"), in the steady-state form
/// (Durillo et al. 2009, "On the Effect of the Steady-State Selection Scheme in Multi-Objective Genetic Algorithms"):
/// the population changes whenever a trial has ended, so no trial waits for a generation to be complete, however many
/// are open at a time. For several objectives, or spaces with many choices and conditions. Peer: Optuna's
/// NSGAIISampler.
///
/// The first trials, as many as the population has room for, are evenly spread (as QuasiRandom's). Every other one is a
/// child of two members of the population, each the better one of two drawn at random: by non-domination rank, and
/// among equals by crowding distance. Parents are crossed and the child is mutated in the cube of Parameters: ordered
/// parameters by polynomial mutation with distribution index 20, discrete ones at least to the next value, and choices
/// to any option. A child that equals a member of the population or an open trial has parameters drawn anew. An ended
/// trial joins the population, and then the member of the last rank that is the most crowded leaves it.
///
/// Parameters of a condition: a child inherits what exists under its own choices from the parents that have it; what
/// neither has is drawn at random.
///
/// Trials are compared by their last results. Those that break constraints come after those that keep them (Deb's
/// constrained domination), and NaN counts as infinitely bad. Trials that a scheduler stopped come after those that ran
/// to their end; among them, those that came further are better. Failed trials, and those without a number for each
/// objective, do not count.
struct NSGA2 {
  std::int64_t population_size = 50;           ///< number of members that may be parents; at least 2
  std::optional<double> mutation_prob = {};    ///< of each parameter, from 0 to 1; default: 1 / their number
  Crossover crossover = Crossover::blx_alpha;  ///< how parents are crossed
  double crossover_prob = 0.9;                 ///< of two parents; otherwise a child is one's copy; from 0 to 1
  double swapping_prob = 0.5;                  ///< of a parameter to be swapped between the parents; from 0 to 1
  std::vector<Objective> metrics = {};         ///< objectives, each with a direction; default: TuneConfig::metric alone
  std::vector<Constraint> constraints = {};    ///< limits that results should keep

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, NSGA2>;
inline const bool knows_nsga2 = HeldOptionsOf<Searcher, SearcherSetting, NSGA2>::known();
}  // namespace detail

}  // namespace cadre::tune
