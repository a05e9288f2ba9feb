// How a store is opened and read: by its writer (experiment_store.h) and by whoever only looks (experiment_reader.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "store/sqlite.h"
#include "store/tables.h"

namespace cadre::store {

inline constexpr int kStoreFormat = 5;
inline constexpr int kOldestStoreFormat = 2;  // that is still read; it becomes the present one when it is written
inline constexpr const char* kStoreFileName = "experiment.db";

// Facts about the whole experiment.
struct ExperimentInfo {
  std::string name = {};
  std::string trainable = {};
  std::string options = {};  // JSON
};

struct RowVisitor {
  std::function<void(const ResultRow&)> result;
  std::function<void(const EventRow&)> event;
  std::function<void(const DecisionRow&)> decision;
};

// Returns whether a directory holds a store; false also for one that nobody may look at. Throws StorageError where the
// disk does not say.
bool has_store(const std::filesystem::path& directory);

// An existing store that no statement was run on yet. When it is closed before somebody says otherwise a log that has
// something stays as it is. Throws NotFound, or StorageError for what is no store.
std::unique_ptr<Database> open_database(const std::filesystem::path& directory);
// The same to look at only, also where nothing can be written: of another user, on a read-only medium, in a snapshot.
struct OpenedStore {
  std::unique_ptr<base::TemporaryFolder> copy = {};  // of a store with a log that SQLite could not read in its place
  std::unique_ptr<Database> database = {};
};
OpenedStore open_to_read(const std::filesystem::path& directory, bool is_being_written);
// Its format, one that this program reads. Throws StorageError for others. Before any row is read: rows of other
// formats have other columns.
int check_format(const Database& database);
std::map<std::string, std::string> read_meta(const Database& database);
ExperimentInfo info_of(const std::map<std::string, std::string>& meta);

// Reads the rows after a sequence number in order; each result or event is followed by its decisions. Throws
// StorageError at a row that is damaged or missing: what was visited before is as it was written.
void visit_rows(const Database& database, const RowVisitor& visitor, std::int64_t after_sequence);
// The id of the first decision that follows from something later; one more than the last id when there is none.
std::int64_t first_decision_after(const Database& database, std::int64_t sequence);
// Throw StorageError also for a directory that is none inside the experiment's.
std::vector<TrialRow> read_trials(const Database& database);            // ordered by trial
std::vector<CheckpointRow> read_checkpoints(const Database& database);  // ordered by id

// The sequence number of the last result or event; 0 when there is none.
std::int64_t last_sequence(const Database& database);
// Whether the experiment came to its end, and nothing has happened since.
bool is_finished(const Database& database);

[[noreturn]] void throw_missing(const Database& database, const char* what, std::int64_t number);
// The number that a statement gives.
std::int64_t read_number(const Database& database, const char* sql);

}  // namespace cadre::store
