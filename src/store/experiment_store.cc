#include "store/experiment_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <utility>

#include "base/boot.h"
#include "cadre/error.h"
#include "store/damage.h"
#include "store/integrity.h"
#include "store/rows.h"

namespace cadre::store {
namespace {

constexpr auto kSyncInterval = std::chrono::milliseconds(100);

// Columns have no type, so that SQLite keeps every value as it is given.
constexpr const char* kSchema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value, checksum) WITHOUT ROWID;
CREATE TABLE results(sequence INTEGER PRIMARY KEY, time, trial, attempt, step, repeated, metrics, checkpoint, checksum);
CREATE TABLE events(sequence INTEGER PRIMARY KEY, time, kind, trial, attempt, data, checksum);
CREATE TABLE decisions(id INTEGER PRIMARY KEY, cause, kind, trial, data, checksum);
CREATE TABLE trials(trial INTEGER PRIMARY KEY, trial_id, status, attempt, config, tag, directory, error, checksum);
CREATE TABLE checkpoints(id INTEGER PRIMARY KEY, trial, step, directory, boot, synced, manifest, checksum);
CREATE TABLE snapshots(sequence INTEGER PRIMARY KEY, state, checksum);
CREATE TABLE histories(trial INTEGER PRIMARY KEY, sequences, checksum);
)";

constexpr Table kMeta{"meta", "key, value"};
constexpr Table kResults{"results", "sequence, time, trial, attempt, step, repeated, metrics, checkpoint"};
constexpr Table kEvents{"events", "sequence, time, kind, trial, attempt, data"};
constexpr Table kDecisions{"decisions", "id, cause, kind, trial, data"};
constexpr Table kTrials{"trials", "trial, trial_id, status, attempt, config, tag, directory, error"};
constexpr Table kCheckpoints{"checkpoints", "id, trial, step, directory, boot, synced, manifest"};
constexpr Table kSnapshots{"snapshots", "sequence, state"};
constexpr Table kHistories{"histories", "trial, sequences"};

std::filesystem::path file_of(const std::filesystem::path& directory) { return directory / ExperimentStore::kFileName; }

// An existing store, not written to yet. When it is closed before somebody says otherwise a log stays as it is.
std::unique_ptr<Database> open_database(const std::filesystem::path& directory) {
  const std::filesystem::path path = file_of(directory);
  if (!std::filesystem::exists(path))
    throw NotFound("there is no experiment in " + directory.string() + ": it has no file " +
                   ExperimentStore::kFileName);
  auto database = std::make_unique<Database>(path, Database::Access::read_write);
  std::error_code missing;
  const auto log_bytes = std::filesystem::file_size(database->log_path(), missing);
  database->keep_log(!missing && log_bytes > 0);
  check_header(*database);
  return database;
}

// Before any row is read: rows of other formats have other columns.
void check_format(const Database& database) {
  Statement statement(database, "SELECT value FROM meta WHERE key = 'format'");
  if (!statement.step()) throw_damaged(database.path(), std::nullopt, "it has no \"format\"");
  const std::string format(statement.text(0));
  if (format == std::to_string(ExperimentStore::kFormat)) return;
  throw StorageError("the store " + database.path().string() + " has format " + format +
                     "; this program reads format " + std::to_string(ExperimentStore::kFormat) +
                     ": use the version of Cadre that wrote it");
}

std::map<std::string, std::string> read_meta(const Database& database) {
  RowReader rows(database, kMeta);
  std::map<std::string, std::string> meta;
  while (rows.step()) meta.emplace(rows.text(0), rows.text(1));
  for (const char* key : {"format", "name", "trainable", "options", "boot"}) {
    if (!meta.contains(key)) throw_damaged(database.path(), std::nullopt, "it has no \"" + std::string(key) + "\"");
  }
  return meta;
}

