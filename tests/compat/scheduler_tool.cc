// Asks a scheduler for its decisions, for the tests in Python that compare them with those of Ray Tune.
//
// Reads JSON documents from standard input, one a line. The first one has the scheduler's options, as an experiment
// stores them, and the number of trials, which all exist at the beginning: {"scheduler": {"type": "ASHAScheduler",
// ...}, "trials": 10}. Each further one is a result of a running trial, {"trial": 3, "result": {...}}, or names a trial
// that has ended, {"trial": 3}. It is answered with the kind of the decision and the other trials that it stops, "pause
// 4 5", or "go_on" for an end. A paused or new trial runs if it has a result.
#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "cadre/detail/enum_names.h"
#include "tune/description.h"
#include "tune/held_options.h"
#include "tune/trial.h"

namespace {

using namespace cadre;
using namespace cadre::tune;

class Trials final : public Population {
 public:
  explicit Trials(std::int64_t count) : trials_(static_cast<std::size_t>(count)) {
    for (std::size_t index = 0; index < trials_.size(); ++index) {
      trials_[index].index = static_cast<TrialIndex>(index);
      live_.insert(static_cast<TrialIndex>(index));
    }
  }
  TrialView trial(TrialIndex index) const override { return {trials_.at(index), checkpoints_}; }
  const std::set<TrialIndex>& live_trials() const override { return live_; }
  std::int64_t trials_to_come() const override { return 0; }
  bool anyone_waits() const override {
    return std::ranges::any_of(live_, [&](TrialIndex one) { return trials_[one].status != TrialStatus::running; });
  }
  bool can_save(TrialIndex) const override { return false; }
  const Resources& machine() const override { return machine_; }
  const std::set<TrialIndex>& trials_with_resources() const override { return live_; }
  std::int64_t contenders() const override { return std::ssize(live_); }

  void runs(TrialIndex index) { trials_.at(index).status = TrialStatus::running; }
  // Applies a decision on a trial's result, and the scheduler's answers to the ends that follow from it. Returns the
  // other trials that are stopped.
  std::vector<TrialIndex> apply(Scheduler& scheduler, TrialIndex index, const Decision& decision) {
    using enum Decision::Kind;
    if (decision.kind == pause) trials_.at(index).status = TrialStatus::paused;
    std::vector<TrialIndex> stopped;
    if (decision.kind == stop || decision.kind == finish) end(scheduler, index, stopped);
    for (const TrialIndex other : decision.stopped) end(scheduler, other, stopped);
    std::erase(stopped, index);
    return stopped;
  }
  // Ends a trial, and those that the scheduler stops because of that; adds all of them to `ended`.
  void end(Scheduler& scheduler, TrialIndex index, std::vector<TrialIndex>& ended) {
    if (live_.erase(index) == 0) return;
    ended.push_back(index);
    trials_[index].status = TrialStatus::terminated;
    for (const TrialIndex other : scheduler.on_trial_end(trial(index), *this).stopped) end(scheduler, other, ended);
  }
  void add_result(TrialIndex index, const Metrics& result) {
    trials_.at(index).last_result = result;
    ++trials_.at(index).step;
  }

 private:
  std::vector<Trial> trials_;
  std::set<TrialIndex> live_;
  Resources machine_ = {};
  checkpoint::CheckpointRegistry checkpoints_{CheckpointConfig()};
};

}  // namespace

int main() {
  std::string line;
  std::getline(std::cin, line);
  const Config setting(base::parse_json(line, "the first line").dict());
  AnyScheduler options;
  read_stored(options, Stored(setting.at("scheduler")));
  const std::unique_ptr<Scheduler> scheduler = options.make({});
  Trials trials(setting.get<std::int64_t>("trials"));
  for (const TrialIndex trial : trials.live_trials()) scheduler->on_trial_add(trials.trial(trial));
  while (std::getline(std::cin, line)) {
    const Config row(base::parse_json(line, "a line").dict());
    const auto trial = row.get<TrialIndex>("trial");
    std::vector<TrialIndex> stopped;
    Decision decision;
    if (const Value* entries = row.find("result")) {
      const Metrics result(entries->dict());
      trials.runs(trial);
      decision = scheduler->on_result(trials.trial(trial), result, trials);
      trials.add_result(trial, result);
      stopped = trials.apply(*scheduler, trial, decision);
    } else {
      trials.end(*scheduler, trial, stopped);
      std::erase(stopped, trial);
    }
    std::ranges::sort(stopped);
    std::cout << cadre::detail::enum_name(decision.kind);
    for (const TrialIndex other : stopped) std::cout << ' ' << other;
    std::cout << '\n';
  }
}
