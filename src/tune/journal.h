// Converts events and trials to rows of the experiment store, and rows back to events.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "store/experiment_store.h"
#include "tune/events.h"

namespace cadre::tune {

// Stored as the checkpoint of a result that came without one although its worker could still write one. No directory
// that a worker reports has this name.
inline constexpr std::string_view kOfferedCheckpoint = "offered";

// Adds the event's row; returns its sequence number. `repeated` applies to results only.
std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated);

store::DecisionRow to_row(const RecordDecision& decision, std::int64_t cause);
// Returns the decisions with answers of the searcher and of the program's functions among those of one event.
RecordedAnswers answers_of(const std::vector<store::DecisionRow>& decisions);
// Returns the event that a row was made from. Throws StorageError for a row that no version of Cadre wrote.
Event to_event(const store::ResultRow& row);
Event to_event(const store::EventRow& row);

store::TrialRow to_row(const SaveTrial& trial);

}  // namespace cadre::tune
