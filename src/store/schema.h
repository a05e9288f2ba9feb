// Creation of a store's files and tables.
#pragma once

#include <filesystem>

#include "store/sqlite.h"

namespace cadre::store {

// Creates all tables, empty.
void create_tables(Database& database);

// Removes a database with its log and index. Ignores errors: a file that remains is reported where it gets in the way.
void remove_database(const std::filesystem::path& path) noexcept;

// Syncs a closed database, which must be in one file, and renames it to its final name, so that a loss of power leaves
// all of it or nothing. Throws StorageError.
void finish_database(const std::filesystem::path& unfinished, const std::filesystem::path& path);

}  // namespace cadre::store
