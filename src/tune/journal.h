// Events as rows of the experiment store, and back; and trials as they stand.
#pragma once

#include <cstdint>

#include "store/experiment_store.h"
#include "tune/events.h"

namespace cadre::tune {

// Adds the event's row; returns its sequence number. `repeated` concerns results only.
std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated);

// The event that a row was made from. Throws StorageError for a row that no version of Cadre wrote.
Event to_event(const store::ResultRow& row);
Event to_event(const store::EventRow& row);

store::TrialRow to_row(const Trial& trial);

}  // namespace cadre::tune
