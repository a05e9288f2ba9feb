#include "cadre/tune/searchers/repeater.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "cadre/tune/tuner.h"
#include "tune/inner_options.h"
#include "tune/result_keys.h"

namespace cadre::tune {
namespace {

// Returns the averages of the numbers of results, without NaN; NaN where there is nothing else. The iteration stays an
// integer, by which searchers know how far trials came.
Metrics average(const std::map<TrialIndex, Metrics>& results) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const auto& [trial, result] : results) {
    for (const auto& [name, value] : result) {
      if (!value.is_number()) continue;
      auto& [sum, count] = sums[name];
      if (std::isnan(value.get<double>())) continue;
      sum += value.get<double>();
      ++count;
    }
  }
  Metrics averages;
  for (const auto& [name, sum] : sums)
    averages.set(name, sum.second == 0 ? std::numeric_limits<double>::quiet_NaN() : sum.first / sum.second);
  constexpr double kMostIterations = 1e15;
  const std::optional<double> iteration = averages.number(result_key::training_iteration);
  if (iteration && std::abs(*iteration) < kMostIterations)
    averages.set(result_key::training_iteration, static_cast<std::int64_t>(std::llround(*iteration)));
  return averages;
}

// Returns true if two points are the same but for rounding: the point of a value at another one's coordinates may have
// other last digits.
bool are_alike(const std::optional<Point>& one, const std::optional<Point>& other) {
  constexpr double kRounding = 1e-9;
  if (!one || !other) return !one && !other;
  return std::ranges::equal(*one, *other, [](double a, double b) {
    return std::isnan(a) == std::isnan(b) && !(std::abs(a - b) > kRounding);
  });
}

class RepeatingSearcher final : public Searcher {
 public:
  using Make = std::function<std::unique_ptr<Searcher>()>;

  RepeatingSearcher(Make make, std::int64_t repeat, const Space& space)
      : make_(std::move(make)), inner_(make_()), repeat_(static_cast<TrialIndex>(repeat)), parameters_(space) {}

  std::optional<Config> suggest(TrialIndex trial) const override {
    const TrialIndex group = trial / repeat_;
    if (group == groups_.size() || !groups_[group].point) return inner_->suggest(group);
    return parameters_.config_of(*groups_[group].point);
  }
  bool is_finished() const override { return inner_->is_finished(); }
  void cancel() const override { inner_->cancel(); }
  void on_trial_add(TrialIndex trial, const Config& config) override {
    const TrialIndex index = trial / repeat_;
    const std::optional<Point> point = parameters_.point_of(config);
    if (index == groups_.size()) {
      groups_.push_back({.config = config, .point = point});
      inner_->on_trial_add(index, config);
      return;
    }
    Group& group = groups_.at(index);
    const bool had_ended = group.ended.size() == repeat_;
    if (!are_alike(point, group.point)) group.point.reset();
    if (group.ended.erase(trial) == 0 || !had_ended) return;  // otherwise it runs again
    group.point && !group.results.empty() ? tell_anew() : inner_->on_trial_add(index, group.config);
  }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    const TrialIndex index = trial / repeat_;
    Group& group = groups_.at(index);
    group.ended[trial] = status;
    if (status != TrialStatus::error && !last_result.empty()) group.results[trial] = last_result;
    if (group.ended.size() == repeat_) tell_end(index);
  }
  Value save() const override { return inner_->save(); }
  void load(const Value& state) override { inner_->load(state); }
  std::string debug_string() const override { return inner_->debug_string(); }

 private:
  // The trials of one suggestion.
  struct Group {
    Config config = {};  // of the first one
    // Empty: its trials are no repetitions. They are of another space or searcher, which the experiment had before.
    std::optional<Point> point = {};
    std::map<TrialIndex, TrialStatus> ended = {};
    std::map<TrialIndex, Metrics> results = {};
  };

  // Returns that of a trial which is no better than the others.
  static TrialStatus status_of(const Group& group) {
    if (group.results.empty()) return TrialStatus::error;
    for (const auto& [trial, status] : group.ended) {
      if (status == TrialStatus::stopped) return TrialStatus::stopped;
    }
    return TrialStatus::terminated;
  }

  void tell_end(TrialIndex index) {
    const Group& group = groups_[index];
    group.point ? inner_->on_trial_end(index, status_of(group), average(group.results))
                : inner_->on_trial_end(index, TrialStatus::error, {});
  }
  // A searcher cannot unlearn the end of a group of which a trial runs again.
  void tell_anew() {
    inner_ = make_();
    for (TrialIndex i = 0; i < groups_.size(); ++i) inner_->on_trial_add(i, groups_[i].config);
    for (TrialIndex i = 0; i < groups_.size(); ++i) {
      if (groups_[i].ended.size() == repeat_) tell_end(i);
    }
  }

  Make make_;
  std::unique_ptr<Searcher> inner_;
  TrialIndex repeat_;
  Parameters parameters_;
  std::vector<Group> groups_ = {};
};

}  // namespace

std::unique_ptr<Searcher> Repeater::make(const SearcherSetting& setting) const {
  return std::make_unique<RepeatingSearcher>([inner = searcher, setting] { return inner.make(setting); }, repeat,
                                             setting.space);
}

void Repeater::complete(TunerOptions& options, std::vector<std::string>& notes) {
  complete_inner(searcher, options, notes);
}

void Repeater::check(const TunerOptions& options, Faults& faults) const {
  check_inner(searcher, "searcher", "tune::TPE{}", options, faults);
  faults.unless(!traits_of_inner(searcher).any_values, "searcher",
                "its values need not be in the space, and only those of the space can be repeated");
  faults.unless(repeat >= 1 && repeat <= 1'000'000, "repeat",
                fmt::format("it is {}; it must be from 1 to 1000000", repeat));
  faults.unless(options.tune_config.points_to_evaluate.empty(), "repeat",
                "points_to_evaluate are not repeated: leave them out, or give each one `repeat` times to a searcher of "
                "your own");
}

void Repeater::take_over(const Repeater& stored) { take_over_inner(searcher, stored.searcher); }

Searcher::Traits Repeater::traits() const {
  Searcher::Traits traits = traits_of_inner(searcher);
  traits.chooses = true;
  return traits;
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, Repeater>;

}  // namespace cadre::tune
