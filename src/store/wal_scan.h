// What a write-ahead log holds, read before SQLite does: SQLite takes the first frame that is not right for the end of
// the log, and everything behind it would be gone without a word. The format is that of
// https://sqlite.org/fileformat2.html#the_write_ahead_log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>

namespace cadre::store {

struct WalScan {
  // The database's size after the last whole transaction of the log; 0 when it has none.
  std::uint32_t pages = 0;
  // The numbers of the pages that whole transactions of the log hold.
  std::set<std::uint64_t> holds = {};
  // The offset of the first thing that is not right although transactions were committed behind it. A log that only
  // ends within a frame or a transaction, as a kill leaves it, is not damaged.
  std::optional<std::uint64_t> damage = {};

  bool has(std::uint64_t page) const { return holds.contains(page); }
};

// Reads the log; a missing or empty one holds nothing. Throws StorageError when it cannot be read. Nobody may be
// writing to it.
WalScan scan_wal(const std::filesystem::path& log);

}  // namespace cadre::store
