// Read-only access to an experiment's store, also while another process writes it: nothing is run, changed or repaired,
// and no writer is blocked. A log left by a killed controller stays as it is; SQLite may rebuild its index
// (experiment.db-shm). Nothing is written where that is not permitted: a log without an index is then read in a copy,
// in the folder for temporary files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/read_store.h"

namespace cadre::store {

class ExperimentReader {
 public:
  enum class Check {
    whole,  // checks the file, its log and the structure of their pages, as ExperimentStore::open does
    rows,   // checks only rows that are read: for a store that was checked before
  };

  // Opens the store at its present state; later commits are not visible. Throws NotFound if there is none, and
  // StorageError if it is damaged (with file and byte) or of another format.
  ExperimentReader(const std::filesystem::path& directory, Check check);

  // Returns the process that runs the experiment, "process 4711 on host, for 20 s"; empty if there is none.
  const std::optional<std::string>& controller() const { return controller_; }
  // Returns true if the experiment has finished.
  bool finished() const { return is_finished(*database_); }
  ExperimentInfo info() const { return info_of(read_meta(*database_)); }
  // Returns the token of the controller that opened the store last to write it.
  std::string writer() const { return read_meta(*database_)["writer"]; }
  std::vector<TrialRow> trials() const { return read_trials(*database_); }
  std::vector<CheckpointRow> checkpoints() const { return read_checkpoints(*database_); }
  ChangedRows<TrialRow> changed_trials(RowChecksums& known) const { return read_changed_trials(*database_, known); }
  ChangedRows<CheckpointRow> changed_checkpoints(RowChecksums& known) const {
    return read_changed_checkpoints(*database_, known);
  }
  Position position() const { return read_position(*database_); }
  bool has_passed(const Position& position) const { return store::has_passed(*database_, position); }
  void visit(const RowVisitor& visitor, std::int64_t after_sequence = 0) const {
    visit_rows(*database_, visitor, after_sequence);
  }

  // Returns the metrics, as JSON, of the result with a sequence number. Throws StorageError if there is none.
  std::string metrics(std::int64_t sequence);

 private:
  void check_whole(const std::filesystem::path& directory) const;

  std::optional<std::string> controller_;
  OpenedStore store_;
  Database* database_;  // in store_
  std::optional<RowReader<ResultRow>> result_;
};

}  // namespace cadre::store
