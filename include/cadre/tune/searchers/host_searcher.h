/// \file
/// A searcher that a host makes: one written in Python, for example.
#pragma once

#include <memory>
#include <string>

#include "cadre/function.h"
#include "cadre/tune/searcher.h"

namespace cadre::tune {

/// A searcher of the program's host (cadre/host.h), in the driver. It may suggest any values, of keys that the space
/// has or not, and says itself when it has nothing more to suggest.
struct HostSearcher {
  std::string name = {};            ///< for people
  HostFunction host_function = {};  ///< from which the host makes it
  bool learns = true;               ///< as in Searcher::Traits
  bool may_wait = true;             ///< as in Searcher::Traits

  std::unique_ptr<Searcher> make(const SearcherSetting& setting) const;  ///< returns the searcher
  void check(const TunerOptions& options, Faults& faults) const;         ///< finds what is wrong
  /// Returns what the members say, and that it chooses from any space.
  Searcher::Traits traits() const {
    return {.chooses = false, .learns = learns, .may_wait = may_wait, .any_values = true};
  }
};

namespace detail {
extern template class HeldOptionsOf<Searcher, SearcherSetting, HostSearcher>;
inline const bool knows_host_searcher = HeldOptionsOf<Searcher, SearcherSetting, HostSearcher>::known();
}  // namespace detail

}  // namespace cadre::tune
