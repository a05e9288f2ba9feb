// The description of a kept checkpoint, for ranks that query it and for the run's result.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/train.h"
#include "train/validations.h"

namespace cadre::train {

// The form of a ReportedCheckpoint in messages between processes.
struct CheckpointEntry {
  std::string directory = {};  // relative to the run's directory
  Metrics metrics = {};
  ReportedCheckpointStatus status = ReportedCheckpointStatus::committed;
  Metrics reported_metrics = {};
  Metrics validation_metrics = {};
  std::string validation_error = {};
};

CheckpointEntry entry_of(checkpoint::CheckpointId id, const Checkpoints& checkpoints, const Validations& validations);
ReportedCheckpoint to_reported_checkpoint(CheckpointEntry entry, const std::filesystem::path& run_directory);

Value to_value(const std::vector<CheckpointEntry>& entries);
std::vector<CheckpointEntry> to_checkpoint_entries(const Value& content);

}  // namespace cadre::train
