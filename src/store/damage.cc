#include "store/damage.h"

#include "cadre/error.h"

namespace cadre::store {
namespace {

// Returns the last offset of `bytes` in the file, which in the log is the newest.
std::optional<std::uint64_t> find_last(const DatabaseFile& file, const std::string& bytes) {
  constexpr std::size_t chunk = std::size_t{1} << 20;
  std::optional<std::uint64_t> found;
  for (std::uint64_t offset = 0; offset < file.size(); offset += chunk) {
    const std::string part = file.read(offset, chunk + bytes.size() - 1);
    if (const std::size_t at = part.rfind(bytes); at != std::string::npos) found = offset + at;
  }
  return found;
}

}  // namespace

void throw_damaged(const std::filesystem::path& file, std::optional<std::uint64_t> offset, const std::string& what) {
  throw StorageError(file.string() + " is damaged" + (offset ? " near byte " + std::to_string(*offset) : "") + ": " +
                     what + ". Restore the file from a backup; nothing in the experiment was changed");
}

void throw_damaged_row(const Database& database, const std::string& row, std::int64_t checksum) {
  std::string bytes;  // in SQLite's encoding of a 64-bit integer
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(checksum >> shift);
  const std::string what = row + " is not what was written (its checksum is wrong)";
  for (const auto kind : {DatabaseFile::Kind::log, DatabaseFile::Kind::database}) {
    const DatabaseFile file(database, kind);
    if (const auto offset = find_last(file, bytes)) throw_damaged(file.path(), offset, what);
  }
  throw_damaged(database.path(), std::nullopt, what);
}

}  // namespace cadre::store
