// The store of one experiment: what happened and what was decided, in order, in one SQLite database. docs/formats.md
// describes the tables; any SQLite client can read them while the experiment runs.
//
// Rows that are added become durable together: commit() makes them survive the death of the process, and within 100 ms
// of power too; sync() waits for that.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "store/sqlite.h"
#include "store/wal_checkpointer.h"

namespace cadre::store {

// One result, as a worker reported it. `sequence` is given by the store and shared with EventRow: both in one order.
struct ResultRow {
  std::int64_t sequence = 0;
  double time = 0;  // seconds since 1970
  std::int64_t trial = 0;
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  bool repeated = false;        // the step was reported before, in an earlier attempt of the same lineage
  std::string metrics = {};     // JSON
  std::string checkpoint = {};  // the worker's name for the directory it reported; empty: none
};

// Anything else that happened.
struct EventRow {
  std::int64_t sequence = 0;
  double time = 0;
  std::string kind = {};
  std::int64_t trial = -1;  // -1: none
  std::int64_t attempt = 0;
  std::string data = {};  // JSON
};

// What followed from the event or result with the number `cause`. "Go on" is not recorded.
struct DecisionRow {
  std::int64_t cause = 0;
  std::string kind = {};
  std::int64_t trial = -1;
  std::string data = {};  // JSON
};

// A trial as it stands, for people and programs that look; a restore does not read it.
struct TrialRow {
  std::int64_t trial = 0;
  std::string trial_id = {};
  std::string status = {};
  std::int64_t attempt = 0;
  std::string config = {};  // JSON
  std::string tag = {};
  std::string directory = {};  // name inside the experiment's directory
  std::string error = {};
};

struct CheckpointRow {
  std::int64_t id = 0;
  std::int64_t trial = 0;
  std::int64_t step = 0;
  std::string directory = {};  // path inside the experiment's directory
};

// Facts about the whole experiment.
struct ExperimentInfo {
  std::string name = {};
  std::string trainable = {};
  std::string options = {};  // JSON
};

class ExperimentStore {
 public:
  static constexpr int kFormat = 1;
  static constexpr const char* kFileName = "experiment.db";

  // A new store in an existing directory. Throws StorageError; a store that exists is an error too.
  static ExperimentStore create(const std::filesystem::path& directory, const ExperimentInfo& info);
  // An existing one. Throws NotFound, or StorageError for a damaged one or one of a newer format.
  static ExperimentStore open(const std::filesystem::path& directory);

  ExperimentInfo info() const;

  // Reads all rows in order; the result or event is followed by its decisions.
  struct Visitor {
    std::function<void(const ResultRow&)> result;
    std::function<void(const EventRow&)> event;
    std::function<void(const DecisionRow&)> decision;
  };
  void visit(const Visitor& visitor) const;

  // Adds a row to the open transaction. The first two return the row's sequence number.
  std::int64_t add(const ResultRow& row);
  std::int64_t add(const EventRow& row);
  void add(const DecisionRow& row);
  void put(const TrialRow& row);  // adds or replaces
  void add(const CheckpointRow& row);
  void remove_checkpoint(std::int64_t id);

  // Ends the transaction, if there is one. After an exception nothing of it is there.
  void commit();
  // Makes everything that was committed survive a loss of power; waits for the disk.
  void sync();
  // When sync() is due for what was committed last; empty when all is synced.
  std::optional<std::chrono::steady_clock::time_point> sync_due() const;
  // At the end of the experiment: makes it quick to read by trial, and syncs it.
  void finish();

 private:
  ExperimentStore(const std::filesystem::path& directory, Database::Access access);
  void begin();
  void prepare_statements();

  struct Statements;
  struct CloseStatements {
    void operator()(Statements* statements) const;
  };

  std::unique_ptr<Database> database_;
  std::unique_ptr<Statements, CloseStatements> statements_;
  std::unique_ptr<WalCheckpointer> checkpointer_;
  base::FileDescriptor log_;  // the write-ahead log, to sync it
  std::int64_t next_sequence_ = 1;
  bool open_ = false;
  std::optional<std::chrono::steady_clock::time_point> unsynced_since_ = {};
};

// The metrics of one trial's results in order, each as JSON, repeated steps left out. Opens the store of the experiment
// for reading, also while it is being written. Throws NotFound or StorageError.
std::vector<std::string> read_results(const std::filesystem::path& directory, std::int64_t trial);

}  // namespace cadre::store
