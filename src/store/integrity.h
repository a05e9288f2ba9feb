// Whether a database file is whole. What is not throws StorageError with the file and the offset.
#pragma once

#include <string>

#include "store/sqlite.h"
#include "store/wal_scan.h"

namespace cadre::store {

// Looks at the first bytes of the file, which say what it is. To be called before the first statement: SQLite takes an
// empty file for a new database, and removes the log beside it.
void check_header(const Database& database);

// Every page lies in the file or in its log.
void check_length(const Database& database, const WalScan& log);

// Checks that the database, or one that is attached to it, has plain tables and nothing else: no view, trigger or
// virtual table, and no column that is computed, all of which would have SQLite run what somebody else has written.
void check_schema(const Database& database, const std::string& attached = "main");

// Checks the schema, reads every page and checks how they hang together (PRAGMA quick_check).
void check_structure(const Database& database);

}  // namespace cadre::store
