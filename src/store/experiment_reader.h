// The store of an experiment for whoever only looks, while another process may be writing it: nothing is run, changed
// or repaired, and no writer is held up. A log that a killed controller has left stays as it is; SQLite may make its
// index (experiment.db-shm) anew. Where nothing can be written nothing is; a log without an index is then read in a
// copy, in the folder for temporary files.
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
    whole,  // the file, its log and how their pages hang together, as ExperimentStore::open does
    rows,   // only what is read: for a store that was looked at before
  };

  // Everything is read as it stands now, whatever is committed later. Throws NotFound, or StorageError for a store that
  // is damaged (with file and byte) or of another format.
  ExperimentReader(const std::filesystem::path& directory, Check check);

  // Who runs the experiment, "process 4711 on host, for 20 s"; empty when nobody does.
  const std::optional<std::string>& controller() const { return controller_; }
  // Whether it came to its end.
  bool finished() const { return is_finished(*database_); }
  ExperimentInfo info() const { return info_of(read_meta(*database_)); }
  std::vector<TrialRow> trials() const { return read_trials(*database_); }
  std::vector<CheckpointRow> checkpoints() const { return read_checkpoints(*database_); }
  void visit(const RowVisitor& visitor) const { visit_rows(*database_, visitor, 0); }

  // The metrics, as JSON, of the result with a sequence number. Throws StorageError when there is none.
  std::string metrics(std::int64_t sequence);

 private:
  void check_whole(const std::filesystem::path& directory) const;

  std::optional<std::string> controller_;
  OpenedStore store_;
  Database* database_;  // in it
  std::optional<RowReader<ResultRow>> result_;
};

}  // namespace cadre::store
