// The files and tables of a store, as they are made.
#pragma once

#include <filesystem>

#include "store/sqlite.h"

namespace cadre::store {

// All tables, empty.
void create_tables(Database& database);

// A database with its log. What cannot be removed is said by whoever meets it.
void remove_database(const std::filesystem::path& path) noexcept;

// Gives a closed database, all of which is in its one file, the name by which it is found: after it was synced, so that
// a loss of power leaves the whole of it or nothing. Throws StorageError.
void finish_database(const std::filesystem::path& unfinished, const std::filesystem::path& path);

}  // namespace cadre::store
