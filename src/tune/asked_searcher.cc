#include "tune/asked_searcher.h"

#include <algorithm>
#include <utility>

namespace cadre::tune {

void AskedSearcher::ask(TrialIndex trial) { state_.asked = trial; }

void AskedSearcher::end_asking() {
  state_.asked.reset();
  for (const auto& [trial, status, metrics] : std::exchange(state_.untold, {}))
    status ? on_trial_end(trial, *status, metrics) : on_result(trial, metrics);
}

void AskedSearcher::on_result(TrialIndex trial, const Metrics& result) {
  if (is_asked()) return state_.untold.push_back({.trial = trial, .metrics = result});
  searcher_->on_result(trial, result);
}

void AskedSearcher::on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) {
  state_.has_none = false;
  if (is_asked()) return state_.untold.push_back({.trial = trial, .status = status, .metrics = last_result});
  searcher_->on_trial_end(trial, status, last_result);
}

void AskedSearcher::load(State state, const Value& saved, std::span<const Trial* const> ended) {
  const auto is_untold = [&](const Trial* trial) {
    return std::ranges::any_of(state.untold,
                               [&](const Untold& untold) { return untold.trial == trial->index && untold.status; });
  };
  for (const Trial* trial : ended) {
    if (!is_untold(trial)) searcher_->on_trial_end(trial->index, trial->status, trial->last_result);
  }
  searcher_->load(saved);
  state_ = std::move(state);
}

}  // namespace cadre::tune
