// Options of a searcher within those of another one.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/searcher.h"
#include "tune/held_options.h"

namespace cadre::tune {

inline void complete_inner(AnySearcher& searcher, TunerOptions& options, std::vector<std::string>& notes) {
  if (!searcher.empty()) searcher = AnySearcher(searcher.held().completed(options, notes));
}

inline void check_inner(const AnySearcher& searcher, const TunerOptions& options, Faults& faults) {
  faults.unless(!searcher.empty(), "searcher", "there is none; say which one, such as .searcher = tune::TPE{}");
  check_held(searcher, "searcher", options, faults);
}

inline void take_over_inner(AnySearcher& searcher, const AnySearcher& stored) {
  if (!searcher.empty() && !stored.empty()) searcher = AnySearcher(searcher.held().taking_over(stored.held()));
}

inline Searcher::Traits traits_of_inner(const AnySearcher& searcher) {
  return searcher.empty() ? Searcher::Traits{} : searcher.held().traits();
}

}  // namespace cadre::tune
