/// \file
/// Callbacks of training runs: functions of the program that are called as a run progresses.
///
/// All hooks are called in the thread and process of Trainer::fit, one callback after the other in the order of
/// RunConfig::callbacks, after the event that they report has been committed; workers that wait for an answer have it
/// by then. A callback that throws is reported and disabled, and the run continues without it.
///
/// Source: Ray Train's UserCallback.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/train.h"
#include "cadre/value.h"

namespace cadre::train {

/// The state of a run when a hook is called. A value.
struct RunContext {
  std::string name = {};              ///< name of its directory
  std::filesystem::path path = {};    ///< its directory
  Config train_loop_config = {};      ///< config of the training function
  ScalingConfig scaling_config = {};  ///< as requested in the options
  std::int64_t attempt = 0;           ///< worker groups started so far
  std::int64_t world_size = 0;        ///< workers of the current group, or of the last one
};

/// Base class of callbacks. All hooks do nothing by default.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Called when fit() begins, also for a restored run; no worker has started yet.
  virtual void on_start(const RunContext& run);
  /// Called when all ranks have made a report that counts; a report that is repeated after a failure is not passed
  /// again. The metrics are those of rank 0; `checkpoint` is set if it was committed with the report.
  virtual void after_report(const RunContext& run, const Metrics& metrics, const std::optional<Checkpoint>& checkpoint);
  /// Called for the same reports, with the metrics of all ranks, by rank. Default: calls after_report() with those of
  /// rank 0; an override that does not call it replaces it.
  virtual void after_reports(const RunContext& run, const std::vector<Metrics>& metrics,
                             const std::optional<Checkpoint>& checkpoint);
  /// Called when a checkpoint is committed; with CheckpointUploadMode::async that may be long after its report. Its
  /// files stay as long as the CheckpointConfig keeps them, and at least until the hook returns.
  virtual void on_checkpoint(const RunContext& run, const Checkpoint& checkpoint);
  /// Called when the validation of a checkpoint has ended: `checkpoint` has its metrics, or the reason why there are
  /// none.
  virtual void after_validation(const RunContext& run, const ReportedCheckpoint& checkpoint);
  /// Called when a worker group has failed; `run.attempt` is its number. By then the next group may have been started,
  /// or the run has failed. `failures` has the reasons by rank; the key -1 stands for a failure of no particular rank.
  virtual void after_exception(const RunContext& run, const std::map<std::int64_t, std::string>& failures);
  /// Called last, when the run has finished, failed or been interrupted. Not called if fit() throws StorageError or
  /// EngineError.
  virtual void on_end(const RunContext& run);
  /// Returns the callback's name in messages. Called once, before all hooks. Default: "Callback".
  virtual std::string name() const;
};

}  // namespace cadre::train
