// What a worker can be told to run, by name. Filled while the program is loaded, so that every process of it (forked,
// executed anew, on another machine) has the same entries.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::channel {
class WorkerEnd;
}

namespace cadre::run {

// Runs in the worker's main thread. Returning means Finished, with the value, and an exception Failed; both are sent by
// the caller.
using Entry = std::function<Value(channel::WorkerEnd& controller, const Value& payload)>;

// Adds an entry. A second one of the same name is kept out and remembered, for cadre::init to refuse.
void register_entry(std::string_view name, Entry entry);

// nullptr where there is none.
const Entry* find_entry(std::string_view name);
std::vector<std::string> entry_names();
// Names that were registered more than once.
std::vector<std::string> duplicate_entry_names();

}  // namespace cadre::run
