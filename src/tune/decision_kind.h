// The core's decisions about a trial, and their names in the store.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace cadre::tune {

enum class DecisionKind {
  make,       // the trial joins the population with this config
  launch,     // a worker is started
  resume,     // the parked worker goes on
  take_over,  // the waiting worker goes on with the trial's new checkpoint and config
  save,       // the worker, which may be parked, is asked for a checkpoint of its last result
  pause,      // the trial waits to be scheduled again; its worker is parked or, where that is not allowed, told to stop
  unpark,     // the parked worker is told to stop
  exploit,    // the trial continues with a donor's checkpoint and a new config
  retry,      // the trial failed and will be tried again
  end,        // the trial has terminated
  fail,       // the trial has failed for good
  set_aside,  // the worker is told to stop because the experiment is interrupted
  kill,       // the worker is killed
  lose,       // the checkpoint that the trial would have continued from is lost
  take_up,    // the failed trial runs again
};

inline constexpr std::array<std::string_view, 15> kDecisionNames = {
    "make",  "launch", "resume", "take_over", "save", "pause", "unpark", "exploit",
    "retry", "end",    "fail",   "set_aside", "kill", "lose",  "take_up"};

constexpr std::string_view to_string(DecisionKind kind) { return kDecisionNames[static_cast<std::size_t>(kind)]; }

// Returns nothing for a name that no version of Cadre has written.
constexpr std::optional<DecisionKind> decision_kind_of(std::string_view name) {
  for (std::size_t i = 0; i < kDecisionNames.size(); ++i) {
    if (kDecisionNames[i] == name) return static_cast<DecisionKind>(i);
  }
  return std::nullopt;
}

// Returns true if reports of the trial's present worker no longer count, until the worker resumes or another is
// launched.
constexpr bool stops_worker(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::pause:
    case DecisionKind::unpark:
    case DecisionKind::exploit:
    case DecisionKind::end:
    case DecisionKind::fail:
    case DecisionKind::set_aside:
    case DecisionKind::kill:
      return true;
    case DecisionKind::make:
    case DecisionKind::launch:
    case DecisionKind::resume:
    case DecisionKind::take_over:
    case DecisionKind::save:
    case DecisionKind::retry:
    case DecisionKind::lose:
    case DecisionKind::take_up:
      return false;
  }
  return false;
}

}  // namespace cadre::tune
