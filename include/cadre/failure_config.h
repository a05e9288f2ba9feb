/// \file
/// What a failure leads to.
#pragma once

#include <cstdint>

namespace cadre {

/// How often a trial that fails is tried again. A failure is an exception that leaves the training function, a process
/// that ends by itself or by a signal, a limit that is exceeded, or a worker that cannot be started. A retry continues
/// from the trial's latest checkpoint, or from the beginning where there is none. From the third
/// retry in a row without a new result on the trial waits before it: 1 s, then twice as long each time, at most 60 s.
/// Others run meanwhile.
struct FailureConfig {
  std::int64_t max_failures = 0;  ///< retries of each trial, 0 or more; -1: without limit
  /// Failures of a worker that was started from a checkpoint and has not reported yet do not count as long as there are
  /// at most so many of them one after the other, 0 or more: what cannot be loaded now can perhaps be loaded later.
  std::int64_t max_restore_failures = 0;
  bool fail_fast = false;  ///< the first trial that fails for good stops all others; needs max_failures 0
};

}  // namespace cadre
