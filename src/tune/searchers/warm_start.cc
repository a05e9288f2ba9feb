#include "cadre/tune/searchers/warm_start.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "cadre/tune/searchers/concurrency_limiter.h"
#include "cadre/tune/searchers/repeater.h"
#include "cadre/tune/tuner.h"
#include "tune/inner_options.h"

namespace cadre::tune {
namespace {

// Numbers the earlier trials before the others.
class WarmSearcher final : public Searcher {
 public:
  WarmSearcher(std::unique_ptr<Searcher> inner, const std::vector<WarmStart::EarlierTrial>& trials)
      : inner_(std::move(inner)), earlier_(static_cast<TrialIndex>(trials.size())) {
    for (TrialIndex i = 0; i < earlier_; ++i) inner_->on_trial_add(i, trials[i].config);
    for (TrialIndex i = 0; i < earlier_; ++i) inner_->on_trial_end(i, trials[i].status, trials[i].result);
  }

  std::optional<Config> suggest(TrialIndex trial) const override { return inner_->suggest(earlier_ + trial); }
  bool is_finished() const override { return inner_->is_finished(); }
  void cancel() const override { inner_->cancel(); }
  void on_trial_add(TrialIndex trial, const Config& config) override { inner_->on_trial_add(earlier_ + trial, config); }
  void on_result(TrialIndex trial, const Metrics& result) override { inner_->on_result(earlier_ + trial, result); }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    inner_->on_trial_end(earlier_ + trial, status, last_result);
  }
  Value save() const override { return inner_->save(); }
  void load(const Value& state) override { inner_->load(state); }
  std::string debug_string() const override { return inner_->debug_string(); }

 private:
  std::unique_ptr<Searcher> inner_;
  TrialIndex earlier_;
};

// Adds the trials of an experiment whose configs are of the space.
void read_trials(const std::filesystem::path& directory, const Space& space,
                 std::vector<WarmStart::EarlierTrial>& trials, std::vector<std::string>& notes) {
  const Parameters parameters(space);
  std::int64_t others = 0;
  for (const Result& result : ResultGrid::from_directory(directory)) {
    const bool ended = result.status == TrialStatus::terminated || result.status == TrialStatus::stopped;
    if (!ended || result.metrics.empty() || !result.exploits.empty()) continue;
    if (parameters.point_of(result.drawn_config)) {
      trials.push_back({result.drawn_config, result.status, result.metrics});
    } else {
      ++others;
    }
  }
  if (others > 0)
    notes.push_back(
        fmt::format("searcher (WarmStart): {} trials of {} have configs that are not of this search space, "
                    "and are left out",
                    others, directory.string()));
}

// Returns true if a searcher is a Repeater, or limits one.
bool holds_repeater(const AnySearcher& searcher) {
  const auto* const limiter = searcher.get_if<ConcurrencyLimiter>();
  return searcher.get_if<Repeater>() != nullptr || (limiter != nullptr && holds_repeater(limiter->searcher));
}

std::vector<WarmStart::EarlierTrial> all_of(const WarmStart& options) {
  std::vector<WarmStart::EarlierTrial> all = options.read.value_or(std::vector<WarmStart::EarlierTrial>());
  all.insert(all.end(), options.trials.begin(), options.trials.end());
  return all;
}

}  // namespace

std::unique_ptr<Searcher> WarmStart::make(const SearcherSetting& setting) const {
  return std::make_unique<WarmSearcher>(searcher.make(setting), all_of(*this));
}

void WarmStart::complete(TunerOptions& options, std::vector<std::string>& notes) {
  complete_inner(searcher, options, notes);
  if (read || experiments.empty()) return;
  std::vector<EarlierTrial> found;
  try {
    for (const std::filesystem::path& directory : experiments)
      read_trials(directory, options.param_space, found, notes);
  } catch (const Error& error) {
    Faults faults;
    faults.add("searcher (WarmStart) experiments", error.what());
    faults.throw_if_any("the experiment");
  }
  read = std::move(found);
}

void WarmStart::check(const TunerOptions& options, Faults& faults) const {
  check_inner(searcher, "searcher", "tune::TPE{}", options, faults);
  faults.unless(!holds_repeater(searcher), "searcher",
                "a Repeater would take earlier trials for repetitions of one suggestion: put the WarmStart into it, as "
                "in Repeater{.searcher = WarmStart{...}}");
  const std::size_t count = trials.size() + (read ? read->size() : 0);
  faults.unless(count > 0, "experiments",
                experiments.empty() ? "name the directories of earlier experiments, or give trials"
                                    : "they have no trial that has ended with a result and a config of this space");
  faults.unless(count < std::numeric_limits<TrialIndex>::max() / 4, "experiments", "they have too many trials");
}

void WarmStart::take_over(const WarmStart& stored) {
  take_over_inner(searcher, stored.searcher);
  if (!read && experiments == stored.experiments) read = stored.read;
}

Searcher::Traits WarmStart::traits() const { return traits_of_inner(searcher); }

template class detail::HeldOptionsOf<Searcher, SearcherSetting, WarmStart>;

}  // namespace cadre::tune
