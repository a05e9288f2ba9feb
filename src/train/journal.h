// Conversion of a run's events to rows of its store and back, and of its decisions and present state to rows.
#pragma once

#include <cstdint>

#include "store/experiment_store.h"
#include "train/events.h"

namespace cadre::train {

// Adds the event's row; returns its sequence number. `repeated` is used for reports only.
std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated);

// Returns the event that a row was made from. Throws StorageError for a row that no version of Cadre wrote.
Event to_event(const store::ResultRow& row);
Event to_event(const store::EventRow& row);

// Returns the row of a decision that followed from the event with the number `cause`.
store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause);
// Returns the run's row, the only one in the table of trials.
store::TrialRow to_row(const SaveRun& run, const Config& config);

}  // namespace cadre::train
