// Functions to open and read a store, for its writer (experiment_store.h) and for readers (experiment_reader.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "store/sqlite.h"
#include "store/tables.h"

namespace cadre::store {

inline constexpr int kStoreFormat = 6;
inline constexpr const char* kStoreFileName = "experiment.db";

// Facts about the whole experiment.
struct ExperimentInfo {
  std::string name = {};
  std::string trainable = {};
  std::string options = {};        // JSON
  std::string first_options = {};  // those that it was begun with; empty: the same
};

// The end of a store's rows. Two stores of one experiment that have the same row under a number are identical up to it.
struct Position {
  std::int64_t sequence = 0;  // sequence number of the last result or event; 0: none
  std::int64_t row = 0;       // checksum of that row
  std::int64_t decision = 0;  // id of the last decision; 0: none
  bool operator==(const Position&) const = default;
};

struct RowVisitor {
  std::function<void(const ResultRow&)> result;
  std::function<void(const EventRow&)> event;
  std::function<void(const DecisionRow&)> decision;
};

// Returns true if a directory holds a store; false also without permission to search it. Throws StorageError on other
// errors.
bool has_store(const std::filesystem::path& directory);

// Opens an existing store, without running a statement on it. A log that is not empty is kept when the database is
// closed, unless Database::keep_log changes that. Throws NotFound if there is none, and StorageError if it is not a
// store.
std::unique_ptr<Database> open_database(const std::filesystem::path& directory);
// An existing store, opened to be read only, also where nothing can be written: if it belongs to another user, on a
// read-only medium, in a snapshot.
struct OpenedStore {
  std::unique_ptr<base::TemporaryFolder> copy = {};  // copy of a store whose log SQLite could not read in its place
  std::unique_ptr<Database> database = {};
};
OpenedStore open_to_read(const std::filesystem::path& directory, bool is_being_written);
// Throws StorageError if the store has a format that this program does not read. Must be called before any row is read:
// rows of other formats differ.
void check_format(const Database& database);
std::map<std::string, std::string> read_meta(const Database& database);
ExperimentInfo info_of(const std::map<std::string, std::string>& meta);

// Reads the rows after a sequence number, in order; each result or event is followed by its decisions. Throws
// StorageError at a row that is damaged or missing; the rows visited before are valid.
void visit_rows(const Database& database, const RowVisitor& visitor, std::int64_t after_sequence);
// Returns the id of the first decision with a later cause than `sequence`; one more than the last id if there is none.
std::int64_t first_decision_after(const Database& database, std::int64_t sequence);
// Return all rows. Throw StorageError also if a row's directory is not inside the experiment's.
std::vector<TrialRow> read_trials(const Database& database);            // ordered by trial
std::vector<CheckpointRow> read_checkpoints(const Database& database);  // ordered by id

// The checksums of a table's rows, by ascending key, as a reader has them from its last look.
using RowChecksums = std::vector<std::pair<std::int64_t, std::int64_t>>;
template <class Row>
struct ChangedRows {
  std::vector<Row> rows = {};              // new or changed, by ascending key
  std::vector<std::int64_t> removed = {};  // keys
};
// Return what has changed since the last look, and bring `known` up to date. Throw as the functions above.
ChangedRows<TrialRow> read_changed_trials(const Database& database, RowChecksums& known);
ChangedRows<CheckpointRow> read_changed_checkpoints(const Database& database, RowChecksums& known);

// Returns the position of a store. `schema`: "" or the name of an attached database with a dot behind it.
Position read_position(const Database& database, const std::string& schema = "");
// Returns true if a store is at this position or past it.
bool has_passed(const Database& database, const Position& position);

// Returns the sequence number of the last result or event; 0 if there is none.
std::int64_t last_sequence(const Database& database);
// Returns true if the experiment has finished and no result or event was added since.
bool is_finished(const Database& database);

[[noreturn]] void throw_missing(const Database& database, const char* what, std::int64_t number);
// Returns the number that a statement selects.
std::int64_t read_number(const Database& database, const char* sql);

}  // namespace cadre::store