[[noreturn]] void throw_missing(const Database& database, const char* what, std::int64_t number) {
  throw_damaged(database.path(), std::nullopt, std::string(what) + " " + std::to_string(number) + " is missing");
}

std::int64_t last_key(const Database& database, const char* sql) {
  Statement statement(database, sql);
  statement.step();
  return statement.integer(0);
}

void remove_database(const std::filesystem::path& path) noexcept {
  for (const char* ending : {"-wal", "-shm", ""}) {
    std::error_code ignored;  // what is in the way is said by whoever meets it
    std::filesystem::remove(path.string() + ending, ignored);
  }
}

// A database with the tables and the facts, closed: everything is in its one file.
void make_database(const std::filesystem::path& path, const ExperimentInfo& info) {
  Database database(path, Database::Access::create);
  // Nothing depends on the files of a store that is just being made, so their creation need not wait for the disk.
  database.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN");
  database.execute(kSchema);
  RowWriter meta(database, kMeta, RowWriter::Mode::add);
  meta.write("format", std::to_string(ExperimentStore::kFormat));
  meta.write("name", info.name);
  meta.write("trainable", info.trainable);
  meta.write("options", info.options);
  meta.write("boot", base::boot_id());
  database.execute("COMMIT");
  database.copy_log();  // what says whether damage of the log is to be expected must not lie in the log
}

}  // namespace

struct ExperimentStore::Statements {
  using enum RowWriter::Mode;

  explicit Statements(const Database& database)
      : begin(database, "BEGIN IMMEDIATE"),
        commit(database, "COMMIT"),
        result(database, kResults, add),
        event(database, kEvents, add),
        decision(database, kDecisions, add),
        trial(database, kTrials, replace),
        checkpoint(database, kCheckpoints, add),
        changed_checkpoint(database, kCheckpoints, replace),
        remove_checkpoint(database, "DELETE FROM checkpoints WHERE id = ?"),
        snapshot(database, kSnapshots, replace),
        remove_snapshots(database,
                         "DELETE FROM snapshots WHERE sequence NOT IN "
                         "(SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 2)") {}

  Statement begin, commit;
  RowWriter result, event, decision, trial, checkpoint, changed_checkpoint;
  Statement remove_checkpoint;
  RowWriter snapshot;
  Statement remove_snapshots;
};

void ExperimentStore::CloseStatements::operator()(Statements* statements) const { delete statements; }

ExperimentStore::ExperimentStore(std::unique_ptr<Database> database)
    : database_(std::move(database)), boot_(base::boot_id()) {
  // A transaction that is written to the log in parts can leave frames there that look like damage after a kill.
  database_->execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_spill = OFF");
}

ExperimentStore ExperimentStore::create(const std::filesystem::path& directory, const ExperimentInfo& info) {
  const std::filesystem::path path = file_of(directory);
  for (const std::string& file : {path.string(), path.string() + "-wal"}) {
    if (std::filesystem::exists(file)) throw StorageError("there is a store already: " + file);
  }
  // Under another name until it is whole: a kill on the way leaves no store, and nothing that is in the way of one.
  const std::filesystem::path unfinished = directory / kUnfinishedName;
  remove_database(unfinished);
  try {
    make_database(unfinished, info);
    base::rename(unfinished, path);
  } catch (...) {
    remove_database(unfinished);
    throw;
  }
  try {
    ExperimentStore store(std::make_unique<Database>(path, Database::Access::read_write));
    store.is_new_ = true;
    store.prepare();
    return store;
  } catch (...) {
    remove_database(path);
    throw;
  }
}

