#include "store/schema.h"

#include "base/file.h"
#include "store/tables.h"

namespace cadre::store {

void create_tables(Database& database) {
  for (const Table& table : {MetaRow::table, ResultRow::table, EventRow::table, DecisionRow::table, TrialRow::table,
                             CheckpointRow::table, Snapshot::table, EndedTrialRow::table})
    database.execute(creation_of(table).c_str());
}

void remove_database(const std::filesystem::path& path) noexcept {
  for (const char* ending : {"-wal", "-shm", ""}) {
    std::error_code ignored;
    std::filesystem::remove(path.string() + ending, ignored);
  }
}

void finish_database(const std::filesystem::path& unfinished, const std::filesystem::path& path) {
  base::sync_file(unfinished);
  base::rename(unfinished, path);
}

}  // namespace cadre::store
