#include "store/experiment_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/error.h"

namespace cadre::store {
namespace {

constexpr auto kSyncInterval = std::chrono::milliseconds(100);

// Columns have no type, so that SQLite keeps every value as it is given.
constexpr const char* kSchema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE results(sequence INTEGER PRIMARY KEY, time, trial, attempt, step, repeated, metrics, checkpoint);
CREATE TABLE events(sequence INTEGER PRIMARY KEY, time, kind, trial, attempt, data);
CREATE TABLE decisions(id INTEGER PRIMARY KEY, cause, kind, trial, data);
CREATE TABLE trials(trial INTEGER PRIMARY KEY, trial_id, status, attempt, config, tag, directory, error);
CREATE TABLE checkpoints(id INTEGER PRIMARY KEY, trial, step, directory);
)";

std::filesystem::path file_of(const std::filesystem::path& directory) { return directory / ExperimentStore::kFileName; }

std::string read_meta(const Database& database, const char* key) {
  Statement statement(database, "SELECT value FROM meta WHERE key = ?");
  statement.bind(1, std::string_view(key));
  if (!statement.step())
    throw StorageError("the store " + database.path().string() + " is damaged: it has no \"" + key + "\"");
  return std::string(statement.text(0));
}

void write_meta(const Database& database, std::string_view key, std::string_view value) {
  Statement(database, "INSERT INTO meta(key, value) VALUES(?, ?)").bind(1, key).bind(2, value).run();
}

void check_format(const Database& database) {
  const std::string format = read_meta(database, "format");
  if (format == std::to_string(ExperimentStore::kFormat)) return;
  throw StorageError("the store " + database.path().string() + " has format " + format +
                     "; this program reads format " + std::to_string(ExperimentStore::kFormat) +
                     ": use the version of Cadre that wrote it, or a newer one");
}

}  // namespace

struct ExperimentStore::Statements {
  explicit Statements(const Database& database)
      : begin(database, "BEGIN IMMEDIATE"),
        commit(database, "COMMIT"),
        result(database,
               "INSERT INTO results(sequence, time, trial, attempt, step, repeated, metrics, checkpoint) "
               "VALUES(?, ?, ?, ?, ?, ?, ?, ?)"),
        event(database, "INSERT INTO events(sequence, time, kind, trial, attempt, data) VALUES(?, ?, ?, ?, ?, ?)"),
        decision(database, "INSERT INTO decisions(cause, kind, trial, data) VALUES(?, ?, ?, ?)"),
        trial(database,
              "INSERT OR REPLACE INTO trials(trial, trial_id, status, attempt, config, tag, directory, error) "
              "VALUES(?, ?, ?, ?, ?, ?, ?, ?)"),
        checkpoint(database, "INSERT INTO checkpoints(id, trial, step, directory) VALUES(?, ?, ?, ?)"),
        remove_checkpoint(database, "DELETE FROM checkpoints WHERE id = ?") {}

  Statement begin, commit, result, event, decision, trial, checkpoint, remove_checkpoint;
};

void ExperimentStore::CloseStatements::operator()(Statements* statements) const { delete statements; }

ExperimentStore::ExperimentStore(const std::filesystem::path& directory, Database::Access access)
    : database_(std::make_unique<Database>(file_of(directory), access)) {
  // Nothing depends on the files of a store that is just being made, so their creation need not wait for the disk.
  const bool create = access == Database::Access::create;
  database_->execute(create ? "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0"
                            : "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
  if (create) database_->execute(kSchema);
}

ExperimentStore ExperimentStore::create(const std::filesystem::path& directory, const ExperimentInfo& info) {
  if (std::filesystem::exists(file_of(directory)))
    throw StorageError("there is a store already: " + file_of(directory).string());
  ExperimentStore store(directory, Database::Access::create);
  store.database_->execute("BEGIN");
  write_meta(*store.database_, "format", std::to_string(kFormat));
  write_meta(*store.database_, "name", info.name);
  write_meta(*store.database_, "trainable", info.trainable);
  write_meta(*store.database_, "options", info.options);
  store.database_->execute("COMMIT; PRAGMA synchronous = NORMAL");
  store.prepare_statements();
  return store;
}

ExperimentStore ExperimentStore::open(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(file_of(directory)))
    throw NotFound("there is no experiment in " + directory.string() + ": it has no file " + kFileName);
  ExperimentStore store(directory, Database::Access::read_write);
  check_format(*store.database_);
  store.database_->execute("PRAGMA synchronous = NORMAL");
  store.prepare_statements();
  return store;
}

void ExperimentStore::prepare_statements() {
  Statement last(*database_,
                 "SELECT max(ifnull((SELECT max(sequence) FROM results), 0), "
                 "ifnull((SELECT max(sequence) FROM events), 0))");
  last.step();
  next_sequence_ = last.integer(0) + 1;
  statements_.reset(new Statements(*database_));
  const std::string log = database_->path().string() + "-wal";
  log_ = base::FileDescriptor(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log_) base::throw_storage_error("open", log);
  checkpointer_ = std::make_unique<WalCheckpointer>(database_->path());
}

ExperimentInfo ExperimentStore::info() const {
  return {read_meta(*database_, "name"), read_meta(*database_, "trainable"), read_meta(*database_, "options")};
}