ExperimentStore ExperimentStore::open(const std::filesystem::path& directory) {
  std::unique_ptr<Database> database = open_database(directory);
  const WalScan log = scan_wal(database->log_path());
  check_length(*database, log);
  ExperimentStore store(std::move(database));
  check_structure(*store.database_);
  check_format(*store.database_);
  const bool same_boot = read_meta(*store.database_).at("boot") == store.boot_;
  if (log.damage) {
    const std::string what = "committed transactions follow what cannot be read";
    if (same_boot) throw_damaged(store.database_->log_path(), log.damage, what);
    store.recovered_ = store.database_->log_path().string() + " was cut near byte " + std::to_string(*log.damage) +
                       " by a loss of power: the experiment continues from what was committed before";
  }
  // A sync of the log that failed in an earlier process may have lost what it should have written.
  if (!store.database_->copy_log() && log.damage)
    throw StorageError("cannot repair the store " + store.database_->path().string() +
                       ": another program is reading it; close that program first");
  store.database_->keep_log(false);
  if (!same_boot) store.set_boot();
  store.prepare();
  return store;
}

void ExperimentStore::set_boot() {
  RowWriter(*database_, kMeta, RowWriter::Mode::replace).write("boot", boot_);
  database_->copy_log();
}

void ExperimentStore::prepare() {
  database_->execute("PRAGMA synchronous = NORMAL");
  // What finish() made is not true any more with the next result.
  if (last_key(*database_, "SELECT EXISTS (SELECT 1 FROM histories)") != 0) database_->execute("DELETE FROM histories");
  next_.sequence = 1 + last_key(*database_,
                                "SELECT max(ifnull((SELECT max(sequence) FROM results), 0), "
                                "ifnull((SELECT max(sequence) FROM events), 0))");
  next_.decision = 1 + last_key(*database_, "SELECT ifnull(max(id), 0) FROM decisions");
  committed_ = next_;
  statements_.reset(new Statements(*database_));
  const std::filesystem::path log = database_->log_path();
  log_ = base::FileDescriptor(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log_) base::throw_storage_error("open", log);
  checkpointer_ = std::make_unique<WalCheckpointer>(database_->path());
}

ExperimentInfo ExperimentStore::info() const {
  const auto meta = read_meta(*database_);
  return {meta.at("name"), meta.at("trainable"), meta.at("options")};
}

void ExperimentStore::visit(const Visitor& visitor, std::int64_t after_sequence) const {
  RowReader results(*database_, kResults, "WHERE sequence > ? ORDER BY sequence");
  RowReader events(*database_, kEvents, "WHERE sequence > ? ORDER BY sequence");
  RowReader decisions(*database_, kDecisions, "WHERE id >= ? ORDER BY id");
  std::int64_t decision = first_decision_after(after_sequence);
  bool more_results = results.bind(1, after_sequence).step();
  bool more_events = events.bind(1, after_sequence).step();
  bool more_decisions = decisions.bind(1, decision).step();
  for (std::int64_t sequence = after_sequence + 1; more_results || more_events; ++sequence) {
    if (more_results && results.integer(0) == sequence) {
      visitor.result({sequence, results.real(1), results.integer(2), results.integer(3), results.integer(4),
                      results.integer(5) != 0, results.text(6), results.text(7)});
      more_results = results.step();
    } else if (more_events && events.integer(0) == sequence) {
      visitor.event({sequence, events.real(1), events.text(2), events.integer(3), events.integer(4), events.text(5)});
      more_events = events.step();
    } else {
      throw_missing(*database_, "the row of results or events with the sequence number", sequence);
    }
    for (; more_decisions && decisions.integer(1) == sequence; more_decisions = decisions.step(), ++decision) {
      if (decisions.integer(0) != decision) throw_missing(*database_, "decision", decision);
      visitor.decision({sequence, decisions.text(2), decisions.integer(3), decisions.text(4)});
    }
  }
  if (more_decisions) throw_missing(*database_, "the cause of decision", decisions.integer(0));
}

std::int64_t ExperimentStore::first_decision_after(std::int64_t sequence) const {
  RowReader decisions(*database_, kDecisions, "WHERE id = ?");
  std::int64_t first = 1;
  for (std::int64_t end = next_.decision; first < end;) {
    const std::int64_t middle = first + (end - first) / 2;
    if (!decisions.bind(1, middle).step()) throw_missing(*database_, "decision", middle);
    const bool is_after = decisions.integer(1) > sequence;
    decisions.reset();
    is_after ? end = middle : first = middle + 1;
  }
  return first;
}

