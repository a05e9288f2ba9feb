#include "store/experiment_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <random>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "store/damage.h"
#include "store/integrity.h"
#include "store/read_store.h"
#include "store/schema.h"

namespace cadre::store {
namespace {

constexpr auto kSyncInterval = std::chrono::milliseconds(100);

std::filesystem::path file_of(const std::filesystem::path& directory) { return directory / ExperimentStore::kFileName; }

// Writes a database with the tables and the facts, and closes it: everything is in one file, without a log.
void write_database(const std::filesystem::path& path, const ExperimentInfo& info) {
  Database database(path, Database::Access::create);
  // No other file depends on it before it has its final name, and it is synced as a whole before that. The boot id,
  // which decides if damage of the log is expected, must not be in the log.
  database.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN");
  create_tables(database);
  RowWriter<MetaRow> meta(database, WriteMode::add);
  meta.write({"format", std::to_string(ExperimentStore::kFormat)});
  meta.write({"name", info.name});
  meta.write({"trainable", info.trainable});
  meta.write({"options", info.options});
  meta.write({"boot", base::boot_id()});
  database.execute("COMMIT; PRAGMA journal_mode = WAL");  // the mode of whoever opens it
}

// Returns the number after `last`. Numbers have no gaps, so the largest possible one means a damaged row.
std::int64_t number_after(const Database& database, const char* what, std::int64_t last) {
  if (last == std::numeric_limits<std::int64_t>::max()) throw_missing(database, what, last - 1);
  return last + 1;
}

// Returns device and inode, which identify a file among all that exist; {0, 0} if there is none.
std::pair<std::uint64_t, std::uint64_t> identity_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

}  // namespace

struct ExperimentStore::Statements {
  explicit Statements(const Database& of) : database(of) {}

