// The functions that a worker can run, by name. Registered while the program is loaded, so that every process of it
// (forked, executed anew, on another machine) has the same entries.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::channel {
class WorkerEnd;
}

namespace cadre::worker {

// A function for the worker's main thread. Its caller sends Finished with the returned value, or Failed if it throws.
using Entry = std::function<Value(channel::WorkerEnd& controller, const Value& payload)>;

// Adds an entry. A second one of the same name is not added, but recorded, and cadre::init refuses it. Returns true,
// for the initialisation of a constant while the program is loaded.
bool register_entry(std::string_view name, Entry entry);

// Returns nullptr if there is none.
const Entry* find_entry(std::string_view name);
std::vector<std::string> entry_names();
// Returns the names that were registered more than once.
std::vector<std::string> duplicate_entry_names();

}  // namespace cadre::worker
