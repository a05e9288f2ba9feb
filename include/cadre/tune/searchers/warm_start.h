/// \file
/// Earlier experiments as a start for a searcher.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// Another searcher, which is told of the trials of earlier experiments before it suggests anything. Trials of these
/// that have not ended, have failed or have no result are left out; so are those whose config is not of this search
/// space, with a note. Their results should have the same metrics.
struct WarmStart {
  /// An earlier trial, as the experiment stores it.
  struct EarlierTrial {
    Config config = {};                            ///< its first config
    TrialStatus status = TrialStatus::terminated;  ///< terminated or stopped
    Metrics result = {};                           ///< its last result
  };
  AnySearcher searcher = {};                            ///< the searcher that is told; must be set
  std::vector<std::filesystem::path> experiments = {};  ///< their directories or URIs, read when the Tuner is made
  std::vector<EarlierTrial> trials = {};                ///< other trials to tell
  /// Set by the Tuner: what it has read there. A restore does not need the directories.
  std::optional<std::vector<EarlierTrial>> read = {};

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;   ///< returns the searcher
  void complete(TunerOptions& options, std::vector<std::string>& notes);  ///< reads the experiments
  void check(const TunerOptions& options, Faults& faults) const;          ///< finds what is wrong
  void take_over(const WarmStart& stored);                                ///< takes the trials that were read
  Searcher::Traits traits() const;                                        ///< returns those of the searcher
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, WarmStart>;
inline const bool knows_warm_start = HeldOptionsOf<Searcher, SearcherSetting, WarmStart>::known();
}  // namespace detail

}  // namespace cadre::tune
