#include "cadre/tune/scheduler.h"

#include <algorithm>

#include "cadre/tune/tuner.h"
#include "checkpoint/checkpoint_registry.h"
#include "control/objective.h"
#include "resources/amounts.h"
#include "tune/held_options.h"
#include "tune/trial.h"

namespace cadre::tune {

// ---- Views

TrialIndex TrialView::index() const { return trial_->index; }
const std::string& TrialView::id() const { return trial_->id; }
TrialStatus TrialView::status() const { return trial_->status; }
const Config& TrialView::config() const { return trial_->config; }
const Metrics& TrialView::last_result() const { return trial_->last_result; }
std::int64_t TrialView::num_results() const { return trial_->step; }

const Resources& TrialView::base_resources() const { return trial_->needs.total; }

Resources TrialView::resources() const {
  const Resources& wanted = trial_->present_needs().total;
  if (!trial_->held) return wanted;
  resources::Amounts amounts = resources::amounts_of(*trial_->held);
  if (trial_->changed) {
    for (const auto& [name, amount] : resources::amounts_of(wanted)) amounts[name] = std::max(amounts[name], amount);
  }
  return resources::with_amounts(wanted, amounts);
}

std::optional<CheckpointView> TrialView::checkpoint() const {
  if (!trial_->latest_checkpoint) return std::nullopt;
  const checkpoint::CheckpointRecord& record = checkpoints_->get(*trial_->latest_checkpoint);
  const std::string_view directory = record.directory;
  return CheckpointView{record.owner, directory.substr(directory.rfind('/') + 1), record.metrics};
}

// ---- Defaults

void Scheduler::on_trial_add(const TrialView&) {}
Decision Scheduler::on_trial_end(const TrialView&, const Population&) { return {}; }
Decision Scheduler::on_deadline(std::int64_t, const Population&) { return {}; }
Decision Scheduler::on_controller_start(const Population&) { return {}; }
bool Scheduler::may_run(TrialIndex) const { return true; }

std::optional<TrialIndex> Scheduler::choose(const Candidates& candidates, const Population&) {
  return candidates.first();
}
void Scheduler::load(const Value& state) {
  if (!state.is_null()) throw InvalidArgument("the state of a scheduler without load() is not null");
}

// ---- Options

namespace detail {

template <>
bool register_options<Scheduler, SchedulerSetting>(std::string_view name,
                                                   OptionsReader<Scheduler, SchedulerSetting>::Pointer read) {
  option_types<Scheduler, SchedulerSetting>().add(name, read);
  return true;
}

void share_metric(TunerOptions& options, Objective& metric, std::optional<Mode>& mode) {
  TuneConfig& tune = options.tune_config;
  control::complete(tune.metric, tune.mode);
  control::complete(metric, mode);
  if (tune.metric.name.empty()) tune.metric.name = metric.name;
  if (!tune.mode && (metric.name.empty() || metric.name == tune.metric.name)) tune.mode = mode;
  control::complete(metric, mode, {tune.metric.name, tune.mode});
}

void complete_metric(const TunerOptions& options, Objective& metric, std::optional<Mode>& mode) {
  const TuneConfig& tune = options.tune_config;
  control::complete(metric, mode, {tune.metric.name, tune.mode});
}

void check_metric(const TunerOptions& options, const Objective& metric, const std::optional<Mode>& mode,
                  Faults& faults) {
  const TuneConfig& tune = options.tune_config;
  faults.unless(!metric.name.empty(), "metric",
                "say what trials are compared by, in TuneConfig: .metric = tune::maximize(\"accuracy\"), or minimize");
  const bool is_same = metric.name == tune.metric.name;
  faults.unless(is_same || tune.metric.name.empty() || metric.name.empty(), "metric",
                fmt::format("it is \"{}\", but the TuneConfig's metric is \"{}\"", metric.name, tune.metric.name));
  const std::string fault = control::fault_of(metric, mode, "its mode", {tune.metric.name, tune.mode});
  // If the TuneConfig lacks a direction, that is reported only once.
  faults.unless(fault.empty() || metric.name.empty() || (is_same && !tune.mode), "metric", fault);
}

}  // namespace detail

template Value stored_form(const AnyScheduler& options);
template void read_stored(AnyScheduler& options, const Stored& stored);

}  // namespace cadre::tune
