#include "cadre/tune/searchers/concurrency_limiter.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "tune/inner_options.h"

namespace cadre::tune {
namespace {

class LimitedSearcher final : public Searcher {
 public:
  LimitedSearcher(std::unique_ptr<Searcher> inner, std::int64_t limit, bool batch)
      : inner_(std::move(inner)), limit_(limit), batch_(batch) {}

  std::optional<Config> suggest(TrialIndex trial) const override {
    return has_room(trial) ? inner_->suggest(trial) : std::nullopt;
  }
  bool is_finished() const override { return inner_->is_finished(); }
  void cancel() const override { inner_->cancel(); }
  void on_trial_add(TrialIndex trial, const Config& config) override {
    if (open_.empty()) begin_of_batch_ = trial;
    open_.insert(trial);
    inner_->on_trial_add(trial, config);
  }
  void on_result(TrialIndex trial, const Metrics& result) override { inner_->on_result(trial, result); }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    open_.erase(trial);
    inner_->on_trial_end(trial, status, last_result);
  }
  Value save() const override { return to_stored(State{begin_of_batch_, inner_->save()}); }
  void load(const Value& saved) override {
    const auto state = complete_from_value<State>(saved);
    begin_of_batch_ = state.begin_of_batch;
    inner_->load(state.inner);
  }
  std::string debug_string() const override { return inner_->debug_string(); }

 private:
  struct State {
    TrialIndex begin_of_batch = 0;
    Value inner = {};
  };

  bool has_room(TrialIndex trial) const {
    if (batch_) return open_.empty() || std::int64_t{trial} - begin_of_batch_ < limit_;
    return std::ssize(open_) < limit_;
  }

  std::unique_ptr<Searcher> inner_;
  std::int64_t limit_;
  bool batch_;
  std::set<TrialIndex> open_ = {};
  TrialIndex begin_of_batch_ = 0;  // made when no other trial was open
};

}  // namespace

std::unique_ptr<Searcher> ConcurrencyLimiter::make(const SearcherSetting& setting) const {
  return std::make_unique<LimitedSearcher>(searcher.make(setting), max_concurrent, batch);
}

void ConcurrencyLimiter::complete(TunerOptions& options, std::vector<std::string>& notes) {
  complete_inner(searcher, options, notes);
}

void ConcurrencyLimiter::check(const TunerOptions& options, Faults& faults) const {
  check_inner(searcher, "searcher", "tune::TPE{}", options, faults);
  faults.unless(max_concurrent >= 1, "max_concurrent", fmt::format("it is {}; it must be at least 1", max_concurrent));
}

void ConcurrencyLimiter::take_over(const ConcurrencyLimiter& stored) { take_over_inner(searcher, stored.searcher); }

Searcher::Traits ConcurrencyLimiter::traits() const {
  Searcher::Traits traits = traits_of_inner(searcher);
  traits.may_wait = true;
  return traits;
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, ConcurrencyLimiter>;

}  // namespace cadre::tune
