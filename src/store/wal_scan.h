// The contents of a write-ahead log, read before SQLite does: SQLite treats the first invalid frame as the end of the
// log, and would silently drop everything behind it. Format: https://sqlite.org/fileformat2.html#the_write_ahead_log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>

namespace cadre::store {

struct WalScan {
  // The database's size, in pages, after the last complete transaction of the log; 0 if it has none.
  std::uint32_t pages = 0;
  // The numbers of the pages in complete transactions of the log.
  std::set<std::uint64_t> holds = {};
  // The offset of the first invalid frame that is followed by committed transactions. A log that only ends within a
  // frame or a transaction, as after a kill, is not damaged.
  std::optional<std::uint64_t> damage = {};

  bool has(std::uint64_t page) const { return holds.contains(page); }
};

// Reads the log; a missing or empty one holds nothing. Throws StorageError if it cannot be read. No process may be
// writing to it.
WalScan scan_wal(const std::filesystem::path& log);

}  // namespace cadre::store
