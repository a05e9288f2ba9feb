// Integrity checks of a database file. Each throws StorageError, with the file and the offset, if the check fails.
#pragma once

#include <string>

#include "store/sqlite.h"
#include "store/wal_scan.h"

namespace cadre::store {

// Checks the file's header. Must be called before the first statement: SQLite treats an empty file as a new database,
// and removes the log beside it.
void check_header(const Database& database);

// Checks that every page is in the file or in its log.
void check_length(const Database& database, const WalScan& log);

// Checks that the database, or one that is attached to it, has plain tables only: no view, trigger, virtual table or
// computed column, with which SQLite would execute code that another user wrote into the file.
void check_schema(const Database& database, const std::string& attached = "main");

// Checks the schema, and the structure of all pages (PRAGMA quick_check).
void check_structure(const Database& database);

}  // namespace cadre::store