  const Database& database;
  Statement begin{database, "BEGIN IMMEDIATE"};
  Statement commit{database, "COMMIT"};
  RowWriter<ResultRow> result{database, WriteMode::add};
  RowWriter<EventRow> event{database, WriteMode::add};
  RowWriter<DecisionRow> decision{database, WriteMode::add};
  RowWriter<TrialRow> trial{database, WriteMode::replace};
  RowWriter<CheckpointRow> checkpoint{database, WriteMode::add};
  RowReader<CheckpointRow> find_checkpoint{database, "WHERE id = ?"};
  RowWriter<CheckpointRow> changed_checkpoint{database, WriteMode::replace};
  Statement remove_checkpoint{database, "DELETE FROM checkpoints WHERE id = ?"};
  RowWriter<Snapshot> snapshot{database, WriteMode::replace};
  Statement remove_snapshots{database, "DELETE FROM snapshots WHERE sequence <> ?"};
  RowWriter<EndedTrialRow> ended_trial{database, WriteMode::replace};
  Statement remove_ended_trial{database, "DELETE FROM ended_trials WHERE trial = ?"};
  Statement data_version{database, "PRAGMA data_version"};  // changes when another connection commits
  RowReader<MetaRow> writer{database, "WHERE key = 'writer'"};
};

void ExperimentStore::CloseStatements::operator()(Statements* statements) const { delete statements; }

ExperimentStore::ExperimentStore(std::unique_ptr<Database> database)
    : database_(std::move(database)), boot_(base::boot_id()) {
  // A transaction that spills into the log in parts can leave frames there that look like damage after a kill.
  database_->execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_spill = OFF");
}

ExperimentStore ExperimentStore::create(const std::filesystem::path& directory, const ExperimentInfo& info) {
  const std::filesystem::path path = file_of(directory);
  for (const std::string& file : {path.string(), path.string() + "-wal"}) {
    if (std::filesystem::exists(file)) throw StorageError("there is a store already: " + file);
  }
  // Created under another name until it is complete and on the disk: a kill or a loss of power during the creation
  // leaves neither a store nor an obstacle to the next one. The names are synced before any other file is created in
  // the directory.
  const std::filesystem::path unfinished = directory / kUnfinishedName;
  remove_database(unfinished);
  try {
    write_database(unfinished, info);
    finish_database(unfinished, path);
  } catch (...) {
    remove_database(unfinished);
    throw;
  }
  try {
    ExperimentStore store(std::make_unique<Database>(path, Database::Access::read_write));
    store.prepare();
    base::sync_directory(directory);
    base::sync_directory(directory / "..");
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
  // Copy the log now: a failed sync in an earlier process may have lost parts of it on the disk.
  if (!store.database_->copy_log() && log.damage)
    throw StorageError("cannot repair the store " + store.database_->path().string() +
                       ": another program is reading it; close that program first");
  store.database_->keep_log(false);
  store.after_reboot_ = !same_boot;
  if (!same_boot) store.set_boot();
  store.prepare();
  return store;
}

void ExperimentStore::set_boot() {
  write_fact("boot", boot_);
  database_->copy_log();
}

void ExperimentStore::mark_finished() { write_fact("finished", std::to_string(last_sequence(*database_))); }

void ExperimentStore::write_fact(const char* key, const std::string& value) {
  RowWriter<MetaRow>(*database_, WriteMode::replace).write({key, value});
}

void ExperimentStore::prepare() {
  database_->execute("PRAGMA synchronous = NORMAL");
  next_.sequence = number_after(*database_, "event", last_sequence(*database_));
  next_.decision =
      number_after(*database_, "decision", read_number(*database_, "SELECT ifnull(max(id), 0) FROM decisions"));
  committed_ = next_;
  writer_ = fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()());
  statements_.reset(new Statements(*database_));
  const std::filesystem::path log = database_->log_path();
  log_ = base::FileDescriptor(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log_) base::throw_storage_error("open", log);
  files_ = {identity_of(database_->path()), identity_of(log)};
  checkpointer_ = std::make_unique<WalCheckpointer>(*database_);
}

ExperimentInfo ExperimentStore::info() const { return info_of(read_meta(*database_)); }

void ExperimentStore::visit(const Visitor& visitor, std::int64_t after_sequence) const {
  visit_rows(*database_, visitor, after_sequence);
}

std::vector<TrialRow> ExperimentStore::trials() const { return read_trials(*database_); }
std::vector<CheckpointRow> ExperimentStore::checkpoints() const { return read_checkpoints(*database_); }

std::optional<Snapshot> ExperimentStore::last_snapshot() const {
  return RowReader<Snapshot>(*database_, "ORDER BY sequence DESC LIMIT 1").first();
}

void ExperimentStore::begin() {
  if (database_->in_transaction()) return;
  statements_->begin.run();
  if (is_writer_) return require_only_writer();
  write_fact("writer", writer_);  // in the same transaction as the first rows
}

// Throws if another controller has begun to write. Two can exist if a user has removed the lock's file; the one that
// began to write last continues.
void ExperimentStore::require_only_writer() {
  statements_->data_version.step();
  const std::int64_t version = statements_->data_version.integer(0);
  statements_->data_version.reset();
  if (version == data_version_) return;
  const auto writer = statements_->writer.first();
  if (!writer || writer->value != writer_)
    throw StorageError(
        "another controller has opened the store " + database_->path().string() +
        ": this one ends, so that they do not write over each other. Leave the file .lock beside it alone "
        "while an experiment runs");
  data_version_ = version;
}

// Throws if the store's files have lost their names: a file without a name is lost with this process.
void ExperimentStore::require_same_files() const {
  if (identity_of(database_->path()) == files_.first && identity_of(database_->log_path()) == files_.second) return;
  throw StorageError(
      "the store " + database_->path().string() +
      " was removed, moved or replaced while its experiment ran: what was reported since is lost. Put its "
      "directory back as it was, then continue");
}

void ExperimentStore::roll_back() {
  database_->roll_back();
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
    statements.result.write(next_.sequence, row);
    return next_.sequence++;
  });
}

