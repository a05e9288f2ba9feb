#include "callback.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <utility>

#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

nb::dict to_dict(const tune::TrialInfo& trial) {
  nb::dict state;
  state["trial_id"] = trial.trial_id;
  state["trial_name"] = trial.trial_name;
  state["status"] = to_string(trial.status);
  state["config"] = to_python(trial.config.value());
  state["last_result"] = to_python(trial.last_result.value());
  state["checkpoint"] = trial.checkpoint ? to_python(Value(trial.checkpoint->path().string())) : nb::none();
  state["path"] = to_python(Value(trial.path.string()));
  state["error"] = to_python(Value(trial.error));
  return state;
}

}  // namespace

PythonCallback::PythonCallback(nb::object object, std::set<std::string> hooks)
    : object_(std::move(object)), hooks_(std::move(hooks)) {}

PythonCallback::~PythonCallback() {
  const nb::gil_scoped_acquire gil;
  object_.reset();
}

void PythonCallback::tell_new_trials(const tune::TrialList& trials) {
  while (num_told_ < trials.size()) object_.attr("add_trial")(to_dict(trials[num_told_++]));
}

void PythonCallback::call(const char* hook, std::int64_t iteration, const tune::TrialList& trials,
                          const tune::TrialInfo& trial) {
  if (!has(hook)) return;
  with_python([&] {
    tell_new_trials(trials);
    object_.attr("on_trial_event")(hook, iteration, to_dict(trial));
  });
}

void PythonCallback::call(const char* hook, std::int64_t iteration, const tune::TrialList& trials) {
  if (!has(hook)) return;
  with_python([&] {
    tell_new_trials(trials);
    object_.attr("on_event")(hook, iteration);
  });
}

void PythonCallback::setup(const tune::ExperimentInfo& experiment) {
  experiment_ = experiment.path;
  if (!has("setup")) return;
  with_python([&] {
    nb::dict info;
    info["name"] = experiment.name;
    info["path"] = to_python(Value(experiment.path.string()));
    info["num_samples"] = experiment.num_samples;
    info["total_num_samples"] = experiment.total_num_samples;
    object_.attr("setup")(info);
  });
}

void PythonCallback::on_step_begin(std::int64_t iteration, const tune::TrialList& trials) {
  call("on_step_begin", iteration, trials);
}
void PythonCallback::on_step_end(std::int64_t iteration, const tune::TrialList& trials) {
  call("on_step_end", iteration, trials);
}
void PythonCallback::on_trial_start(std::int64_t iteration, const tune::TrialList& trials,
                                    const tune::TrialInfo& trial) {
  call("on_trial_start", iteration, trials, trial);
}
void PythonCallback::on_trial_restore(std::int64_t iteration, const tune::TrialList& trials,
                                      const tune::TrialInfo& trial) {
  call("on_trial_restore", iteration, trials, trial);
}
void PythonCallback::on_trial_save(std::int64_t iteration, const tune::TrialList& trials,
                                   const tune::TrialInfo& trial) {
  call("on_trial_save", iteration, trials, trial);
}
void PythonCallback::on_trial_complete(std::int64_t iteration, const tune::TrialList& trials,
                                       const tune::TrialInfo& trial) {
  call("on_trial_complete", iteration, trials, trial);
}
void PythonCallback::on_trial_recover(std::int64_t iteration, const tune::TrialList& trials,
                                      const tune::TrialInfo& trial) {
  call("on_trial_recover", iteration, trials, trial);
}
void PythonCallback::on_trial_error(std::int64_t iteration, const tune::TrialList& trials,
                                    const tune::TrialInfo& trial) {
  call("on_trial_error", iteration, trials, trial);
}

void PythonCallback::on_trial_result(std::int64_t iteration, const tune::TrialList& trials,
                                     const tune::TrialInfo& trial, Metrics& result) {
  if (!has("on_trial_result")) return;
  with_python([&] {
    tell_new_trials(trials);
    const nb::object changed = object_.attr("on_trial_result")(iteration, to_dict(trial), to_python(result.value()));
    if (!changed.is_none()) result = Metrics(to_config(changed).dict());
  });
}

void PythonCallback::on_checkpoint(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial,
                                   const Checkpoint& checkpoint) {
  if (!has("on_checkpoint")) return;
  with_python([&] {
    tell_new_trials(trials);
    object_.attr("on_checkpoint")(iteration, to_dict(trial), to_python(Value(checkpoint.path().string())));
  });
}

void PythonCallback::on_experiment_end(const tune::TrialList& trials) {
  if (!has("on_experiment_end")) return;
  with_python([&] {
    tell_new_trials(trials);
    object_.attr("on_experiment_end")();
  });
}

Value PythonCallback::get_state() const {
  if (!has("get_state")) return {};
  return with_python([&] { return to_value(object_.attr("get_state")()); });
}

void PythonCallback::set_state(const Value& state) {
  if (!has("set_state")) return;
  with_python([&] { object_.attr("set_state")(to_python(state)); });
}

}  // namespace cadre::python
