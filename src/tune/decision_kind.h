// What the core decides about a trial, and the names of these decisions in the store.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace cadre::tune {

enum class DecisionKind {
  make,       // it is in the population from now on, with this config
  launch,     // a worker is started
  resume,     // its worker, which was parked, goes on
  take_over,  // its worker, which waited, goes on with the trial's new checkpoint and config
  save,       // its worker, which may have been parked, is asked for a checkpoint of the result it has reported
  pause,      // it waits for its turn; its worker is parked or, where that may not be, told to stop
  unpark,     // its parked worker is ended
  exploit,    // it goes on with another one's checkpoint and a new config
  retry,      // it has failed and is tried again
  end,        // it has terminated
  fail,       // it has failed for good
  set_aside,  // its worker is told to stop because the experiment is interrupted
  kill,       // its worker is ended by force
  lose,       // what it would have continued from is gone
  take_up,    // it had failed, and runs again
};

inline constexpr std::array<std::string_view, 15> kDecisionNames = {
    "make",  "launch", "resume", "take_over", "save", "pause", "unpark", "exploit",
    "retry", "end",    "fail",   "set_aside", "kill", "lose",  "take_up"};

constexpr std::string_view to_string(DecisionKind kind) { return kDecisionNames[static_cast<std::size_t>(kind)]; }

// Empty for a name that no version of Cadre has written.
constexpr std::optional<DecisionKind> decision_kind_of(std::string_view name) {
  for (std::size_t i = 0; i < kDecisionNames.size(); ++i) {
    if (kDecisionNames[i] == name) return static_cast<DecisionKind>(i);
  }
  return std::nullopt;
}

// Whether reports of the worker that the trial has come too late to count, until it goes on or another one is launched.
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
