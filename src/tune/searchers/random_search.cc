#include "cadre/tune/searchers/random_search.h"

namespace cadre::tune {
namespace {

class RandomSearcher final : public Searcher {
 public:
  std::optional<Config> suggest(TrialIndex) const override { return Config(); }
  void on_trial_add(TrialIndex, const Config&) override {}
  void on_trial_end(TrialIndex, TrialStatus, const Metrics&) override {}
};

}  // namespace

std::unique_ptr<Searcher> RandomSearch::make(const SearcherSetting&) const {
  return std::make_unique<RandomSearcher>();
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, RandomSearch>;

}  // namespace cadre::tune
