#include "store/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file.h"
#include "cadre/error.h"
#include "store/experiment_store.h"
#include "store/integrity.h"
#include "store/read_store.h"
#include "store/schema.h"

namespace cadre::store {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSegmentFormat = "1";
constexpr const char* kSegmentFormatWithPlaces = "2";

// Additional tables of a segment, for a connection whose main database is the segment's file.
constexpr const char* kCreateSegmentTables =
    "CREATE TABLE segment(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE removed_checkpoints(id INTEGER PRIMARY KEY)";

void attach(Database& database, const fs::path& file, const char* name) {
  database.attach(file, name);
  check_schema(database, name);
}

void put_fact(Statement& statement, std::string_view key, std::string_view value) {
  statement.bind(1, key).bind(2, value).run();
}

}  // namespace

Position position_of(const fs::path& directory) {
  const auto database = open_database(directory);
  check_format(*database);
  return read_position(*database, "");
}

bool has_passed(const fs::path& directory, const Position& position) {
  const auto database = open_database(directory);
  check_format(*database);
  return has_passed(*database, position);
}

bool is_finished(const fs::path& directory) { return is_finished(*open_database(directory)); }

// ---- Writing

class SegmentWriter::Draft {
 public:
  Draft(const fs::path& file, const fs::path& store, const Range& range, Tables tables)
      : range_(range), tables_(std::move(tables)), database_(file, Database::Access::create) {
    // No process reads the file before it is complete, so it needs no journal. Pages are small because most segments
    // are.
    database_.execute("PRAGMA page_size = 1024; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
    create_tables(database_);
    database_.execute(kCreateSegmentTables);
    attach(database_, store, "store");
    database_.keep_log(true);
  }

  // Writes the segment. Returns nothing if no row has changed.
  std::optional<Segment> write() {
    database_.execute("BEGIN");
    Segment segment{.position = read_position(database_, "store.")};
    changed_ = range_.whole_tables || segment.position != tables_.position;
    tables_.position = segment.position;
    copy_rows();
    copy_facts();
    copy_trials();
    copy_checkpoints(segment.checkpoints);
    describe(segment.position);
    database_.execute("COMMIT; DETACH store");
    if (!changed_) return std::nullopt;
    return segment;
  }
  Tables take_tables() { return std::move(tables_); }

 private:
  // Returns true if a row belongs in this segment: it has changed since those before it. Records its present checksum.
  bool take(Known& known, std::int64_t checksum) {
    if (known.number == 0 || known.checksum != checksum || range_.whole_tables) {
      changed_ = true;
      known = {checksum, range_.number};
    }
    return is_newer(known);
  }
  bool is_newer(const Known& known) const { return known.number > range_.after_number; }

  void copy_rows() {
    Statement(database_, "INSERT INTO results SELECT * FROM store.results WHERE sequence > ?")
        .bind(1, range_.after.sequence)
        .run();
    Statement(database_, "INSERT INTO events SELECT * FROM store.events WHERE sequence > ?")
        .bind(1, range_.after.sequence)
        .run();
    Statement(database_, "INSERT INTO decisions SELECT * FROM store.decisions WHERE id > ?")
        .bind(1, range_.after.decision)
        .run();
  }

  void copy_facts() {
    Statement all(database_, "SELECT key, checksum FROM store.meta");
    Statement copy(database_, "INSERT INTO meta SELECT * FROM store.meta WHERE key = ?");
    while (all.step()) {
      const std::string key(all.text(0));
      if (take(tables_.facts[key], all.integer(1))) copy.bind(1, key).run();
    }
  }

  // Copies the trials that changed. A trial does not change any more, as long as the controller runs, once it and all
  // trials before it have ended.
  void copy_trials() {
    Statement all(database_, "SELECT trial, checksum, status FROM store.trials WHERE trial >= ? ORDER BY trial");
    Statement copy(database_, "INSERT INTO trials SELECT * FROM store.trials WHERE trial = ?");
    all.bind(1, tables_.first_open_trial);
    bool all_ended = true;
    while (all.step()) {
      const std::int64_t trial = all.integer(0);
      take(tables_.trials[trial], all.integer(1));
      const std::string_view status = all.text(2);
      all_ended = all_ended && is_status_of_ended(status);
      if (all_ended && trial < std::numeric_limits<std::int64_t>::max()) tables_.first_open_trial = trial + 1;
    }
    for (const auto& [trial, known] : tables_.trials) {
      if (is_newer(known)) copy.bind(1, trial).run();
    }
  }

  // Copies the checkpoints that changed, or all if this segment replaces others: the removals in the replaced segments
  // are not recorded here.
  void copy_checkpoints(std::vector<CheckpointRow>& existing) {
    std::map<std::int64_t, Known> known;
    Statement all(database_, "SELECT id, trial, step, directory, synced, checksum FROM store.checkpoints ORDER BY id");
    Statement copy(database_, "INSERT INTO checkpoints SELECT * FROM store.checkpoints WHERE id = ?");
    while (all.step()) {
      CheckpointRow row{.id = all.integer(0),
                        .trial = all.integer(1),
                        .step = all.integer(2),
                        .directory = std::string(all.text(3)),
                        .synced = all.integer(4) != 0};
      const auto before = tables_.checkpoints.extract(row.id);
      Known& now = known[row.id];
      if (before) now = before.mapped();
      if (take(now, all.integer(5)) || range_.replaces) copy.bind(1, row.id).run();
      existing.push_back(std::move(row));
    }
    Statement remove(database_, "INSERT INTO removed_checkpoints VALUES(?)");
    for (const auto& [id, gone] : tables_.checkpoints) {
      changed_ = true;
      remove.bind(1, id).run();
    }
    tables_.checkpoints = std::move(known);
  }

  void describe(const Position& position) {
    Statement fact(database_, "INSERT INTO segment VALUES(?, ?)");
    put_fact(fact, "format", kSegmentFormat);
    put_fact(fact, "after", std::to_string(range_.after.sequence));
    put_fact(fact, "sequence", std::to_string(position.sequence));
    put_fact(fact, "all_trials", range_.whole_tables ? "1" : "0");
    put_fact(fact, "all_checkpoints", range_.whole_tables || range_.replaces ? "1" : "0");
  }

  const Range& range_;
  Tables tables_;
  Database database_;
  bool changed_ = false;
};

SegmentWriter::SegmentWriter(fs::path directory) : directory_(std::move(directory)) {}
SegmentWriter::~SegmentWriter() = default;

std::optional<SegmentWriter::Segment> SegmentWriter::write(const fs::path& file, const Range& range) {
  drafted_.reset();
  remove_database(file);
  std::optional<Segment> segment;
  {
    Draft draft(file, directory_ / kStoreFileName, range, kept_);
    segment = draft.write();
    drafted_ = draft.take_tables();
  }
  if (!segment) remove_database(file);
  return segment;
}

void SegmentWriter::keep() {
  if (drafted_) kept_ = *std::exchange(drafted_, std::nullopt);
}

void set_manifests(const fs::path& segment, const std::map<std::int64_t, std::string>& manifests) {
  Database database(segment, Database::Access::read_write);
  database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  {
    RowReader<CheckpointRow> rows(database, "WHERE id = ?");
    RowWriter<CheckpointRow> writer(database, WriteMode::replace);
    for (const auto& [id, manifest] : manifests) {
      auto row = rows.bind(1, id).first();
      if (!row) continue;
      row->synced = true;
      row->manifest = manifest;
      writer.write(*row);
    }
  }
  database.execute("COMMIT");
}

void set_places(const fs::path& segment, const Places& places) {
  if (places.empty()) return;
  Database database(segment, Database::Access::read_write);
  database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  database.execute("CREATE TABLE places(id INTEGER PRIMARY KEY, place TEXT NOT NULL)");
  {
    Statement add(database, "INSERT INTO places SELECT id, ?1 FROM checkpoints WHERE id = ?2");
    for (const auto& [id, place] : places) add.bind(1, std::string_view(place)).bind(2, id).run();
    Statement format(database, "UPDATE segment SET value = ? WHERE key = 'format' AND EXISTS(SELECT 1 FROM places)");
    format.bind(1, std::string_view(kSegmentFormatWithPlaces)).run();
  }
  database.execute("COMMIT");
}

// ---- Reading

namespace {

class StoreBuilder {
 public:
  explicit StoreBuilder(const fs::path& file) : database_(file, Database::Access::create) {
    database_.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL");
    create_tables(database_);
  }

