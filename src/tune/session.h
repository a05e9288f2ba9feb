// The worker's side of a trial: the implementation of tune::report and related functions, and of the loop of a
// trainable class.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "cadre/checkpoint.h"
#include "cadre/tune/session.h"
#include "channel/worker_end.h"
#include "tune/assignment.h"
#include "worker/checkpoint_maker.h"
#include "worker/parent_run.h"
#include "worker/reporting.h"

namespace cadre::tune {

// The session of one worker. At most one exists in a process; the public functions use Session::current().
class Session final : public worker::ParentRun {
 public:
  Session(channel::WorkerEnd& controller, TrialAssignment assignment);
  ~Session() override;

  static Session* current();

  // Sets the function that continues with a new assignment() when the controller asks for it. Default: none.
  void set_take_over(std::function<void()> take_over) { take_over_ = std::move(take_over); }

  void report(const Metrics& metrics);
  // Copies the checkpoint first unless it is a directory made by make_checkpoint_directory().
  void report(const Metrics& metrics, const Checkpoint& checkpoint);
  // Calls `write` if this result is to have a checkpoint: at once, or when the controller asks for it.
  void report(const Metrics& metrics, const CheckpointWriter& write);
  CheckpointDirectory make_checkpoint_directory() { return checkpoints_.make(); }
  const std::optional<Checkpoint>& latest_checkpoint() const { return latest_checkpoint_; }
  const TrialAssignment& assignment() const { return assignment_; }
  // Returns the number of reports acknowledged since the worker began or took over another assignment.
  std::int64_t reports() const { return progress_.iterations_since_restore; }
  // Returns the seed for random numbers of the next iteration.
  std::uint64_t seed() const;
  // Returns the training_iteration of the last result; at the beginning, of the checkpoint.
  std::int64_t training_iteration() const { return progress_.training_iteration; }

  // The ParentRun interface, for runs that the trainable starts.
  std::filesystem::path directory() const override { return assignment_.trial_directory; }
  std::filesystem::path experiment() const override { return directory().parent_path(); }
  std::optional<Checkpoint> checkpoint() const override { return latest_checkpoint_; }
  bool forward(const Metrics& metrics, const std::filesystem::path& checkpoint) override;

 private:
  using Clock = std::chrono::steady_clock;

  // Sums over the reports so far; a report that is refused adds nothing.
  struct Progress {
    std::int64_t step = 0;                // of the last report
    std::int64_t training_iteration = 0;  // continues from the checkpoint's
    std::int64_t iterations_since_restore = 0;
    double time_total_s = 0;
    double time_since_restore_s = 0;
    Metrics totals = {};  // counters that the function reports, such as timesteps_total
  };

  static Progress progress_at(const TrialAssignment& assignment);
  // Throws if a report cannot be sent, before anything is done for it.
  void check_report(const Metrics& metrics) const;
  bool is_to_be_saved(const Metrics& metrics) const;
  void send(const Metrics& metrics, CheckpointDirectory* checkpoint, const CheckpointWriter* offer = nullptr);
  channel::Answer exchange(channel::Report& report, CheckpointDirectory* checkpoint);
  void take_over(TrialAssignment assignment);
  void take(const ChangedResources& changed);
  Metrics complete(const Metrics& metrics, Progress& progress) const;
  std::filesystem::path path_of_checkpoint(std::int64_t number) const;

  channel::WorkerEnd& controller_;
  TrialAssignment assignment_;
  worker::Reporting reporting_{"tune::report"};
  std::function<void()> take_over_ = {};
  worker::CheckpointMaker checkpoints_;
  std::string hostname_;
  std::optional<Checkpoint> latest_checkpoint_;

  Progress progress_;
  Clock::time_point iteration_began_ = Clock::now();
  bool told_to_stop_ = false;
};

// Runs `body` in a session of the trial that the payload describes; called by entries (worker/entries.h).
void run_trial(channel::WorkerEnd& controller, const Value& payload, const std::function<void(Session&)>& body);

}  // namespace cadre::tune
