/// \file
/// A limit on the suggestions of a searcher that have not been observed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// Another searcher, which is asked for the next suggestion only while fewer trials are open: made, and not ended. Less
/// parallel, each suggestion knows of more results. TuneConfig::max_concurrent_trials limits trials that run, whatever
/// the searcher.
struct ConcurrencyLimiter {
  AnySearcher searcher = {};        ///< the searcher that is asked; must be set
  std::int64_t max_concurrent = 1;  ///< open trials at a time, at least 1
  /// If true, the next max_concurrent trials are made only when all open trials have ended, for searchers that learn
  /// from batches.
  bool batch = false;

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;   ///< returns the searcher
  void complete(TunerOptions& options, std::vector<std::string>& notes);  ///< completes the searcher's options
  void check(const TunerOptions& options, Faults& faults) const;          ///< finds what is wrong
  void take_over(const ConcurrencyLimiter& stored);                       ///< passes stored options on
  Searcher::Traits traits() const;                                        ///< returns that it may wait
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, ConcurrencyLimiter>;
inline const bool knows_concurrency_limiter = HeldOptionsOf<Searcher, SearcherSetting, ConcurrencyLimiter>::known();
}  // namespace detail

}  // namespace cadre::tune
