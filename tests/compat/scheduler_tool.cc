// Asks a scheduler for its decisions, for asha_decisions_test.py.
//
// Reads JSON documents from standard input, one a line. The first one has the scheduler's options, as an experiment
// stores them, and the number of trials: {"scheduler": {"type": "ASHAScheduler", ...}, "trials": 10}. Each further one
// is a result, {"trial": 3, "result": {...}}, and is answered with the kind of the decision.
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
  bool anyone_waits() const override { return false; }
  bool can_save(TrialIndex) const override { return false; }

  void add_result(TrialIndex index, const Metrics& result) {
    trials_.at(index).last_result = result;
    ++trials_.at(index).step;
  }

 private:
  std::vector<Trial> trials_;
  std::set<TrialIndex> live_;
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
    const Metrics result(row.at("result").dict());
    const Decision decision = scheduler->on_result(trials.trial(trial), result, trials);
    trials.add_result(trial, result);
    std::cout << cadre::detail::enum_name(decision.kind) << '\n';
  }
}
