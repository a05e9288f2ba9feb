// What an experiment store holds, row by row, and how it is read: for its writer (experiment_store.h) and for whoever
// only looks (experiment_reader.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/rows.h"
#include "store/sqlite.h"

namespace cadre::store {

inline constexpr int kStoreFormat = 3;
inline constexpr int kOldestStoreFormat = 2;  // that is still read; it becomes the present one when it is written
inline constexpr const char* kStoreFileName = "experiment.db";

inline constexpr Table kMeta{"meta", "key, value"};
inline constexpr Table kResults{"results", "sequence, time, trial, attempt, step, repeated, metrics, checkpoint"};
inline constexpr Table kEvents{"events", "sequence, time, kind, trial, attempt, data"};
inline constexpr Table kDecisions{"decisions", "id, cause, kind, trial, data"};
inline constexpr Table kTrials{"trials", "trial, trial_id, status, attempt, config, tag, directory, error"};
inline constexpr Table kCheckpoints{"checkpoints", "id, trial, step, directory, boot, synced, manifest"};
inline constexpr Table kSnapshots{"snapshots", "sequence, state"};
inline constexpr Table kEndedTrials{"ended_trials", "trial, state"};

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

// What followed from the event or result with the number `cause`, which never falls from one decision to the next. "Go
// on" is not recorded.
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
  std::string boot = {};       // base::boot_id() of when it was committed; empty in a row to be added: the present one
  bool synced = false;         // its files survive a loss of power
  std::string manifest = {};   // JSON: what its files must be; may be empty
};

// The state of whoever made the decisions, after the event or result with the number `sequence` was handled.
struct Snapshot {
  std::int64_t sequence = 0;
  std::string state = {};
};

// A trial that had ended before the last snapshot, as it was then; the snapshot does not have it.
struct EndedTrialRow {
  std::int64_t trial = 0;
  std::string state = {};
};

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

// An existing store that no statement was run on yet. When it is closed before somebody says otherwise a log that has
// something stays as it is. Throws NotFound, or StorageError for what is no store.
std::unique_ptr<Database> open_database(const std::filesystem::path& directory);
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
