/// \file
/// Callbacks of training runs: functions of the program that are called as a run goes on.
///
/// All hooks are called in the thread and process of Trainer::fit, one callback after the other in the order of
/// RunConfig::callbacks, when what they tell of is committed; workers that wait for an answer have it by then. A
/// callback that throws is reported on standard error and switched off, and the run goes on without it.
///
/// Source: Ray Train's UserCallback.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "cadre/checkpoint.h"
#include "cadre/train.h"
#include "cadre/value.h"

namespace cadre::train {

/// A run as it stands when a hook is called. A value.
struct RunContext {
  std::string name = {};              ///< of its directory
  std::filesystem::path path = {};    ///< its directory
  Config train_loop_config = {};      ///< what its function gets
  ScalingConfig scaling_config = {};  ///< as it was asked for
  std::int64_t attempt = 0;           ///< worker groups started so far
  std::int64_t world_size = 0;        ///< workers of the present group, or of the last one
};

/// The base of callbacks; no hook does anything by default.
class Callback {
 public:
  virtual ~Callback() = default;

  /// fit() has begun, also of a run that is continued; no worker is there yet.
  virtual void on_start(const RunContext& run);
  /// All ranks have made a report that counts: one that is repeated after a failure is not told again. The metrics are
  /// those of rank 0; `checkpoint` is there where it was committed with the report.
  virtual void after_report(const RunContext& run, const Metrics& metrics, const std::optional<Checkpoint>& checkpoint);
  /// A checkpoint is committed; with CheckpointUploadMode::async that may be long after its report. Its files stay as
  /// long as the CheckpointConfig keeps them, and at least until the hook returns.
  virtual void on_checkpoint(const RunContext& run, const Checkpoint& checkpoint);
  /// The validation of a checkpoint has come to its end: with its metrics, or with why there are none.
  virtual void after_validation(const RunContext& run, const ReportedCheckpoint& checkpoint);
  /// A worker group has failed, `run.attempt` says which one; it may have been started again by now, or the run has
  /// failed. Why, by rank; what is no rank's has the key -1.
  virtual void after_exception(const RunContext& run, const std::map<std::int64_t, std::string>& failures);
  /// The run has come to its end, has failed, or is interrupted. Last of all; not called where fit() throws
  /// StorageError or EngineError.
  virtual void on_end(const RunContext& run);
  /// For messages. Default: "Callback".
  virtual std::string name() const;
};

}  // namespace cadre::train
