#include "store/stored_rows.h"

#include <utility>

#include "cadre/error.h"
#include "store/damage.h"
#include "store/integrity.h"

namespace cadre::store {

std::unique_ptr<Database> open_database(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kStoreFileName;
  if (!std::filesystem::exists(path))
    throw NotFound("there is no experiment in " + directory.string() + ": it has no file " + kStoreFileName);
  auto database = std::make_unique<Database>(path, Database::Access::read_write);
  std::error_code missing;
  const auto log_bytes = std::filesystem::file_size(database->log_path(), missing);
  database->keep_log(!missing && log_bytes > 0);
  check_header(*database);
  return database;
}

int check_format(const Database& database) {
  Statement statement(database, "SELECT value FROM meta WHERE key = 'format'");
  if (!statement.step()) throw_damaged(database.path(), std::nullopt, "it has no \"format\"");
  const std::string stored(statement.text(0));
  for (int format = kOldestStoreFormat; format <= kStoreFormat; ++format) {
    if (stored == std::to_string(format)) return format;
  }
  throw StorageError("the store " + database.path().string() + " has format " + stored +
                     "; this program reads formats " + std::to_string(kOldestStoreFormat) + " to " +
                     std::to_string(kStoreFormat) + ": use the version of Cadre that wrote it");
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

std::int64_t last_sequence(const Database& database) {
  return read_number(database,
                     "SELECT max(ifnull((SELECT max(sequence) FROM results), 0), "
                     "ifnull((SELECT max(sequence) FROM events), 0))");
}

bool is_finished(const Database& database) {
  if (check_format(database) == kOldestStoreFormat)
    return read_number(database, "SELECT EXISTS (SELECT 1 FROM histories)") != 0;
  RowReader mark(database, kMeta, "WHERE key = 'finished'");
  return mark.step() && mark.text(1) == std::to_string(last_sequence(database));
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
  return {meta.at("name"), meta.at("trainable"), meta.at("options")};
}

void visit_rows(const Database& database, const RowVisitor& visitor, std::int64_t after_sequence) {
  RowReader results(database, kResults, "WHERE sequence > ? ORDER BY sequence");
  RowReader events(database, kEvents, "WHERE sequence > ? ORDER BY sequence");
  RowReader decisions(database, kDecisions, "WHERE id >= ? ORDER BY id");
  std::int64_t decision = first_decision_after(database, after_sequence);
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
      throw_missing(database, "the row of results or events with the sequence number", sequence);
    }
    for (; more_decisions && decisions.integer(1) == sequence; more_decisions = decisions.step(), ++decision) {
      if (decisions.integer(0) != decision) throw_missing(database, "decision", decision);
      visitor.decision({sequence, decisions.text(2), decisions.integer(3), decisions.text(4)});
    }
  }
  if (more_decisions) throw_missing(database, "the cause of decision", decisions.integer(0));
}

std::int64_t first_decision_after(const Database& database, std::int64_t sequence) {
  RowReader decisions(database, kDecisions, "WHERE id = ?");
  std::int64_t first = 1;
  for (std::int64_t last = read_number(database, "SELECT ifnull(max(id), 0) FROM decisions"); first <= last;) {
    const std::int64_t middle = first + (last - first) / 2;
    if (!decisions.bind(1, middle).step()) throw_missing(database, "decision", middle);
    const bool is_after = decisions.integer(1) > sequence;
    decisions.reset();
    is_after ? last = middle - 1 : first = middle + 1;
  }
  return first;
}

std::vector<TrialRow> read_trials(const Database& database) {
  RowReader rows(database, kTrials, "ORDER BY trial");
  std::vector<TrialRow> trials;
  while (rows.step())
    trials.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.integer(3), rows.text(4), rows.text(5),
                      rows.text(6), rows.text(7)});
  return trials;
}

std::vector<CheckpointRow> read_checkpoints(const Database& database) {
  RowReader rows(database, kCheckpoints, "ORDER BY id");
  std::vector<CheckpointRow> checkpoints;
  while (rows.step())
    checkpoints.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.text(3), rows.text(4),
                           rows.integer(5) != 0, rows.text(6)});
  return checkpoints;
}

}  // namespace cadre::store
