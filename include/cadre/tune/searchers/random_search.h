/// \file
/// Random and grid search.
#pragma once

#include <memory>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// A searcher without suggestions: every value is drawn from the search space, independently for each trial, and grids
/// are searched. The only searcher for spaces with grids.
struct RandomSearch {
  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  /// Returns that it chooses nothing.
  Searcher::Traits traits() const { return {.chooses = false, .learns = false, .quick = true}; }
};
/// Ray Tune's name of it.
using BasicVariantGenerator = RandomSearch;

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, RandomSearch>;
inline const bool knows_random_search = HeldOptionsOf<Searcher, SearcherSetting, RandomSearch>::known();
}  // namespace detail

}  // namespace cadre::tune
