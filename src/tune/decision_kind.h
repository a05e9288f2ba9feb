// The core's decisions about a trial, and their names in the store.
#pragma once

#include <string_view>

#include "cadre/detail/enum_names.h"

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
  resources,  // the trial goes on with other resources
  restart,    // the worker is told to stop; another one continues with the trial's new resources, or on another node
  retry,      // the trial failed and will be tried again
  end,        // the trial has terminated
  stop,       // the trial is ended early by the scheduler
  fail,       // the trial has failed for good
  interrupt,  // the worker is told to stop because the experiment is interrupted
  kill,       // the worker is killed
  lose,       // the checkpoint that the trial would have continued from is lost
  resume_errored,  // the failed trial runs again
  extend,          // the trial that its stop criteria had ended goes on under others
  stop_function,   // a stopper whose answers are recorded, such as a stop function, ends the trial, or throws
  stop_all,        // a stopper ends all trials after a result or the end of the trial
};

constexpr std::string_view to_string(DecisionKind kind) { return cadre::detail::enum_name(kind); }

// Returns true if reports of the trial's present worker no longer count, until the worker resumes or another is
// launched.
constexpr bool stops_worker(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::pause:
    case DecisionKind::unpark:
    case DecisionKind::exploit:
    case DecisionKind::restart:
    case DecisionKind::end:
    case DecisionKind::stop:
    case DecisionKind::fail:
    case DecisionKind::interrupt:
    case DecisionKind::kill:
      return true;
    case DecisionKind::make:
    case DecisionKind::launch:
    case DecisionKind::resume:
    case DecisionKind::take_over:
    case DecisionKind::save:
    case DecisionKind::resources:
    case DecisionKind::retry:
    case DecisionKind::lose:
    case DecisionKind::resume_errored:
    case DecisionKind::extend:
    case DecisionKind::stop_function:
    case DecisionKind::stop_all:
      return false;
  }
  return false;
}

}  // namespace cadre::tune
