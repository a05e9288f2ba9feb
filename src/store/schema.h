// The files and tables of a store, as they are made.
#pragma once

#include <filesystem>

#include "store/sqlite.h"

namespace cadre::store {

// All tables, empty.
void create_tables(Database& database);

// A database with its log. What cannot be removed is said by whoever meets it.
void remove_database(const std::filesystem::path& path) noexcept;

}  // namespace cadre::store