std::vector<TrialRow> ExperimentStore::trials() const {
  RowReader rows(*database_, kTrials, "ORDER BY trial");
  std::vector<TrialRow> trials;
  while (rows.step())
    trials.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.integer(3), rows.text(4), rows.text(5),
                      rows.text(6), rows.text(7)});
  return trials;
}

std::vector<CheckpointRow> ExperimentStore::checkpoints() const {
  RowReader rows(*database_, kCheckpoints, "ORDER BY id");
  std::vector<CheckpointRow> checkpoints;
  while (rows.step())
    checkpoints.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.text(3), rows.text(4),
                           rows.integer(5) != 0, rows.text(6)});
  return checkpoints;
}

std::optional<Snapshot> ExperimentStore::last_snapshot() const {
  RowReader rows(*database_, kSnapshots, "ORDER BY sequence DESC LIMIT 1");
  if (!rows.step()) return std::nullopt;
  return Snapshot{rows.integer(0), rows.text(1)};
}

void ExperimentStore::begin() {
  if (open_) return;
  statements_->begin.run();
  open_ = true;
}

void ExperimentStore::roll_back() {
  database_->roll_back();
  open_ = false;
  next_ = committed_;
}

template <typename Write>
auto ExperimentStore::in_transaction(const Write& write) {
  try {
    begin();
    return write(*statements_);
  } catch (...) {
    roll_back();
    throw;
  }
}

std::int64_t ExperimentStore::add(const ResultRow& row) {
  return in_transaction([&](Statements& statements) {
    statements.result.write(next_.sequence, row.time, row.trial, row.attempt, row.step, std::int64_t{row.repeated},
                            row.metrics, row.checkpoint);
    return next_.sequence++;
  });
}

std::int64_t ExperimentStore::add(const EventRow& row) {
  return in_transaction([&](Statements& statements) {
    statements.event.write(next_.sequence, row.time, row.kind, row.trial, row.attempt, row.data);
    return next_.sequence++;
  });
}

void ExperimentStore::add(const DecisionRow& row) {
  in_transaction([&](Statements& statements) {
    statements.decision.write(next_.decision, row.cause, row.kind, row.trial, row.data);
    ++next_.decision;
  });
}

void ExperimentStore::remove_decisions_from(std::int64_t cause) {
  in_transaction([&](Statements&) {
    const std::int64_t first = first_decision_after(cause - 1);
    Statement(*database_, "DELETE FROM decisions WHERE id >= ?").bind(1, first).run();
    next_.decision = first;
  });
}

void ExperimentStore::put(const TrialRow& row) {
  in_transaction([&](Statements& statements) {
    statements.trial.write(row.trial, row.trial_id, row.status, row.attempt, row.config, row.tag, row.directory,
                           row.error);
  });
}

void ExperimentStore::add(const CheckpointRow& row) {
  in_transaction([&](Statements& statements) {
    statements.checkpoint.write(row.id, row.trial, row.step, row.directory, row.boot.empty() ? boot_ : row.boot,
                                std::int64_t{row.synced}, row.manifest);
  });
}

void ExperimentStore::set_checkpoint_synced(std::int64_t id, std::string_view manifest) {
  in_transaction([&](Statements& statements) {
    RowReader row(*database_, kCheckpoints, "WHERE id = ?");
    if (!row.bind(1, id).step()) return;
    statements.changed_checkpoint.write(id, row.integer(1), row.integer(2), row.text(3), row.text(4), std::int64_t{1},
                                        manifest);
  });
}

void ExperimentStore::remove_checkpoint(std::int64_t id) {
  in_transaction([&](Statements& statements) { statements.remove_checkpoint.bind(1, id).run(); });
}

