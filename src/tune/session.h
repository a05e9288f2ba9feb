// The worker's side of a trial: what tune::report and its neighbours do inside a training function.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "cadre/checkpoint.h"
#include "cadre/tune/session.h"
#include "channel/worker_end.h"
#include "tune/assignment.h"

namespace cadre::tune {

// One worker's life. At most one exists in a process; Session::current() is what the public functions find.
class Session {
 public:
  Session(channel::WorkerEnd& controller, TrialAssignment assignment);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Session* current();

  void report(const Metrics& metrics, const Checkpoint* checkpoint);
  CheckpointDirectory make_checkpoint_directory();
  // A directory of Cadre's that `write` has filled.
  CheckpointDirectory fill(const CheckpointWriter& write);
  const std::optional<Checkpoint>& latest_checkpoint() const { return latest_checkpoint_; }
  const TrialAssignment& assignment() const { return assignment_; }

 private:
  using Clock = std::chrono::steady_clock;

  void require_own_thread() const;
  static void wait_for_space(const std::function<void()>& act);
  Metrics complete(const Metrics& metrics);
  CheckpointDirectory stage(const Checkpoint& checkpoint);

  channel::WorkerEnd& controller_;
  TrialAssignment assignment_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::string hostname_;
  std::optional<Checkpoint> latest_checkpoint_;

  std::int64_t step_;                // of the last report
  std::int64_t training_iteration_;  // counted from the checkpoint's
  std::int64_t iterations_since_restore_ = 0;
  double time_total_s_;
  double time_since_restore_s_ = 0;
  Clock::time_point iteration_began_ = Clock::now();
  std::int64_t directories_made_ = 0;
  bool told_to_stop_ = false;
};

}  // namespace cadre::tune