void ExperimentStore::visit(const Visitor& visitor) const {
  Statement results(*database_,
                    "SELECT sequence, time, trial, attempt, step, repeated, metrics, checkpoint FROM results "
                    "ORDER BY sequence");
  Statement events(*database_, "SELECT sequence, time, kind, trial, attempt, data FROM events ORDER BY sequence");
  Statement decisions(*database_, "SELECT cause, kind, trial, data FROM decisions ORDER BY id");
  bool more_results = results.step();
  bool more_events = events.step();
  bool more_decisions = decisions.step();
  while (more_results || more_events) {
    const bool is_result = more_results && (!more_events || results.integer(0) < events.integer(0));
    const std::int64_t sequence = is_result ? results.integer(0) : events.integer(0);
    if (is_result) {
      visitor.result({sequence, results.real(1), results.integer(2), results.integer(3), results.integer(4),
                      results.integer(5) != 0, std::string(results.text(6)), std::string(results.text(7))});
      more_results = results.step();
    } else {
      visitor.event({sequence, events.real(1), std::string(events.text(2)), events.integer(3), events.integer(4),
                     std::string(events.text(5))});
      more_events = events.step();
    }
    for (; more_decisions && decisions.integer(0) == sequence; more_decisions = decisions.step()) {
      visitor.decision(
          {sequence, std::string(decisions.text(1)), decisions.integer(2), std::string(decisions.text(3))});
    }
  }
}

void ExperimentStore::begin() {
  if (open_) return;
  statements_->begin.run();
  open_ = true;
}

std::int64_t ExperimentStore::add(const ResultRow& row) {
  begin();
  statements_->result.bind(1, next_sequence_).bind(2, row.time).bind(3, row.trial).bind(4, row.attempt);
  statements_->result.bind(5, row.step).bind(6, std::int64_t{row.repeated}).bind(7, std::string_view(row.metrics));
  statements_->result.bind(8, std::string_view(row.checkpoint)).run();
  return next_sequence_++;
}

std::int64_t ExperimentStore::add(const EventRow& row) {
  begin();
  statements_->event.bind(1, next_sequence_).bind(2, row.time).bind(3, std::string_view(row.kind)).bind(4, row.trial);
  statements_->event.bind(5, row.attempt).bind(6, std::string_view(row.data)).run();
  return next_sequence_++;
}

void ExperimentStore::add(const DecisionRow& row) {
  begin();
  statements_->decision.bind(1, row.cause).bind(2, std::string_view(row.kind)).bind(3, row.trial);
  statements_->decision.bind(4, std::string_view(row.data)).run();
}

void ExperimentStore::put(const TrialRow& row) {
  begin();
  statements_->trial.bind(1, row.trial).bind(2, std::string_view(row.trial_id)).bind(3, std::string_view(row.status));
  statements_->trial.bind(4, row.attempt).bind(5, std::string_view(row.config)).bind(6, std::string_view(row.tag));
  statements_->trial.bind(7, std::string_view(row.directory)).bind(8, std::string_view(row.error)).run();
}

void ExperimentStore::add(const CheckpointRow& row) {
  begin();
  statements_->checkpoint.bind(1, row.id).bind(2, row.trial).bind(3, row.step);
  statements_->checkpoint.bind(4, std::string_view(row.directory)).run();
}

void ExperimentStore::remove_checkpoint(std::int64_t id) {
  begin();
  statements_->remove_checkpoint.bind(1, id).run();
}

void ExperimentStore::commit() {
  if (!open_) return;
  statements_->commit.run();
  open_ = false;
  if (!unsynced_since_) unsynced_since_ = std::chrono::steady_clock::now();
  constexpr std::size_t about_a_commit = 8192;
  checkpointer_->add(about_a_commit);
}

void ExperimentStore::sync() {
  if (!unsynced_since_) return;
  if (::fdatasync(log_.get()) != 0) base::throw_storage_error("sync the log of", database_->path());
  unsynced_since_.reset();
}

std::optional<std::chrono::steady_clock::time_point> ExperimentStore::sync_due() const {
  if (!unsynced_since_) return std::nullopt;
  return *unsynced_since_ + kSyncInterval;
}

void ExperimentStore::finish() {
  commit();
  // Kept up with every result it would cost a third of the time that a report takes.
  database_->execute("CREATE INDEX IF NOT EXISTS results_of_trial ON results(trial, sequence)");
  unsynced_since_ = std::chrono::steady_clock::now();
  sync();
}

std::vector<std::string> read_results(const std::filesystem::path& directory, std::int64_t trial) {
  if (!std::filesystem::exists(file_of(directory)))
    throw NotFound("there is no experiment in " + directory.string() + ": it has no file " +
                   ExperimentStore::kFileName);
  const Database database(file_of(directory), Database::Access::read_write);
  check_format(database);
  Statement results(database, "SELECT metrics FROM results WHERE trial = ? AND repeated = 0 ORDER BY sequence");
  results.bind(1, trial);
  std::vector<std::string> metrics;
  while (results.step()) metrics.emplace_back(results.text(0));
  return metrics;
}

}  // namespace cadre::store
