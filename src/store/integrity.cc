#include "store/integrity.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "cadre/error.h"
#include "cadre/value.h"
#include "store/damage.h"

namespace cadre::store {
namespace {

constexpr std::size_t kHeaderBytes = 100;

// Reads the header. Source of its layout: https://sqlite.org/fileformat2.html#the_database_header.
std::string read_header(const DatabaseFile& file) {
  std::string header = file.read(0, kHeaderBytes);
  if (header.size() < kHeaderBytes) throw_damaged(file.path(), header.size(), "the file ends here, in its header");
  return header;
}

std::uint32_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t page_bytes(const std::string& header) {
  const std::uint32_t size = number_at(header, 16, 2);
  return size == 1 ? 65536 : size;
}

// Returns the page in a message of quick_check, such as "On tree page 5 cell 3: ...".
std::optional<std::uint64_t> page_of(std::string_view finding) {
  constexpr std::string_view word = "age ";
  const std::size_t at = finding.find(word);
  std::uint64_t page = 0;
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = finding.data() + at + word.size();
  const auto result = std::from_chars(begin, finding.data() + finding.size(), page);
  return result.ec == std::errc{} && page > 0 ? std::optional(page) : std::nullopt;
}

}  // namespace

void check_header(const Database& database) {
  const DatabaseFile file(database, DatabaseFile::Kind::database);
  const std::string header = read_header(file);
  constexpr std::string_view magic("SQLite format 3\0", 16);
  if (header.compare(0, magic.size(), magic) != 0) throw_damaged(file.path(), 0, "it is not a database");
  if (const std::uint32_t size = page_bytes(header); !std::has_single_bit(size) || size < 512)
    throw_damaged(file.path(), 16, "it says that a page has " + std::to_string(size) + " bytes");
  constexpr char write_ahead_log = 2;
  for (const std::size_t at : {18, 19}) {
    if (header[at] != write_ahead_log) throw_damaged(file.path(), at, "it is not a database with a write-ahead log");
  }
}

void check_length(const Database& database, const WalScan& log) {
  const DatabaseFile file(database, DatabaseFile::Kind::database);
  const std::string header = read_header(file);
  const std::uint64_t pages = log.pages != 0 ? log.pages : number_at(header, 28, 4);
  for (std::uint64_t page = file.size() / page_bytes(header) + 1; page <= pages; ++page) {
    if (!log.has(page))
      throw_damaged(file.path(), file.size(),
                    "the file ends here, but has " + std::to_string(pages) + " pages of " +
                        std::to_string(page_bytes(header)) + " bytes");
  }
}

void check_schema(const Database& database, const std::string& attached) {
  Statement schema(database, "SELECT type, name, sql FROM " + attached + ".sqlite_schema");
  while (schema.step()) {
    const std::string type(schema.text(0));
    const std::string name(schema.text(1));
    const std::string_view sql = schema.text(2);
    if (type == "index" && sql.empty()) continue;  // made by SQLite for a primary key
    const std::size_t columns = sql.find('(');
    const bool is_plain = type == "table" && sql.starts_with("CREATE TABLE ") && columns != sql.npos &&
                          sql.find('(', columns + 1) == sql.npos &&
                          (sql.ends_with(")") || sql.ends_with(") WITHOUT ROWID"));
    if (!is_plain)
      throw_damaged(database.path(), std::nullopt,
                    "it has the " + type + " " + to_json(Value(name)) + ", which Cadre does not make");
  }
}

void check_structure(const Database& database) {
  const DatabaseFile file(database, DatabaseFile::Kind::database);
  const std::uint64_t size = page_bytes(read_header(file));
  std::string finding;
  try {
    check_schema(database);
    Statement check(database, "PRAGMA quick_check(1)");
    check.step();
    finding = check.text(0);
  } catch (const StorageError&) {
    const int result = sqlite3_errcode(database.handle());
    if (result != SQLITE_CORRUPT && result != SQLITE_NOTADB && result != SQLITE_ERROR) throw;
    throw_damaged(file.path(), 0, sqlite3_errmsg(database.handle()));  // the schema begins at byte 0
  }
  if (finding == "ok") return;
  std::ranges::replace(finding, '\n', ' ');
  const auto page = page_of(finding);
  throw_damaged(file.path(), page ? std::optional((*page - 1) * size) : std::nullopt, finding);
}

}  // namespace cadre::store
