// The store of one experiment: events, results and decisions, in order, in one SQLite database. docs/formats.md
// describes the tables; any SQLite client can read them while the experiment runs.
//
// Rows are added in transactions. A row survives the death of the process after commit(), and a loss of power within
// 100 ms after that; sync() waits for the latter.
//
// Every row carries a checksum that is compared whenever the row is read. Damage throws StorageError that names the
// file and, if known, the byte; the error changes nothing.
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

// Reader of the ended trials of the last snapshot, in ascending order.
class EndedTrials {
 public:
  explicit EndedTrials(const Database& database);
  // Returns the state of this trial; must be called with ascending trials. Throws StorageError if it is missing.
  std::string next(std::int64_t trial);

 private:
  const Database& database_;
  RowReader<EndedTrialRow> rows_;
};

class ExperimentStore {
 public:
  static constexpr int kFormat = kStoreFormat;
  static constexpr const char* kFileName = kStoreFileName;
  static constexpr const char* kUnfinishedName = "experiment.db.new";  // the file's name while it is being created

  // Creates a store in an existing directory. Throws OutOfSpace or StorageError, with nothing left behind; an existing
  // store, or only its log, is an error.
  static ExperimentStore create(const std::filesystem::path& directory, const ExperimentInfo& info);
  // Opens an existing store for its only writer. Throws NotFound if there is none, and StorageError if it is damaged or
  // of another format; its files are unchanged then. Rolls back to the last complete transaction after a kill, and to
  // the last one before a gap in the log after a loss of power. Damage of the log without a loss of power is an error.
  static ExperimentStore open(const std::filesystem::path& directory);

  // Returns true if the machine was rebooted since a controller last opened the store: unsynced data may be lost.
  bool after_reboot() const { return after_reboot_; }
  // Returns a one-line message if transactions were lost with the machine's power; empty otherwise.
  const std::string& recovered() const { return recovered_; }

  ExperimentInfo info() const;

  // Reads the rows after a sequence number, in order; each result or event is followed by its decisions. Throws
  // StorageError at a row that is damaged or missing; the rows visited before are valid.
  using Visitor = RowVisitor;
  void visit(const Visitor& visitor, std::int64_t after_sequence = 0) const;
  std::vector<TrialRow> trials() const;            // ordered by trial
  std::vector<CheckpointRow> checkpoints() const;  // ordered by id
  std::optional<Snapshot> last_snapshot() const;
  std::string callback_states() const;  // empty: none
  EndedTrials ended_trials() const { return EndedTrials(*database_); }

  // Adds a row to the open transaction; opens one if there is none. The first two overloads return the row's sequence
  // number.
  //
  // Throws OutOfSpace if the disk is full, StorageError otherwise. After an exception of any of these functions or of
  // commit() the transaction is rolled back with its sequence numbers, and the store is as it was before its first row:
  // the same rows can be added and committed again.
  std::int64_t add(const ResultRow& row);
  std::int64_t add(const EventRow& row);
  void add(const DecisionRow& row);
  void remove_decisions_from(std::int64_t cause);  // decisions on this event and all later ones
  void put(const TrialRow& row);                   // adds or replaces
  void add(const CheckpointRow& row);
  void set_checkpoint_synced(std::int64_t id, std::string_view manifest);  // does nothing if it was removed
  void remove_checkpoint(std::int64_t id);
  // Replaces the last snapshot. Belongs in the same transaction as the changes of its ended trials.
  void put_snapshot(std::int64_t sequence, std::string_view state);
  void remove_snapshot();              // with its ended trials
  void put(const EndedTrialRow& row);  // adds or replaces
  void remove_ended_trial(std::int64_t trial);
  void put_callback_states(std::string_view states);   // replaces the previous states
  void put_present_options(std::string_view options);  // replaces those before, but for ExperimentInfo::first_options

  // Commits the transaction, if there is one. The first row of a transaction throws StorageError if another writer has
  // begun to write since.
  void commit();
  // Rolls back the transaction, as an exception of these functions does.
  void roll_back();
  // Makes everything that was committed survive a loss of power; waits for the disk. After an exception the sync
  // remains due. Throws StorageError if the store's files were removed, moved or replaced.
  void sync();
  // Returns the time when sync() is due for the commits so far; empty if all are synced.
  std::optional<std::chrono::steady_clock::time_point> sync_due() const;
  // Marks the experiment as finished, until the next result or event, and syncs the store.
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
  void mark_finished();
  void write_fact(const char* key, const std::string& value);

  struct Statements;
  struct CloseStatements {
    void operator()(Statements* statements) const;
  };
  // Numbers of the next rows.
  struct Numbers {
    std::int64_t sequence = 1;
    std::int64_t decision = 1;
  };

  std::unique_ptr<Database> database_;
  std::unique_ptr<Statements, CloseStatements> statements_;
  std::unique_ptr<WalCheckpointer> checkpointer_;
  base::FileDescriptor log_;  // the write-ahead log, to sync it
  std::string boot_;
  std::string writer_;             // token of this writer; the store has the token of the last one that began to write
  bool is_writer_ = false;         // true once this writer has begun to write
  std::int64_t data_version_ = 0;  // SQLite's data_version when this was the only writer
  std::pair<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::uint64_t>> files_ =
      {};  // identities of the database and its log
  std::string recovered_;
  bool after_reboot_ = false;
  Numbers next_;
  Numbers committed_;             // `next_` before the open transaction
  bool log_is_doubtful_ = false;  // a sync failed: the kernel may have dropped unwritten pages
  std::optional<std::chrono::steady_clock::time_point> unsynced_since_ = {};
};

}  // namespace cadre::store
