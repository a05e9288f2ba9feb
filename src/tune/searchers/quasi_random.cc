#include "cadre/tune/searchers/quasi_random.h"

#include <fmt/format.h>

#include "cadre/tune/tuner.h"
#include "tune/searchers/low_discrepancy_sequence.h"

namespace cadre::tune {
namespace {

template <class Points>
class QuasiRandomSearcher final : public Searcher {
 public:
  QuasiRandomSearcher(const QuasiRandom& options, const SearcherSetting& setting)
      : parameters_(setting.space),
        points_(parameters_.size(), options.scramble ? std::optional(setting.seed) : std::nullopt) {}

  std::optional<Config> suggest(TrialIndex trial) const override {
    return parameters_.config_of(parameters_.settled(points_.point(trial)));
  }
  void on_trial_add(TrialIndex, const Config&) override {}
  void on_trial_end(TrialIndex, TrialStatus, const Metrics&) override {}

 private:
  Parameters parameters_;
  Points points_;
};

}  // namespace

std::unique_ptr<Searcher> QuasiRandom::make(const SearcherSetting& setting) const {
  if (sequence == Sequence::halton) return std::make_unique<QuasiRandomSearcher<HaltonSequence>>(*this, setting);
  return std::make_unique<QuasiRandomSearcher<SobolSequence>>(*this, setting);
}

void QuasiRandom::check(const TunerOptions& options, Faults& faults) const {
  std::size_t size = 0;
  try {
    size = Parameters(options.param_space).size();
  } catch (const InvalidArgument&) {
    return;  // a Tuner names the fault of the space
  }
  faults.unless(sequence != Sequence::sobol || size <= SobolSequence::kMostDimensions, "sequence",
                fmt::format("param_space has {} parameters, and sobol has up to {}: use Sequence::halton", size,
                            SobolSequence::kMostDimensions));
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, QuasiRandom>;

}  // namespace cadre::tune
