// A rank's session: implements the functions of cadre/train.h in its worker. One per process.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "cadre/checkpoint.h"
#include "cadre/train.h"
#include "channel/worker_end.h"
#include "train/assignment.h"
#include "train/background_uploads.h"
#include "train/checkpoint_part.h"
#include "train/kept_states.h"
#include "train/notices.h"
#include "worker/checkpoint_maker.h"
#include "worker/key_value_store.h"
#include "worker/reporting.h"

namespace cadre::train {

// Returns the config structs of training functions by the name of the function. Functions that take a Config have
// none.
base::Registry<cadre::detail::ConfigStruct>& loop_structs();

// Returns the entry of a worker (worker/entries.h) that runs a training function.
std::string entry_of(const Loop& loop);

class Session {
 public:
  Session(channel::WorkerEnd& controller, RankAssignment assignment);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the session of this process; nullptr outside a worker.
  static Session* current();

  const RankAssignment& assignment() const { return assignment_; }
  // Throws StorageError if it is to be brought to this node, and cannot.
  std::optional<Checkpoint> latest_checkpoint() const;
  const std::shared_ptr<worker::KeyValueStore>& store() const { return store_; }
  KeptStates& kept_states() { return kept_states_; }

  void report(const Metrics& metrics, const ReportOptions& options);
  void report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options);
  void report(const Metrics& metrics, const CheckpointWriter& write, const ReportOptions& options);
  CheckpointDirectory make_checkpoint_directory() { return checkpoints_.make(); }
  std::vector<ReportedCheckpoint> get_all_reported_checkpoints(CheckpointConsistency consistency,
                                                               std::optional<Seconds> timeout);
  // Tells the controller that the group is formed.
  void say_that_it_begins();
  // Blocks until all background uploads have finished.
  void finish_uploads() { uploads_.finish(); }

  void barrier();
  Value broadcast_from_rank_zero(const Value& value);

 private:
  void check_report(const Metrics& metrics, const ReportOptions& options) const;
  void check_validation(const ReportOptions& options) const;
  static std::optional<WantedValidation> wanted_validation(const ReportOptions& options);
  static PartReport part_report(CheckpointPart part, std::string directory, const ReportOptions& options);
  void report_ours(const Metrics& metrics, CheckpointDirectory& checkpoint, const ReportOptions& options,
                   const std::filesystem::path& source = {});
  void report_theirs(const Metrics& metrics, const std::filesystem::path& checkpoint, const ReportOptions& options);
  void report_copied_here(const Metrics& metrics, const std::filesystem::path& source, bool remove,
                          const ReportOptions& options);
  void finish_later(std::function<void(PromiseEnd&)> finish, std::function<void()> has_succeeded = [] {});
  void report_in_place(const Metrics& metrics, const std::filesystem::path& checkpoint, const ReportOptions& options);
  void report_by_function(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options);
  void send(const Metrics& metrics, PartReport said, const std::filesystem::path& source = {},
            CheckpointDirectory* ours = nullptr);
  void bring(const std::filesystem::path& checkpoint) const;
  std::filesystem::path path_of_checkpoint(std::int64_t number) const;
  std::optional<CheckpointDirectory> take_over(const std::filesystem::path& source);
  bool deletes(const std::filesystem::path& checkpoint, const ReportOptions& options) const;
  std::string next_collective(const char* name);  // returns its key
  // Blocks until all ranks have arrived. Throws Error with the missing ranks after the timeout.
  void meet(const std::string& key, const char* name);
  void set_for_collective(const std::string& key, const std::string& value);

  channel::WorkerEnd& controller_;
  const RankAssignment assignment_;
  const worker::Reporting reporting_{"train::report"};
  std::shared_ptr<worker::KeyValueStore> store_;
  worker::CheckpointMaker checkpoints_;
  std::optional<Checkpoint> latest_checkpoint_;
  std::atomic<std::int64_t> step_;  // of the last report; other threads ask with it
  BackgroundUploads uploads_;
  KeptStates kept_states_;
  std::int64_t collectives_ = 0;
  std::vector<std::string> own_keys_ = {};       // set by this rank for the present collective
  std::vector<std::string> previous_keys_ = {};  // of the previous collective; other ranks may still read them
  bool told_to_stop_ = false;
};

}  // namespace cadre::train
