#include "train/run_status.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>

namespace cadre::train {

bool may_become(RunStatus from, RunStatus to) {
  using enum RunStatus;
  const auto is_one_of = [from](std::initializer_list<RunStatus> statuses) {
    return std::ranges::find(statuses, from) != statuses.end();
  };
  switch (to) {
    case initializing:
      return true;
    case starved:
      return is_one_of({initializing, resizing, failing, waiting});
    case scheduling:
      return is_one_of({initializing, starved, resizing, failing, waiting});
    case running:
      return from == scheduling;
    case stopping:
    case resizing:
      return is_one_of({scheduling, running});
    case failing:
      return is_one_of({scheduling, running, stopping, shutting_down});
    case waiting:
    case failed:
      return from == failing;
    case shutting_down:
      return is_one_of({scheduling, running});
    case validating:
      return is_one_of({scheduling, running, shutting_down});
    case finished:
      return from == validating;
    case aborted:
      return !is_one_of({validating, finished, failed});
  }
  return false;
}

std::string to_string(RunStatus status) {
  switch (status) {
    case RunStatus::initializing:
      return "INITIALIZING";
    case RunStatus::starved:
    case RunStatus::scheduling:
      return "SCHEDULING";
    case RunStatus::running:
    case RunStatus::stopping:
      return "RUNNING";
    case RunStatus::resizing:
      return "RESIZING";
    case RunStatus::failing:
    case RunStatus::waiting:
      return "RESTARTING";
    case RunStatus::shutting_down:
    case RunStatus::validating:
      return "SHUTTING_DOWN";
    case RunStatus::finished:
      return "FINISHED";
    case RunStatus::failed:
      return "ERRORED";
    case RunStatus::aborted:
      return "ABORTED";
  }
  throw std::logic_error("a status without a name");
}

}  // namespace cadre::train
