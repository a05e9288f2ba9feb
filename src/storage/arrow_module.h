// Loading of Cadre's libraries that are linked with Arrow: the one for object storages, and the one for Parquet files.
// They are separate libraries, loaded by the first process that needs them, so that other programs do not pay for
// Arrow.
#pragma once

#include <string>

namespace cadre::storage {

// Loads a library, `file`, and returns the address of its function; returns null, and the loader's reason, if it
// cannot. Its name has no path, so the loader searches the program's RUNPATH, then LD_LIBRARY_PATH; a library of
// Arrow's that is not found so is taken from the folder that the environment variable CADRE_ARROW_ROOT names. Nothing
// is ever unloaded. Safe to call from several threads.
void* load_arrow_module(const char* file, const char* function, std::string& reason);

// Returns true if the reason is that a library of Arrow's is missing, and says how to get it in `how_to_get_arrow`.
bool is_arrow_missing(const std::string& reason);
std::string how_to_get_arrow();

// Sets a function that is called before a library for `user`, such as "s3://bucket/folder", is loaded. A host whose
// programs have Arrow in a place of its own, such as Python, loads Arrow's libraries there. The function may throw.
// Called before any thread is started.
void set_arrow_loader(void (*load)(const std::string& user));
// Calls that function, if there is one, until it has returned once.
void prepare_arrow(const std::string& user);

}  // namespace cadre::storage
