#include "train/reported_checkpoint.h"

#include <array>
#include <utility>

#include "cadre/stored.h"

namespace cadre::train {

std::string to_string(ReportedCheckpointStatus status) {
  constexpr std::array names{"committed", "pending validation", "validated", "validation timed out",
                             "validation failed"};
  return names.at(static_cast<std::size_t>(status));
}

CheckpointEntry entry_of(checkpoint::CheckpointId id, const Checkpoints& checkpoints, const Validations& validations) {
  const checkpoint::CheckpointRecord& record = checkpoints.registry().get(id);
  const Validation* const validation = validations.find(id);
  CheckpointEntry entry{.directory = record.directory,
                        .metrics = record.metrics,
                        .status = status_of(validation),
                        .reported_metrics = record.metrics};
  if (validation == nullptr) return entry;
  entry.reported_metrics = validation->reported;
  entry.validation_metrics = validation->metrics;
  if (entry.status == ReportedCheckpointStatus::validation_failed ||
      entry.status == ReportedCheckpointStatus::validation_timed_out)
    entry.validation_error = validation->error;
  return entry;
}

ReportedCheckpoint to_reported_checkpoint(CheckpointEntry entry, const std::filesystem::path& run_directory) {
  return {.checkpoint = Checkpoint::from_directory(run_directory / entry.directory),
          .metrics = std::move(entry.metrics),
          .status = entry.status,
          .reported_metrics = std::move(entry.reported_metrics),
          .validation_metrics = std::move(entry.validation_metrics),
          .validation_error = std::move(entry.validation_error)};
}

Value to_value(const std::vector<CheckpointEntry>& entries) { return cadre::to_stored(entries); }

std::vector<CheckpointEntry> to_checkpoint_entries(const Value& content) {
  return cadre::from_value<std::vector<CheckpointEntry>>(content);
}

}  // namespace cadre::train
