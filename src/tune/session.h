// The worker's side of a trial: what tune::report and its neighbours do inside a training function, and what drives a
// trainable class.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "cadre/checkpoint.h"
#include "cadre/tune/session.h"
#include "channel/worker_end.h"
#include "run/parent_run.h"
#include "tune/assignment.h"

namespace cadre::tune {

// One worker's life. At most one exists in a process; Session::current() is what the public functions find.
class Session final : public run::ParentRun {
 public:
  Session(channel::WorkerEnd& controller, TrialAssignment assignment);
  ~Session() override;

  static Session* current();

  // What the controller may ask for between two results; a training function can do neither.
  struct Abilities {
    CheckpointWriter save = {};            // writes a checkpoint of the last result
    std::function<void()> take_over = {};  // goes on as assignment() says now
  };
  void set_abilities(Abilities abilities) { abilities_ = std::move(abilities); }

  void report(const Metrics& metrics, std::optional<CheckpointDirectory> checkpoint = std::nullopt);
  // A directory of the user's is copied first.
  void report(const Metrics& metrics, const Checkpoint& checkpoint);
  CheckpointDirectory make_checkpoint_directory();
  // A directory of Cadre's that `write` has filled.
  CheckpointDirectory fill(const CheckpointWriter& write);
  const std::optional<Checkpoint>& latest_checkpoint() const { return latest_checkpoint_; }
  const TrialAssignment& assignment() const { return assignment_; }
  // That were acknowledged since the worker began, or took another assignment over.
  std::int64_t reports() const { return progress_.iterations_since_restore; }
  // Of the last result, that of the checkpoint at the beginning.
  std::int64_t training_iteration() const { return progress_.training_iteration; }

  // Of runs that the trainable starts.
  std::filesystem::path directory() const override { return assignment_.trial_directory; }
  std::filesystem::path experiment() const override { return directory().parent_path(); }
  std::optional<Checkpoint> checkpoint() const override { return latest_checkpoint_; }
  bool forward(const Metrics& metrics, const std::filesystem::path& checkpoint) override;

 private:
  using Clock = std::chrono::steady_clock;

  // What the reports so far add up to; a report that is refused adds nothing.
  struct Progress {
    std::int64_t step = 0;                // of the last report
    std::int64_t training_iteration = 0;  // counted from the checkpoint's
    std::int64_t iterations_since_restore = 0;
    double time_total_s = 0;
    double time_since_restore_s = 0;
    Metrics totals = {};  // of what the function counts itself, such as timesteps_total
  };

  static Progress progress_at(const TrialAssignment& assignment);
  void require_own_thread() const;
  // What is in the way of a report, before anything is done for it.
  void check_report(const Metrics& metrics) const;
  void send(const Metrics& metrics, CheckpointDirectory* checkpoint);
  channel::Answer exchange(channel::Report& report, CheckpointDirectory* checkpoint);
  void take_over(TrialAssignment assignment);
  Metrics complete(const Metrics& metrics, Progress& progress) const;
  CheckpointDirectory copy_of(const Checkpoint& checkpoint);

  channel::WorkerEnd& controller_;
  TrialAssignment assignment_;
  Abilities abilities_ = {};
  std::thread::id thread_ = std::this_thread::get_id();
  std::string hostname_;
  std::optional<Checkpoint> latest_checkpoint_;

  Progress progress_;
  Clock::time_point iteration_began_ = Clock::now();
  std::int64_t directories_made_ = 0;
  bool told_to_stop_ = false;
};

// What an entry of run/entries.h does: a session of the trial that the payload describes, while `body` runs.
void run_trial(channel::WorkerEnd& controller, const Value& payload, const std::function<void(Session&)>& body);

}  // namespace cadre::tune
