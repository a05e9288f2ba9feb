// The callbacks of a training run: passes them what happens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cadre/train_callback.h"
#include "control/guarded_callbacks.h"

namespace cadre::train {

class CallbackList final : public control::GuardedCallbacks<Callback> {
 public:
  explicit CallbackList(const Callbacks& callbacks) : GuardedCallbacks(callbacks) {}

  void on_start(const RunContext& run);
  // `metrics`: by rank, at least those of rank 0.
  void after_reports(const RunContext& run, const std::vector<Metrics>& metrics,
                     const std::optional<Checkpoint>& checkpoint);
  void on_checkpoint(const RunContext& run, const Checkpoint& checkpoint);
  void after_validation(const RunContext& run, const ReportedCheckpoint& checkpoint);
  void after_exception(const RunContext& run, const std::map<std::int64_t, std::string>& failures);
  void on_end(const RunContext& run);
};

}  // namespace cadre::train
