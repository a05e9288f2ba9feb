/// \file
/// Quasi-random search: evenly spread configs.
#pragma once

#include <memory>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// A low-discrepancy sequence.
enum class Sequence {
  sobol,   ///< each 2^k trials from a multiple of 2^k on are stratified in every parameter; up to 256 parameters
  halton,  ///< any number of parameters
};

/// Covers the space more evenly than random draws: trial i has point i of a low-discrepancy sequence in the cube of all
/// parameters, so the first trials are evenly spread whatever their number. Sources: Joe and Kuo 2008 (Sobol), Owen
/// 1995 (its scrambling), Halton 1960, Matousek 1998 (its scrambling). Bergstra and Bengio 2012, "Random Search for
/// Hyper-Parameter Optimization", compare it with random search. Peer: Optuna's QMCSampler.
///
/// Parameters of a condition have coordinates in the sequence whether they exist or not; choices have the first ones.
/// It learns nothing: how trials end does not matter, nor how many are open at a time, and it goes together with every
/// scheduler.
struct QuasiRandom {
  Sequence sequence = Sequence::sobol;  ///< the sequence
  /// Randomizes the points by TuneConfig::seed without loss of evenness. Without, they are the same for every seed, and
  /// the first one has the lowest value of each parameter.
  bool scramble = true;

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
  /// Returns that it does not learn.
  Searcher::Traits traits() const { return {.learns = false, .quick = true}; }
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, QuasiRandom>;
inline const bool knows_quasi_random = HeldOptionsOf<Searcher, SearcherSetting, QuasiRandom>::known();
}  // namespace detail

}  // namespace cadre::tune
