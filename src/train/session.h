// A rank's worker: what the functions of cadre/train.h do in it. One for each process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cadre/checkpoint.h"
#include "cadre/train.h"
#include "channel/worker_end.h"
#include "run/key_value_store.h"
#include "train/assignment.h"

namespace cadre::train {

class Session {
 public:
  Session(channel::WorkerEnd& controller, RankAssignment assignment);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // That of this process; nullptr outside a worker.
  static Session* current();

  const RankAssignment& assignment() const { return assignment_; }
  const std::optional<Checkpoint>& latest_checkpoint() const { return latest_checkpoint_; }
  const std::shared_ptr<run::KeyValueStore>& store() const { return store_; }

  void report(const Metrics& metrics, std::optional<CheckpointDirectory> checkpoint);
  void report(const Metrics& metrics, const Checkpoint& checkpoint);
  CheckpointDirectory fill(const CheckpointWriter& write);
  CheckpointDirectory make_checkpoint_directory();

  void barrier();
  Value broadcast_from_rank_zero(const Value& value);

 private:
  void require_own_thread() const;
  void check_report(const Metrics& metrics) const;
  void send(const Metrics& metrics, CheckpointDirectory* checkpoint);
  static void wait_for_space(const std::function<void()>& act);
  std::string next_collective(const char* name);  // its key
  // Returns when all ranks have come. Throws Error that names those that do not.
  void meet(const std::string& key, const char* name);
  void set_for_collective(const std::string& key, const std::string& value);

  channel::WorkerEnd& controller_;
  std::mutex connection_;  // one call at a time, of this session or of the store, in any thread
  const RankAssignment assignment_;
  std::shared_ptr<run::KeyValueStore> store_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::optional<Checkpoint> latest_checkpoint_;
  std::int64_t step_;
  std::int64_t directories_made_ = 0;
  std::int64_t collectives_ = 0;
  std::vector<std::string> own_keys_ = {};       // that this rank has set for the present collective
  std::vector<std::string> previous_keys_ = {};  // and for the one before, which others may still wait for
  bool told_to_stop_ = false;
};

}  // namespace cadre::train
