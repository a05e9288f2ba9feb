/// \file
/// A searcher that is another program.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cadre/tune/searcher.h"
#include "cadre/tune/stop.h"

namespace cadre::tune {

/// Any program as a searcher, by lines of JSON: it reads from its standard input what the searcher is told, and answers
/// on its standard output when it is asked for a suggestion. Its standard error is the Tuner's. It should end when its
/// standard input does.
///
///     {"begin": {"space": {...}, "metric": "loss", "mode": "min", "seed": 0, "num_samples": 100}}
///     {"add": 0, "config": {...}}                        trial 0 exists, with this config
///     {"result": 0, "metrics": {...}}                    a result of it
///     {"end": 0, "status": "terminated", "metrics": {...}}   or stopped or error; its last result, which may be {}
///     {"suggest": 1}                                     is answered by {"config": {...}}, keys or paths that it
///                                                        chooses, {"wait": true}: not before another trial has
///                                                        ended, or {"finished": true}: no further trials
///
/// `space` is the search space as experiments store it (docs/formats.md, "The stored options"). The lines are sent when
/// a suggestion is asked for. A program that ends, does not answer in time or answers otherwise is started again and
/// told everything anew: all trials, then the ends of those that have ended, each in the order of trials; after
/// `max_restarts` such failures in a row the experiment ends with an error, and can be restored. A restore does the
/// same, and so do more than 16 MiB of lines that wait for the next suggestion: they are not kept, and a new program is
/// told everything. While the program thinks, reports of trials wait for their answers.
struct ExternalSearcher {
  std::vector<std::string> command = {};       ///< the program, looked for in PATH, and its arguments
  Seconds timeout = std::chrono::seconds(60);  ///< time to answer, also for the first time; above 0
  std::int64_t max_restarts = 3;               ///< failures in a row that are tried again; 0 or more

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
  /// Returns that it may wait, and chooses from any space.
  Searcher::Traits traits() const { return {.chooses = false, .learns = true, .may_wait = true}; }
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, ExternalSearcher>;
inline const bool knows_external_searcher = HeldOptionsOf<Searcher, SearcherSetting, ExternalSearcher>::known();
}  // namespace detail

}  // namespace cadre::tune
