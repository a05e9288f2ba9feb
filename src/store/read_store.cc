#include "store/read_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/inner_path.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "store/damage.h"
#include "store/integrity.h"

namespace cadre::store {
namespace fs = std::filesystem;
namespace {

template <class Row>
std::vector<Row> read_all(const Database& database, const char* order) {
  RowReader<Row> rows(database, order);
  std::vector<Row> all;
  while (auto row = rows.next()) all.push_back(std::move(*row));
  return all;
}

template <class Row>
ChangedRows<Row> read_changed(const Database& database, RowChecksums& known) {
  const std::string columns = Row::table.columns;
  const std::string key = columns.substr(0, columns.find(','));
  Statement all(database, fmt::format("SELECT {0}, checksum FROM {1} ORDER BY {0}", key, Row::table.name));
  RowReader<Row> row(database, fmt::format("WHERE {} = ?", key));
  ChangedRows<Row> changes;
  RowChecksums present;
  auto before = known.begin();
  while (all.step()) {
    const auto& [id, checksum] = present.emplace_back(all.integer(0), all.integer(1));
    for (; before != known.end() && before->first < id; ++before) changes.removed.push_back(before->first);
    const bool is_known = before != known.end() && before->first == id;
    if (!is_known || before->second != checksum) {
      std::optional<Row> changed = row.bind(1, id).first();
      if (!changed) throw_missing(database, Row::table.name, id);
      changes.rows.push_back(*std::move(changed));
    }
    if (is_known) ++before;
  }
  for (; before != known.end(); ++before) changes.removed.push_back(before->first);
  known = std::move(present);
  return changes;
}

// A training run is the only trial of its store, and has no directory of its own.
void check_directories(const Database& database, const std::vector<TrialRow>& rows) {
  for (const TrialRow& row : rows) {
    if (!row.directory.empty()) base::InnerPath(row.directory, database.path().native());
  }
}

void check_directories(const Database& database, const std::vector<CheckpointRow>& rows) {
  for (const CheckpointRow& row : rows) base::InnerPath(row.directory, database.path().native());
}

fs::path existing_store(const fs::path& directory) {
  fs::path path = directory / kStoreFileName;
  if (!has_store(directory))
    throw NotFound("there is no experiment in " + directory.string() + ": it has no file " + kStoreFileName);
  return path;
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code missing;
  const std::uintmax_t bytes = fs::file_size(file, missing);
  return missing ? 0 : bytes;
}

std::unique_ptr<Database> open_checked(const fs::path& path, Database::Access access) {
  auto database = std::make_unique<Database>(path, access);
  database->keep_log(size_of(database->log_path()) > 0);
  check_header(*database);
  return database;
}

}  // namespace

bool has_store(const fs::path& directory) {
  const fs::path path = directory / kStoreFileName;
  if (::access(path.c_str(), F_OK) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) base::throw_storage_error("look for", path);
  return false;
}

std::unique_ptr<Database> open_database(const fs::path& directory) {
  return open_checked(existing_store(directory), Database::Access::read_write);
}

OpenedStore open_to_read(const fs::path& directory, bool is_being_written) {
  const fs::path path = existing_store(directory);
  const bool is_writable = ::access(directory.c_str(), W_OK | X_OK) == 0 && ::access(path.c_str(), W_OK) == 0;
  if (is_writable || is_being_written) return {.database = open_checked(path, Database::Access::read_write)};
  const fs::path log = path.native() + "-wal";
  if (size_of(log) == 0) return {.database = open_checked(path, Database::Access::immutable)};
  // SQLite reads a log through an index, which is a file that it would have to create.
  if (fs::exists(path.native() + "-shm")) return {.database = open_checked(path, Database::Access::read_write)};
  OpenedStore opened{.copy = std::make_unique<base::TemporaryFolder>("cadre_store")};
  for (const fs::path& file : {path, log}) fs::copy_file(file, opened.copy->path() / file.filename());
  opened.database = open_checked(opened.copy->path() / path.filename(), Database::Access::read_write);
  return opened;
}

void check_format(const Database& database) {
  check_schema(database);
  Statement statement(database, "SELECT value FROM meta WHERE key = 'format'");
  if (!statement.step()) throw_damaged(database.path(), std::nullopt, "it has no \"format\"");
  const std::string_view stored = statement.text(0);
  if (stored != std::to_string(kStoreFormat))
    throw StorageError(
        fmt::format("the store {} has format {}; this program reads format {}: use the version of Cadre "
                    "that wrote it",
                    database.path().string(), stored, kStoreFormat));
}

std::map<std::string, std::string> read_meta(const Database& database) {
  RowReader<MetaRow> rows(database);
  std::map<std::string, std::string> meta;
  while (const auto row = rows.next()) meta.emplace(row->key, row->value);
  for (const char* key : {"format", "name", "trainable", "options", "boot"}) {
    if (!meta.contains(key)) throw_damaged(database.path(), std::nullopt, "it has no \"" + std::string(key) + "\"");
  }
  return meta;
}

std::int64_t last_sequence(const Database& database) {
  return read_number(database,
                     "SELECT max(ifnull((SELECT max(sequence) FROM results), 0), "
                     "ifnull((SELECT max(sequence) FROM events), 0))");
}

bool is_finished(const Database& database) {
  check_format(database);
  const auto mark = RowReader<MetaRow>(database, "WHERE key = 'finished'").first();
  return mark && mark->value == std::to_string(last_sequence(database));
}

void throw_missing(const Database& database, const char* what, std::int64_t number) {
  throw_damaged(database.path(), std::nullopt, std::string(what) + " " + std::to_string(number) + " is missing");
}

std::int64_t read_number(const Database& database, const char* sql) {
  Statement statement(database, sql);
  statement.step();
  return statement.integer(0);
}

ExperimentInfo info_of(const std::map<std::string, std::string>& meta) {
  const auto present = meta.find("present_options");
  const std::string& first = meta.at("options");
  if (present == meta.end()) return {meta.at("name"), meta.at("trainable"), first};
  return {meta.at("name"), meta.at("trainable"), present->second, first};
}

void visit_rows(const Database& database, const RowVisitor& visitor, std::int64_t after_sequence) {
  RowReader<ResultRow> results(database, "WHERE sequence > ? ORDER BY sequence");
  RowReader<EventRow> events(database, "WHERE sequence > ? ORDER BY sequence");
  RowReader<DecisionRow> decisions(database, "WHERE id >= ? ORDER BY id");
  std::int64_t id = first_decision_after(database, after_sequence);
  auto result = results.bind(1, after_sequence).next();
  auto event = events.bind(1, after_sequence).next();
  auto decision = decisions.bind(1, id).next();
  for (std::int64_t sequence = after_sequence + 1; result || event; ++sequence) {
    if (result && result->sequence == sequence) {
      visitor.result(*result);
      result = results.next();
    } else if (event && event->sequence == sequence) {
      visitor.event(*event);
      event = events.next();
    } else {
      throw_missing(database, "the row of results or events with the sequence number", sequence);
    }
    for (; decision && decision->cause == sequence; decision = decisions.next(), ++id) {
      if (decision->id != id) throw_missing(database, "decision", id);
      visitor.decision(*decision);
    }
  }
  if (decision) throw_missing(database, "the cause of decision", decision->id);
}

std::int64_t first_decision_after(const Database& database, std::int64_t sequence) {
  RowReader<DecisionRow> decisions(database, "WHERE id = ?");
  std::int64_t first = 1;
  for (std::int64_t last = read_number(database, "SELECT ifnull(max(id), 0) FROM decisions"); first <= last;) {
    const std::int64_t middle = first + (last - first) / 2;
    const auto decision = decisions.bind(1, middle).first();
    if (!decision) throw_missing(database, "decision", middle);
    decision->cause > sequence ? last = middle - 1 : first = middle + 1;
  }
  return first;
}

std::vector<TrialRow> read_trials(const Database& database) {
  std::vector<TrialRow> rows = read_all<TrialRow>(database, "ORDER BY trial");
  check_directories(database, rows);
  return rows;
}

std::vector<CheckpointRow> read_checkpoints(const Database& database) {
  std::vector<CheckpointRow> rows = read_all<CheckpointRow>(database, "ORDER BY id");
  check_directories(database, rows);
  return rows;
}

ChangedRows<TrialRow> read_changed_trials(const Database& database, RowChecksums& known) {
  ChangedRows<TrialRow> changes = read_changed<TrialRow>(database, known);
  check_directories(database, changes.rows);
  return changes;
}

ChangedRows<CheckpointRow> read_changed_checkpoints(const Database& database, RowChecksums& known) {
  ChangedRows<CheckpointRow> changes = read_changed<CheckpointRow>(database, known);
  check_directories(database, changes.rows);
  return changes;
}

Position read_position(const Database& database, const std::string& schema) {
  Position position;
  for (const char* table : {"results", "events"}) {
    Statement last(database,
                   fmt::format("SELECT sequence, checksum FROM {}{} ORDER BY sequence DESC LIMIT 1", schema, table));
    if (last.step() && last.integer(0) > position.sequence) {
      position.sequence = last.integer(0);
      position.row = last.integer(1);
    }
    last.reset();
  }
  position.decision = read_number(database, fmt::format("SELECT ifnull(max(id), 0) FROM {}decisions", schema).c_str());
  return position;
}

bool has_passed(const Database& database, const Position& position) {
  if (position.sequence == 0) return true;
  for (const char* table : {"results", "events"}) {
    Statement row(database, fmt::format("SELECT checksum FROM {} WHERE sequence = ?", table));
    if (row.bind(1, position.sequence).step()) return row.integer(0) == position.row;
  }
  return false;
}

}  // namespace cadre::store
