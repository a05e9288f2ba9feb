/// \file
/// Callbacks: functions of the program that are called as an experiment progresses.
///
/// All hooks are called in the thread and process of Tuner::fit, one callback after the other in the order of
/// RunConfig::callbacks; the controller does nothing else meanwhile. Most are called after the event that they report
/// has been committed. A callback that throws is reported and disabled, and the experiment continues without it.
///
/// Source: Ray Tune's Callback and LoggerCallback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/tune/result.h"
#include "cadre/tune/stop.h"
#include "cadre/value.h"

namespace cadre::tune {

/// The state of a trial when a hook is called. A copy, which does not change later.
struct TrialInfo {
  std::string trial_id = {};                  ///< "00003"
  std::string trial_name = {};                ///< "train_convnet_00003"
  TrialStatus status = TrialStatus::pending;  ///< as last decided
  Config config = {};                         ///< current config
  Metrics last_result = {};                   ///< empty if there is none
  std::optional<Checkpoint> checkpoint = {};  ///< latest checkpoint
  std::filesystem::path path = {};            ///< the trial's directory
  std::string error = {};                     ///< message of its last failure
};

/// All trials made so far; the state of each is read on access. Valid until the hook returns.
class TrialList {
 public:
  virtual ~TrialList() = default;
  virtual std::size_t size() const = 0;                       ///< returns the number of trials
  virtual TrialInfo operator[](std::size_t index) const = 0;  ///< returns a trial by index, which must be below size()
};

/// A description of an experiment that begins or continues.
struct ExperimentInfo {
  std::string name = {};                    ///< name of its directory
  std::filesystem::path path = {};          ///< its directory
  Stop stop = {};                           ///< from its RunConfig
  std::int64_t num_samples = 0;             ///< from its TuneConfig
  std::int64_t total_num_samples = 0;       ///< number of trials, made and still to be made
  std::optional<Seconds> time_budget = {};  ///< from its TuneConfig
};

/// Base class of callbacks. All hooks do nothing by default. `iteration` counts the turns of the controller since fit()
/// was called, from 0.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Called first.
  virtual void setup(const ExperimentInfo& experiment);
  /// Called before each turn of the controller. on_step_end is called after it; `iteration` is one more then.
  virtual void on_step_begin(std::int64_t iteration, const TrialList& trials);
  virtual void on_step_end(std::int64_t iteration, const TrialList& trials);  ///< see on_step_begin
  /// Called when a worker starts, or continues with another config after an exploit: at the beginning, after a pause
  /// without a process, after an exploit, for a retry.
  virtual void on_trial_start(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called after on_trial_start if the trial continues from a checkpoint.
  virtual void on_trial_restore(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called for each result that counts (not for a step that is repeated after an interruption), before it is used
  /// anywhere else; `trial.last_result` is the previous one. `result` may be changed, within the limits of
  /// tune::report: stop criteria, scheduler, store and files get the changed one. SHOULD_CHECKPOINT set to true asks
  /// for a checkpoint.
  virtual void on_trial_result(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial,
                               Metrics& result);
  /// Called when a checkpoint of the trial has been committed.
  virtual void on_checkpoint(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial,
                             const Checkpoint& checkpoint);
  /// Called after on_checkpoint.
  virtual void on_trial_save(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called when the trial has ended without an error: by itself, or stopped by a criterion, the scheduler or the user.
  virtual void on_trial_complete(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called when the trial has failed and will be retried.
  virtual void on_trial_recover(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called when the trial has failed for good.
  virtual void on_trial_error(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Called last, also when the experiment is interrupted or fit() throws.
  virtual void on_experiment_end(const TrialList& trials);

  /// Returns the state to save, or null. Saved in the transaction of each turn, together with the results that the
  /// callback has been passed: after a crash it gets the state of the last committed turn. At most 1 MiB.
  virtual Value get_state() const { return {}; }
  /// Restores the state that get_state() returned. Called after a restore, before setup().
  virtual void set_state(const Value& state);
  /// Returns the name of the callback, for messages and for finding its state in a restore. Called once, before all
  /// hooks. Default: the name of its class.
  virtual std::string name() const;
};

/// The callbacks of an experiment, in calling order. The program owns them: a restore gets them from RestoreOptions or
/// RunConfig, not from the directory.
using Callbacks = std::vector<std::shared_ptr<Callback>>;

/// Base class of callbacks that write a log of each trial, with the hooks that a logger needs.
class LoggerCallback : public Callback {
 public:
  /// Called when a worker of the trial starts.
  virtual void log_trial_start(const TrialInfo& trial);
  /// Called when the trial continues from a checkpoint.
  virtual void log_trial_restore(const TrialInfo& trial);
  /// Called when a checkpoint of the trial has been committed.
  virtual void log_trial_save(const TrialInfo& trial);
  /// Called for each result that counts.
  virtual void log_trial_result(std::int64_t iteration, const TrialInfo& trial, const Metrics& result);
  /// Called when the trial has ended.
  virtual void log_trial_end(const TrialInfo& trial, bool failed);

  void on_trial_start(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial) override;
  void on_trial_restore(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial) override;
  void on_trial_result(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial,
                       Metrics& result) override;
  void on_trial_save(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial) override;
  void on_trial_complete(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial) override;
  void on_trial_error(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial) override;
};

}  // namespace cadre::tune
