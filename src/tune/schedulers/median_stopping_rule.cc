#include "cadre/tune/schedulers/median_stopping_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"

namespace cadre::tune {
namespace {

class MedianScheduler final : public Scheduler {
 public:
  explicit MedianScheduler(MedianStoppingRule settings) : settings_(std::move(settings)) {}

  void on_trial_add(const TrialView& trial) override;
  Decision on_result(const TrialView& trial, const Metrics& result, const Population& population) override;
  std::optional<TrialIndex> choose(const Candidates& candidates, const Population& population) override;
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override;
  std::string debug_string() const override {
    return fmt::format("Using MedianStoppingRule: num_stopped={}.", state_.stopped);
  }

 private:
  struct Member {
    std::vector<double> times = {};  // of the results from grace_period on
    std::vector<double> sums = {};   // of the metric up to each of them
    double last_time = -std::numeric_limits<double>::infinity();
    double best = -std::numeric_limits<double>::infinity();  // of all its scores
    double last_pause = -std::numeric_limits<double>::infinity();
    bool is_spared = false;  // was found bad and paused for it
  };
  struct State {
    std::vector<Member> members = {};  // by the trial's index
    std::int64_t stopped = 0;
  };

  void add(Member& member, double time, double score) const;
  std::vector<double> averages_of_others(TrialIndex trial, double time) const;
  Decision decide(Member& member, double time, std::vector<double> averages, const Population& population);

  MedianStoppingRule settings_;
  State state_;
};

void MedianScheduler::on_trial_add(const TrialView& trial) {
  if (trial.index() == state_.members.size()) {
    state_.members.emplace_back();
  } else if (trial.num_results() == 0) {
    state_.members.at(trial.index()) = {};  // it begins anew
  }
}

Decision MedianScheduler::on_result(const TrialView& trial, const Metrics& result, const Population& population) {
  const std::optional<double> time = control::finite_number(result, settings_.time_attr);
  const std::optional<double> metric = result.number(settings_.metric.name);
  Member& member = state_.members.at(trial.index());
  if (!time || !metric || member.is_spared) return {};
  add(member, *time, settings_.mode == Mode::min ? -*metric : *metric);
  if (*time < settings_.grace_period) return {};
  return decide(member, *time, averages_of_others(trial.index(), *time), population);
}

void MedianScheduler::add(Member& member, double time, double score) const {
  member.last_time = time;
  if (score > member.best) member.best = score;
  if (time < settings_.grace_period) return;
  member.sums.push_back(score + (member.sums.empty() ? 0 : member.sums.back()));
  member.times.push_back(time);
}

std::vector<double> MedianScheduler::averages_of_others(TrialIndex trial, double time) const {
  std::vector<double> averages;
  for (std::size_t other = 0; other < state_.members.size(); ++other) {
    const Member& member = state_.members[other];
    if (other == trial || member.last_time < time) continue;
    const auto count = std::ranges::upper_bound(member.times, time) - member.times.begin();
    if (count == 0) continue;
    const double average = member.sums[static_cast<std::size_t>(count) - 1] / static_cast<double>(count);
    if (std::isfinite(average)) averages.push_back(average);
  }
  return averages;
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

Decision MedianScheduler::decide(Member& member, double time, std::vector<double> averages,
                                 const Population& population) {
  if (std::ssize(averages) < settings_.min_samples_required) {
    if (time - member.last_pause <= settings_.min_time_slice || !population.anyone_waits()) return {};
    member.last_pause = time;
    return {.kind = Decision::Kind::pause};
  }
  if (!(member.best < median_of(std::move(averages)))) return {};
  if (!settings_.hard_stop) {
    member.is_spared = true;
    return {.kind = Decision::Kind::pause};
  }
  ++state_.stopped;
  return {.kind = Decision::Kind::stop};
}

// Prefers trials that have not begun: they are compared with.
std::optional<TrialIndex> MedianScheduler::choose(const Candidates& candidates, const Population& population) {
  const auto is_pending = [&](TrialIndex trial) { return population.trial(trial).status() == TrialStatus::pending; };
  const auto found = std::ranges::find_if(candidates, is_pending);
  return found != candidates.end() ? *found : candidates.first();
}

void MedianScheduler::load(const Value& saved) {
  auto state = from_value<State>(saved);
  const auto is_sound = [](const Member& member) { return member.times.size() == member.sums.size(); };
  if (state.members.size() != state_.members.size() || !std::ranges::all_of(state.members, is_sound))
    throw InvalidArgument("the state is one of other trials");
  state_ = std::move(state);
}

}  // namespace

std::unique_ptr<Scheduler> MedianStoppingRule::make(const SchedulerSetting&) const {
  return std::make_unique<MedianScheduler>(*this);
}

void MedianStoppingRule::check(const TunerOptions&, Faults& faults) const {
  faults.unless(!time_attr.empty(), "time_attr", "say what grace_period counts, such as \"training_iteration\"");
  faults.unless(std::isfinite(grace_period) && grace_period >= 0, "grace_period",
                fmt::format("it is {}; it must be 0 or more", grace_period));
  faults.unless(min_samples_required >= 1, "min_samples_required",
                fmt::format("it is {}; it must be at least 1", min_samples_required));
  faults.unless(std::isfinite(min_time_slice) && min_time_slice >= 0, "min_time_slice",
                fmt::format("it is {}; it must be 0 or more", min_time_slice));
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, MedianStoppingRule>;

}  // namespace cadre::tune
