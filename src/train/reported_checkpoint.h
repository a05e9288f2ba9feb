// What is known of a checkpoint that a run keeps: for its ranks that ask, and for its result.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/train.h"
#include "train/validations.h"

namespace cadre::train {

// A ReportedCheckpoint as it goes from process to process.
struct CheckpointEntry {
  std::string directory = {};  // inside the run's
  Metrics metrics = {};
  ReportedCheckpointStatus status = ReportedCheckpointStatus::committed;
  Metrics reported_metrics = {};
  Metrics validation_metrics = {};
  std::string validation_error = {};
};

CheckpointEntry entry_of(run::CheckpointId id, const Checkpoints& checkpoints, const Validations& validations);
ReportedCheckpoint to_reported_checkpoint(CheckpointEntry entry, const std::filesystem::path& run_directory);

Value to_value(const std::vector<CheckpointEntry>& entries);
std::vector<CheckpointEntry> to_checkpoint_entries(const Value& content);

}  // namespace cadre::train