void ExperimentStore::put_snapshot(std::int64_t sequence, std::string_view state) {
  in_transaction([&](Statements& statements) {
    statements.snapshot.write(sequence, state);
    statements.remove_snapshots.run();
  });
}

void ExperimentStore::commit() {
  if (!open_) return;
  try {
    statements_->commit.run();
  } catch (...) {
    roll_back();
    throw;
  }
  open_ = false;
  committed_ = next_;
  if (!unsynced_since_) unsynced_since_ = std::chrono::steady_clock::now();
  constexpr std::size_t about_a_commit = 8192;
  checkpointer_->add(about_a_commit);
}

void ExperimentStore::sync() {
  if (!unsynced_since_) return;
  if (is_new_) {
    if (database_is_doubtful_) database_->execute("VACUUM");  // every page goes through the log once more
    log_is_doubtful_ |= std::exchange(database_is_doubtful_, true);
    DatabaseFile(*database_, DatabaseFile::Kind::database).sync();
    base::sync_directory(database_->path().parent_path());
    is_new_ = database_is_doubtful_ = false;
  }
  if (log_is_doubtful_) {
    if (!database_->copy_log()) database_->fail("sync");
    log_is_doubtful_ = false;
  }
  if (::fdatasync(log_.get()) != 0) {
    log_is_doubtful_ = true;
    base::throw_storage_error("sync", database_->log_path());
  }
  unsynced_since_.reset();
}

std::optional<std::chrono::steady_clock::time_point> ExperimentStore::sync_due() const {
  if (!unsynced_since_) return std::nullopt;
  return *unsynced_since_ + kSyncInterval;
}

void ExperimentStore::finish() {
  commit();
  // An index that is kept up with every result would cost a third of the time that a report takes.
  std::map<std::int64_t, std::string> histories;
  for (const TrialRow& trial : trials()) histories[trial.trial];  // whoever has no results has that on record
  RowReader results(*database_, kResults, "ORDER BY sequence");
  while (results.step()) {
    if (results.integer(5) != 0) continue;  // repeated
    std::string& history = histories[results.integer(2)];
    history += (history.empty() ? "" : " ") + std::to_string(results.integer(0));
  }
  in_transaction([&](Statements&) {
    RowWriter writer(*database_, kHistories, RowWriter::Mode::replace);
    for (const auto& [trial, sequences] : histories) writer.write(trial, sequences);
  });
  commit();
  sync();
}

namespace {

// The sequence numbers that finish() wrote down; nothing when it did not, or the trial has none.
std::optional<std::string> read_history(const Database& database, std::int64_t trial) {
  RowReader rows(database, kHistories, "WHERE trial = ?");
  if (!rows.bind(1, trial).step()) return std::nullopt;
  return rows.text(1);
}

std::vector<std::string> read_by_history(const Database& database, const std::string& history) {
  RowReader results(database, kResults, "WHERE sequence = ?");
  std::vector<std::string> metrics;
  std::istringstream numbers(history);
  for (std::int64_t sequence = 0; numbers >> sequence;) {
    if (!results.bind(1, sequence).step()) throw_missing(database, "result", sequence);
    metrics.push_back(results.text(6));
    results.reset();
  }
  return metrics;
}

}  // namespace

std::vector<std::string> read_results(const std::filesystem::path& directory, std::int64_t trial) {
  const std::unique_ptr<Database> database = open_database(directory);
  check_format(*database);
  database->execute("BEGIN");  // one state of a store that is being written
  if (const auto history = read_history(*database, trial)) return read_by_history(*database, *history);
  check_structure(*database);
  RowReader results(*database, kResults, "ORDER BY sequence");  // chosen here: SQLite would trust a damaged row
  std::vector<std::string> metrics;
  while (results.step()) {
    if (results.integer(2) == trial && results.integer(5) == 0) metrics.push_back(results.text(6));
  }
  return metrics;
}

}  // namespace cadre::store