std::int64_t ExperimentStore::add(const EventRow& row) {
  return in_transaction([&](Statements& statements) {
    statements.event.write(next_.sequence, row);
    return next_.sequence++;
  });
}

void ExperimentStore::add(const DecisionRow& row) {
  in_transaction([&](Statements& statements) {
    statements.decision.write(next_.decision, row);
    ++next_.decision;
  });
}

void ExperimentStore::remove_decisions_from(std::int64_t cause) {
  in_transaction([&](Statements&) {
    const std::int64_t first = first_decision_after(*database_, cause - 1);
    Statement(*database_, "DELETE FROM decisions WHERE id >= ?").bind(1, first).run();
    next_.decision = first;
  });
}

void ExperimentStore::put(const TrialRow& row) {
  in_transaction([&](Statements& statements) { statements.trial.write(row); });
}

void ExperimentStore::add(const CheckpointRow& row) {
  in_transaction([&](Statements& statements) {
    CheckpointRow added = row;
    if (added.boot.empty()) added.boot = boot_;
    statements.checkpoint.write(added);
  });
}

void ExperimentStore::set_checkpoint_synced(std::int64_t id, std::string_view manifest) {
  in_transaction([&](Statements& statements) {
    std::optional<CheckpointRow> row = statements.find_checkpoint.bind(1, id).first();
    if (!row) return;
    row->synced = true;
    row->manifest = manifest;
    statements.changed_checkpoint.write(*row);
  });
}

void ExperimentStore::remove_checkpoint(std::int64_t id) {
  in_transaction([&](Statements& statements) { statements.remove_checkpoint.bind(1, id).run(); });
}

void ExperimentStore::put_snapshot(std::int64_t sequence, std::string_view state) {
  in_transaction([&](Statements& statements) {
    statements.snapshot.write({sequence, std::string(state)});
    statements.remove_snapshots.bind(1, sequence).run();
  });
}

void ExperimentStore::put_callback_states(std::string_view states) {
  in_transaction([&](Statements&) { write_fact("callbacks", std::string(states)); });
}

void ExperimentStore::put_present_options(std::string_view options) {
  in_transaction([&](Statements&) { write_fact("present_options", std::string(options)); });
}

std::string ExperimentStore::callback_states() const {
  const auto states = RowReader<MetaRow>(*database_, "WHERE key = 'callbacks'").first();
  return states ? states->value : "";
}

void ExperimentStore::remove_snapshot() {
  in_transaction([&](Statements&) { database_->execute("DELETE FROM snapshots; DELETE FROM ended_trials"); });
}

void ExperimentStore::put(const EndedTrialRow& row) {
  in_transaction([&](Statements& statements) { statements.ended_trial.write(row); });
}

void ExperimentStore::remove_ended_trial(std::int64_t trial) {
  in_transaction([&](Statements& statements) { statements.remove_ended_trial.bind(1, trial).run(); });
}

EndedTrials::EndedTrials(const Database& database) : database_(database), rows_(database, "ORDER BY trial") {}

std::string EndedTrials::next(std::int64_t trial) {
  std::optional<EndedTrialRow> row = rows_.next();
  if (!row || row->trial != trial) throw_missing(database_, "the end of trial", trial);
  return std::move(row->state);
}

void ExperimentStore::commit() {
  if (!database_->in_transaction()) return;
  try {
    statements_->commit.run();
  } catch (...) {
    roll_back();
    throw;
  }
  committed_ = next_;
  is_writer_ = true;
  if (!unsynced_since_) unsynced_since_ = std::chrono::steady_clock::now();
}

void ExperimentStore::sync() {
  if (!unsynced_since_) return;
  require_same_files();
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
  in_transaction([&](Statements&) { mark_finished(); });
  commit();
  sync();
}

}  // namespace cadre::store
