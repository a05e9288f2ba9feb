/// \file
/// Retries after failures.
#pragma once

#include <cstdint>

namespace cadre {

/// Retries of a trial that fails. A failure is an exception that leaves the training function, a process that ends by
/// itself or by a signal, a limit that is exceeded, or a worker that cannot be started. A retry continues from the
/// trial's latest checkpoint, or from the beginning if there is none. From the third retry in a row without a new
/// result, the trial waits before the retry: 1 s, then twice as long each time, at most 60 s. Other trials run
/// meanwhile.
struct FailureConfig {
  std::int64_t max_failures = 0;  ///< retries of each trial, 0 or more; -1: unlimited
  /// Number of failures in a row, 0 or more, that are not counted if a worker was started from a checkpoint and failed
  /// before its first report: a checkpoint that cannot be loaded now can perhaps be loaded later.
  std::int64_t max_restore_failures = 0;
  /// Retries of each trial whose worker was lost with its node, for example because the node was preempted, 0 or more;
  /// -1: unlimited. They are counted apart from failures, and wait as these do. On one machine there are none.
  std::int64_t max_preemption_failures = -1;
  bool fail_fast = false;  ///< the first trial that fails for good stops all others; requires max_failures 0
};

}  // namespace cadre
