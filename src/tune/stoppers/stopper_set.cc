#include "tune/stoppers/stopper_set.h"

#include <algorithm>
#include <utility>

#include "cadre/error.h"
#include "tune/stoppers/threshold_stopper.h"

namespace cadre::tune {

StopperSet::StopperSet(const Stop& stop, const StopperSetting& setting) {
  members_.push_back({make_threshold_stopper(stop.thresholds)});
  for (const auto& [metric, threshold] : stop.thresholds) metrics_.push_back(metric);
  for (const AnyStopper& one : stop.stoppers) {
    const Stopper::Traits traits = one.held().traits();
    members_.push_back({one.make(setting), traits.recorded});
    metrics_.insert(metrics_.end(), traits.metrics.begin(), traits.metrics.end());
    if (traits.timeout) timeout_ = std::min(timeout_.value_or(*traits.timeout), *traits.timeout);
  }
}

bool StopperSet::pass_on(const TrialView& trial, const Metrics& result, bool to_recorded) {
  bool ends = false;
  for (const auto& [stopper, is_recorded] : members_) {
    if (is_recorded == to_recorded) ends = stopper->on_result(trial, result) || ends;
  }
  return ends;
}

bool StopperSet::on_result(const TrialView& trial, const Metrics& result) { return pass_on(trial, result, false); }

bool StopperSet::on_result_recorded(const TrialView& trial, const Metrics& result) {
  return pass_on(trial, result, true);
}

void StopperSet::on_trial_end(const TrialView& trial) {
  for (const Member& member : members_) member.stopper->on_trial_end(trial);
}

std::optional<std::string> StopperSet::stop_all() const {
  for (const Member& member : members_) {
    if (std::optional<std::string> reason = member.stopper->stop_all()) return reason;
  }
  return std::nullopt;
}

Value StopperSet::save() const {
  List states;
  for (const Member& member : members_) states.push_back(member.stopper->save());
  return states;
}

void StopperSet::load(const Value& state) {
  const List& states = state.items();
  if (states.size() != members_.size()) throw InvalidArgument("the state is not that of these stoppers");
  for (std::size_t i = 0; i < states.size(); ++i) members_[i].stopper->load(states[i]);
}

}  // namespace cadre::tune
