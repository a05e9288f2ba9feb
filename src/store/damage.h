// Errors about a damaged store: the file, the byte, and what the user can do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/sqlite.h"

namespace cadre::store {

// Throws StorageError "<file> is damaged[ near byte <offset>]: <what>; ...".
[[noreturn]] void throw_damaged(const std::filesystem::path& file, std::optional<std::uint64_t> offset,
                                const std::string& what);

// Throws the same for a row whose checksum is wrong. The row's place in the file is found by its checksum, 64 bits that
// no other row has.
[[noreturn]] void throw_damaged_row(const Database& database, const std::string& row, std::int64_t checksum);

}  // namespace cadre::store
