// The status of a training run.
#pragma once

#include <string>

namespace cadre::train {

enum class RunStatus {
  initializing,   // a controller has started
  starved,        // the resources hold too few workers
  scheduling,     // a group is being started: its function has not begun in any rank
  running,        // the function has begun in some rank
  stopping,       // the run is interrupted, and the group was told to stop
  resizing,       // the group was told to stop, and one of another size follows
  failing,        // a rank of the group has failed, and the others are being ended
  waiting,        // before the next attempt
  shutting_down,  // every rank's function has returned; checkpoints are still pending
  validating,     // all checkpoints are committed; validations are still pending
  finished,       // everything is done
  failed,         // failed more often than FailureConfig allows
  aborted,        // interrupted; another controller can continue
};

// Returns true if a run can change from one status to the other.
bool may_become(RunStatus from, RunStatus to);

// Returns Ray Train's name of the status: "INITIALIZING", "SCHEDULING", ... starved is SCHEDULING too, stopping is
// RUNNING, failing and waiting are RESTARTING, validating is SHUTTING_DOWN, failed is ERRORED.
std::string to_string(RunStatus status);

}  // namespace cadre::train
