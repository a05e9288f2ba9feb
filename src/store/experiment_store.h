// The store of one experiment: what happened and what was decided, in order, in one SQLite database. docs/formats.md
// describes the tables; any SQLite client can read them while the experiment runs.
//
// Rows that are added become durable together: commit() makes them survive the death of the process, and within 100 ms
// of power too; sync() waits for that.
//
// Every row carries a checksum that is compared whenever the row is read. Damage throws StorageError that names the
// file and, where it is known, the byte; nothing is changed by that.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "store/read_store.h"
#include "store/sqlite.h"
#include "store/wal_checkpointer.h"

namespace cadre::store {

// The ended trials of the last snapshot, one after the other.
class EndedTrials {
 public:
  explicit EndedTrials(const Database& database);
  // The state of this trial; trials are asked for in ascending order. Throws StorageError when it is missing.
  std::string next(std::int64_t trial);

 private:
  const Database& database_;
  RowReader<EndedTrialRow> rows_;
};

class ExperimentStore {
 public:
  static constexpr int kFormat = kStoreFormat;
  static constexpr const char* kFileName = kStoreFileName;
  static constexpr const char* kUnfinishedName = "experiment.db.new";  // while it is being created

  // A new store in an existing directory. Throws OutOfSpace or StorageError, with nothing left behind; a store that
  // exists is an error too, and so is the log of one.
  static ExperimentStore create(const std::filesystem::path& directory, const ExperimentInfo& info);
  // An existing one, for its only writer. Throws NotFound, or StorageError for one that is damaged or of another
  // format: its files are then as they were. What a kill left unfinished is rolled back to the last whole transaction,
  // as is what a loss of power left behind a gap in the log; damage without a loss of power is refused.
  static ExperimentStore open(const std::filesystem::path& directory);

  // Whether the machine was started again since another controller opened the store: what was not synced may be lost.
  bool after_reboot() const { return after_reboot_; }
  // One line for people when transactions were lost with the machine's power; empty otherwise.
  const std::string& recovered() const { return recovered_; }

  ExperimentInfo info() const;

  // Reads the rows after a sequence number in order; each result or event is followed by its decisions. Throws
  // StorageError at a row that is damaged or missing: what was visited before is as it was written.
  using Visitor = RowVisitor;
  void visit(const Visitor& visitor, std::int64_t after_sequence = 0) const;
  std::vector<TrialRow> trials() const;            // ordered by trial
  std::vector<CheckpointRow> checkpoints() const;  // ordered by id
  std::optional<Snapshot> last_snapshot() const;
  std::string callback_states() const;  // empty: none
  EndedTrials ended_trials() const { return EndedTrials(*database_); }

  // Adds a row to the open transaction, or opens one. The first two return the row's sequence number.
  //
  // Throws OutOfSpace when the disk is full, StorageError otherwise. After an exception of any of these functions or of
  // commit() nothing of the transaction is there, sequence numbers are given again, and the store is as it was before
  // the first row: the same rows can be added and committed again.
  std::int64_t add(const ResultRow& row);
  std::int64_t add(const EventRow& row);
  void add(const DecisionRow& row);
  void remove_decisions_from(std::int64_t cause);  // those of this event and all later ones
  void put(const TrialRow& row);                   // adds or replaces
  void add(const CheckpointRow& row);
  void set_checkpoint_synced(std::int64_t id, std::string_view manifest);  // nothing happens when it is gone
  void remove_checkpoint(std::int64_t id);
  // In the place of the last one. In the same transaction as what has become of its ended trials.
  void put_snapshot(std::int64_t sequence, std::string_view state);
  void remove_snapshot();              // with its ended trials
  void put(const EndedTrialRow& row);  // adds or replaces
  void remove_ended_trial(std::int64_t trial);
  void put_callback_states(std::string_view states);  // replaces what was there

  // Ends the transaction, if there is one. The first row of a transaction throws StorageError where another writer has
  // opened the store.
  void commit();
  // Gives it up, as an exception of these functions does.
  void roll_back();
  // Makes everything that was committed survive a loss of power; waits for the disk. After an exception it is still
  // due. Throws StorageError where the store's files have lost their names.
  void sync();
  // When sync() is due for what was committed last; empty when all is synced.
  std::optional<std::chrono::steady_clock::time_point> sync_due() const;
  // At the end of the experiment: marks it as finished, until the next result or event, and syncs it.
  void finish();

 private:
  explicit ExperimentStore(std::unique_ptr<Database> database);
  void begin();
  void require_only_writer();
  void require_same_files() const;
  template <typename Write>
  auto in_transaction(const Write& write);
  void prepare();
  void set_boot();
  void upgrade(int format);
  void mark_finished();
  void write_fact(const char* key, const std::string& value);

  struct Statements;
  struct CloseStatements {
    void operator()(Statements* statements) const;
  };
  // What the next rows get.
  struct Numbers {
    std::int64_t sequence = 1;
    std::int64_t decision = 1;
  };

  std::unique_ptr<Database> database_;
  std::unique_ptr<Statements, CloseStatements> statements_;
  std::unique_ptr<WalCheckpointer> checkpointer_;
  base::FileDescriptor log_;  // the write-ahead log, to sync it
  std::string boot_;
  std::string writer_;             // token of this writer; the store has that of the last one that has begun to write
  bool is_writer_ = false;         // it has begun
  std::int64_t data_version_ = 0;  // of SQLite; when nobody else had written
  std::pair<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::uint64_t>> files_ =
      {};  // which the database and its log are
  std::string recovered_;
  bool after_reboot_ = false;
  Numbers next_;
  Numbers committed_;             // as `next_` was before the open transaction
  bool log_is_doubtful_ = false;  // a sync failed: the system may have dropped what it could not write
  std::optional<std::chrono::steady_clock::time_point> unsynced_since_ = {};
};

}  // namespace cadre::store
