// Converts events and trials to rows of the experiment store, and rows back to events.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/experiment_store.h"
#include "tune/events.h"

namespace cadre::tune {

// Stored as the checkpoint of a result that came without one although its worker could still write one. No directory
// that a worker reports has this name.
inline constexpr std::string_view kOfferedCheckpoint = "offered";

// Names of events in the store; a reported result has its own table.
namespace event_name {
inline constexpr std::string_view controller_started = "controller_started";
inline constexpr std::string_view function_returned = "function_returned";
inline constexpr std::string_view function_threw = "function_threw";
inline constexpr std::string_view worker_declined = "worker_declined";
inline constexpr std::string_view worker_ended = "worker_ended";
inline constexpr std::string_view timer_fired = "timer_fired";
inline constexpr std::string_view interrupted = "interrupted";
inline constexpr std::string_view checkpoints_synced = "checkpoints_synced";
inline constexpr std::string_view memory_runs_short = "memory_runs_short";
inline constexpr std::string_view time_lost = "time_lost";
}  // namespace event_name

// Adds the event's row; returns its sequence number. `repeated` applies to results only.
std::int64_t record(store::ExperimentStore& store, const Event& event, double time, bool repeated);

// Returns the event that a row was made from. Throws StorageError for a row that no version of Cadre wrote.
Event to_event(const store::ResultRow& row);
Event to_event(const store::EventRow& row);

store::TrialRow to_row(const Trial& trial);

}  // namespace cadre::tune
