#include "cadre/tune/callback.h"

#include <typeinfo>

#include "base/type_name.h"

namespace cadre::tune {

void Callback::setup(const ExperimentInfo&) {}
void Callback::on_step_begin(std::int64_t, const TrialList&) {}
void Callback::on_step_end(std::int64_t, const TrialList&) {}
void Callback::on_trial_start(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_trial_restore(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_trial_result(std::int64_t, const TrialList&, const TrialInfo&, Metrics&) {}
void Callback::on_checkpoint(std::int64_t, const TrialList&, const TrialInfo&, const Checkpoint&) {}
void Callback::on_trial_save(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_trial_complete(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_trial_recover(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_trial_error(std::int64_t, const TrialList&, const TrialInfo&) {}
void Callback::on_experiment_end(const TrialList&) {}
void Callback::set_state(const Value&) {}
std::string Callback::name() const { return base::type_name(typeid(*this)); }

void LoggerCallback::log_trial_start(const TrialInfo&) {}
void LoggerCallback::log_trial_restore(const TrialInfo&) {}
void LoggerCallback::log_trial_save(const TrialInfo&) {}
void LoggerCallback::log_trial_result(std::int64_t, const TrialInfo&, const Metrics&) {}
void LoggerCallback::log_trial_end(const TrialInfo&, bool) {}

void LoggerCallback::on_trial_start(std::int64_t, const TrialList&, const TrialInfo& trial) { log_trial_start(trial); }
void LoggerCallback::on_trial_restore(std::int64_t, const TrialList&, const TrialInfo& trial) {
  log_trial_restore(trial);
}
void LoggerCallback::on_trial_result(std::int64_t iteration, const TrialList&, const TrialInfo& trial,
                                     Metrics& result) {
  log_trial_result(iteration, trial, result);
}
void LoggerCallback::on_trial_save(std::int64_t, const TrialList&, const TrialInfo& trial) { log_trial_save(trial); }
void LoggerCallback::on_trial_complete(std::int64_t, const TrialList&, const TrialInfo& trial) {
  log_trial_end(trial, false);
}
void LoggerCallback::on_trial_error(std::int64_t, const TrialList&, const TrialInfo& trial) {
  log_trial_end(trial, true);
}

}  // namespace cadre::tune