  void add(const fs::path& segment) {
    attach(database_, segment, "segment");
    check(segment);
    database_.execute("BEGIN");
    if (fact("all_trials") == "1") database_.execute("DELETE FROM trials");
    if (fact("all_checkpoints") == "1") database_.execute("DELETE FROM checkpoints");
    database_.execute(
        "INSERT OR REPLACE INTO meta SELECT * FROM segment.meta;"
        "INSERT INTO results SELECT * FROM segment.results; INSERT INTO events SELECT * FROM segment.events;"
        "INSERT INTO decisions SELECT * FROM segment.decisions;"
        "INSERT OR REPLACE INTO trials SELECT * FROM segment.trials;"
        "DELETE FROM checkpoints WHERE id IN (SELECT id FROM segment.removed_checkpoints);"
        "INSERT OR REPLACE INTO checkpoints SELECT * FROM segment.checkpoints;"
        "COMMIT");
    take_places();
    database_.execute("DETACH segment");
  }

  // Returns the places of the checkpoints.
  Places finish() {
    database_.copy_log();
    return std::move(places_);
  }

 private:
  std::string fact(const char* key) {
    Statement statement(database_, "SELECT value FROM segment.segment WHERE key = ?");
    if (!statement.bind(1, std::string_view(key)).step()) return {};
    return std::string(statement.text(0));
  }

  void take_places() {
    if (fact("all_checkpoints") == "1") places_.clear();
    Statement removed(database_, "SELECT id FROM segment.removed_checkpoints");
    while (removed.step()) places_.erase(removed.integer(0));
    if (fact("format") != kSegmentFormatWithPlaces) return;
    Statement places(database_, "SELECT id, place FROM segment.places");
    while (places.step()) places_[places.integer(0)] = places.text(1);
  }

  void check(const fs::path& segment) {
    if (const std::string format = fact("format"); format != kSegmentFormat && format != kSegmentFormatWithPlaces)
      throw StorageError(fmt::format("{} has format \"{}\"; this program reads formats {} and {}", segment.string(),
                                     format, kSegmentFormat, kSegmentFormatWithPlaces));
    const std::int64_t last = read_position(database_, "").sequence;
    if (const std::string after = fact("after"); after != std::to_string(last))
      throw StorageError(
          fmt::format("{} follows row {}, and those before it end with row {}", segment.string(), after, last));
  }

  Database database_;
  Places places_ = {};
};

}  // namespace

Places build_store(const fs::path& directory, const std::vector<fs::path>& segments) {
  const fs::path unfinished = directory / ExperimentStore::kUnfinishedName;
  remove_database(unfinished);
  Places places;
  try {
    {
      StoreBuilder builder(unfinished);
      for (const fs::path& segment : segments) builder.add(segment);
      places = builder.finish();
    }
    finish_database(unfinished, directory / kStoreFileName);
  } catch (...) {
    remove_database(unfinished);
    throw;
  }
  return places;
}

}  // namespace cadre::store
