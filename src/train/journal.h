// Events of a run as rows of its store, and back; and the run as it stands.
#pragma once

#include <cstdint>

#include "store/experiment_store.h"
#include "train/events.h"
#include "train/run.h"

namespace cadre::train {

// Adds the event's row; returns its sequence number. `repeated` concerns reports only.
std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated);

// The event that a row was made from. Throws StorageError for a row that no version of Cadre wrote.
Event to_event(const store::ResultRow& row);
Event to_event(const store::EventRow& row);

// A decision, behind the event with the number `cause`.
store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause);
// The run: the only row among the trials.
store::TrialRow to_row(const Run& run, const Config& config);

}  // namespace cadre::train
