// The worker processes of an execution. A thread of its own has the engine; others give workers tasks and wait for what
// comes of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/memory_map.h"
#include "base/temporary_folder.h"
#include "data/caller.h"
#include "data/plan.h"
#include "engine/engine.h"
#include "run/resource_ledger.h"

namespace cadre::data {

class WorkerPool {
 public:
  // Throws EngineError where this process cannot start workers, or another run does.
  WorkerPool();
  // Ends all workers; those that leave have 10 s for it.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  const Resources& resources() const { return resources_; }

  // What comes of a task.
  struct Answer {
    Value content = {};
    // The memory of its blocks, as map_shared() returns it. Empty: it is gone with the worker.
    std::optional<std::shared_ptr<const base::MemoryMap>> memory = {};
  };
  // The worker has ended. Who has not been ready has not made its object; a task that was not begun is not to blame.
  struct Failure {
    std::string message = {};
    bool was_ready = false;
  };
  struct Death {
    std::string description = {};  // with the end of what it wrote to stderr
    bool was_ready = false;
    bool was_begun = false;
  };
  struct Cancellation {};
  using Outcome = std::variant<Answer, Failure, Death, Cancellation>;

  // CUDA_VISIBLE_DEVICES of one more worker with these resources, until the pool ends.
  std::string take_gpus(const Resources& resources);
  engine::WorkerId start(const Value& payload, const Resources& resources);
  // Gives a worker a task, which it does when it is done with those that it got before. Returns its number, from 1.
  std::int64_t give(engine::WorkerId worker, const Value& task);
  // Waits for what comes of a task, once for each.
  Outcome wait_for(engine::WorkerId worker, std::int64_t task);
  // Whoever waits for it is let go.
  void cancel(engine::WorkerId worker);
  // One that has nothing to do leaves: it destroys its object first. Others are killed.
  void end(engine::WorkerId worker);

  // A folder of this pool, for what workers need. It goes with the pool, and what a pool has left that was killed goes
  // with the next one.
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  struct Worker {
    std::int64_t given = 0;          // tasks
    std::int64_t asked = 0;          // how often it has asked for one: each time it is done with the one before
    std::deque<Value> waiting = {};  // tasks that it has not asked for yet
    std::map<std::int64_t, Answer> answers = {};  // by task: those that nobody has taken
    std::optional<std::variant<Failure, Death>> end = {};
    bool cancelled = false;
    bool leaves = false;
    bool has_exited = false;
  };
  using Command = std::function<void(engine::Engine& engine)>;

  void work();
  void post(Command command);
  void take(engine::Event& event);
  static Answer to_answer(Value content);
  void take(engine::WorkerId worker, channel::Request& request);
  void take_end(engine::WorkerId worker, std::variant<Failure, Death> end);
  bool somebody_leaves() const;
  std::filesystem::path folder_of(engine::WorkerId worker) const;

  base::TemporaryFolder folder_;
  Resources resources_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::unique_ptr<engine::Engine> engine_;  // used by the thread only, but for wake()
  std::exception_ptr engine_error_;
  std::vector<Command> commands_;
  std::map<engine::WorkerId, Worker> workers_;  // all that there have been
  std::optional<run::ResourceLedger> ledger_;
  engine::WorkerId last_worker_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the rest
};

// How many workers each operator with a function has, and whether there are resources for all of them together. Throws
// InvalidArgument that names the function for which there are not.
std::map<const Node*, std::int64_t> plan_workers(const std::vector<const Node*>& calls, const Resources& available,
                                                 std::int64_t threads);

// In processes of the pool.
std::unique_ptr<Callers> make_process_callers(const Node& node, std::int64_t max_retries,
                                              std::shared_ptr<WorkerPool> pool);

}  // namespace cadre::data
