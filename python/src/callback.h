// Callbacks in Python, of which one object hears of all.
#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "cadre/tune/callback.h"

namespace cadre::python {

// Passes events on to methods of the same names, of those that `hooks` names. Their arguments are dictionaries and
// numbers; cadre/tune/_callbacks.py makes Ray's objects of them. Remembers the directory of the experiment.
class PythonCallback final : public tune::Callback {
 public:
  // `object` may be None, if there are no hooks.
  PythonCallback(nanobind::object object, std::set<std::string> hooks);
  ~PythonCallback() override;

  // Returns the directory of the experiment; empty before it has begun.
  const std::filesystem::path& experiment() const { return experiment_; }

  void setup(const tune::ExperimentInfo& experiment) override;
  void on_step_begin(std::int64_t iteration, const tune::TrialList& trials) override;
  void on_step_end(std::int64_t iteration, const tune::TrialList& trials) override;
  void on_trial_start(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_trial_restore(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_trial_result(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial,
                       Metrics& result) override;
  void on_checkpoint(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial,
                     const Checkpoint& checkpoint) override;
  void on_trial_save(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_trial_complete(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_trial_recover(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_trial_error(std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial) override;
  void on_experiment_end(const tune::TrialList& trials) override;
  Value get_state() const override;
  void set_state(const Value& state) override;
  std::string name() const override { return "cadre.tune.Callbacks"; }

 private:
  bool has(const std::string& hook) const { return hooks_.contains(hook); }
  void call(const char* hook, std::int64_t iteration, const tune::TrialList& trials, const tune::TrialInfo& trial);
  void call(const char* hook, std::int64_t iteration, const tune::TrialList& trials);
  // Tells the object of trials that it has not heard of.
  void tell_new_trials(const tune::TrialList& trials);

  nanobind::object object_;
  std::set<std::string> hooks_;
  std::size_t num_told_ = 0;
  std::filesystem::path experiment_ = {};
};

}  // namespace cadre::python
