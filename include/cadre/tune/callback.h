/// \file
/// Callbacks: functions of the program that are called as an experiment goes on.
///
/// All hooks are called in the thread and process of Tuner::fit, one callback after the other in the order of
/// RunConfig::callbacks; nothing else happens meanwhile. Most are called when what they tell of is committed. A
/// callback that throws is reported and switched off, and the experiment goes on without it.
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

/// A trial as it stands when a hook is called. A value.
struct TrialInfo {
  std::string trial_id = {};                  ///< "00003"
  std::string trial_name = {};                ///< "train_convnet_00003"
  TrialStatus status = TrialStatus::pending;  ///< as it was decided last
  Config config = {};                         ///< the present one
  Metrics last_result = {};                   ///< empty when there is none
  std::optional<Checkpoint> checkpoint = {};  ///< the latest
  std::filesystem::path path = {};            ///< the trial's directory
  std::string error = {};                     ///< of its last failure
};

/// All trials that were made so far; each is looked at when it is asked for. Good until the hook returns.
class TrialList {
 public:
  virtual ~TrialList() = default;
  virtual std::size_t size() const = 0;                       ///< how many were made
  virtual TrialInfo operator[](std::size_t index) const = 0;  ///< by index, below size()
};

/// What an experiment is begun or continued with.
struct ExperimentInfo {
  std::string name = {};                    ///< of its directory
  std::filesystem::path path = {};          ///< its directory
  Stop stop = {};                           ///< of its RunConfig
  std::int64_t num_samples = 0;             ///< of its TuneConfig
  std::int64_t total_num_samples = 0;       ///< trials in all
  std::optional<Seconds> time_budget = {};  ///< of its TuneConfig
};

/// The base of callbacks; no hook does anything by default. `iteration` counts the turns of the controller since fit()
/// was called, from 0.
class Callback {
 public:
  virtual ~Callback() = default;

  /// First of all.
  virtual void setup(const ExperimentInfo& experiment);
  /// Before and after each turn of the controller; `iteration` is one more afterwards.
  virtual void on_step_begin(std::int64_t iteration, const TrialList& trials);
  virtual void on_step_end(std::int64_t iteration, const TrialList& trials);  ///< see on_step_begin
  /// A worker is started, or goes on with another config after an exploit: at the beginning, after a pause in which
  /// the process could not stay, an exploit, a retry.
  virtual void on_trial_start(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Behind on_trial_start, where the trial continues from a checkpoint.
  virtual void on_trial_restore(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// A result that counts (not a step that is repeated after an interruption), before anybody else sees it:
  /// `trial.last_result` is the one before. `result` may be changed, within the limits of tune::report, and is then
  /// what stop criteria, scheduler, store and files get. SHOULD_CHECKPOINT as true asks for a checkpoint.
  virtual void on_trial_result(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial,
                               Metrics& result);
  /// A checkpoint of the trial is committed.
  virtual void on_checkpoint(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial,
                             const Checkpoint& checkpoint);
  /// Behind on_checkpoint.
  virtual void on_trial_save(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// The trial has ended well, whatever ended it.
  virtual void on_trial_complete(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// It has failed and is tried again.
  virtual void on_trial_recover(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// It has failed for good.
  virtual void on_trial_error(std::int64_t iteration, const TrialList& trials, const TrialInfo& trial);
  /// Last of all, also when the experiment is interrupted or fit() throws.
  virtual void on_experiment_end(const TrialList& trials);

  /// What it is to remember, or null. Saved in the transaction of each turn, with the results that it has seen: after a
  /// crash it is told what it knew when the last of them was committed. At most 1 MiB.
  virtual Value get_state() const { return {}; }
  /// What get_state() gave, after a restore; before setup().
  virtual void set_state(const Value& state);
  /// For messages, and to find its state again. Default: its class.
  virtual std::string name() const;
};

/// In order. They are the program's: a restore gets them from RestoreOptions or RunConfig, not from the directory.
using Callbacks = std::vector<std::shared_ptr<Callback>>;

/// A callback that writes a log of each trial, with the hooks that a logger needs.
class LoggerCallback : public Callback {
 public:
  /// A worker of the trial is started.
  virtual void log_trial_start(const TrialInfo& trial);
  /// It continues from a checkpoint.
  virtual void log_trial_restore(const TrialInfo& trial);
  /// A checkpoint was committed.
  virtual void log_trial_save(const TrialInfo& trial);
  /// A result that counts.
  virtual void log_trial_result(std::int64_t iteration, const TrialInfo& trial, const Metrics& result);
  /// The trial has ended.
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
