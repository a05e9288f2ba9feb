// The worker processes of an execution. A thread of its own has the engine; others give workers tasks and wait for what
// comes of them.
#pragma once

#include <condition_variable>
#include <cstdint>
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

#include "data/caller.h"
#include "data/plan.h"
#include "engine/engine.h"
#include "run/resource_ledger.h"

namespace cadre::data {

class WorkerPool {
 public:
  // Throws EngineError where this process cannot start workers, or another run does.
  WorkerPool();
  // Ends all workers.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  const Resources& resources() const { return resources_; }

  // A worker's last words, or what it asks for next: its answer to the task before.
  struct Answer {
    Value content = {};
  };
  struct Failure {
    std::string message = {};
  };
  struct Death {
    std::string description = {};  // with the end of what it wrote to stderr
  };
  struct Cancellation {};
  using Outcome = std::variant<Answer, Failure, Death, Cancellation>;

  // CUDA_VISIBLE_DEVICES of one more worker with these resources, until the pool ends.
  std::string take_gpus(const Resources& resources);
  engine::WorkerId start(const Value& payload, const Resources& resources);
  // Gives a worker that has asked what it asked for. The next outcome belongs to that.
  void give(engine::WorkerId worker, const Value& task);
  // Waits for the next outcome.
  Outcome wait_for(engine::WorkerId worker);
  // Whoever waits for it is let go.
  void cancel(engine::WorkerId worker);
  void end(engine::WorkerId worker);

  // A folder of this pool, for what workers need. It goes with the pool.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Worker {
    std::optional<Outcome> outcome;
    bool cancelled = false;
  };
  using Command = std::function<void(engine::Engine& engine)>;

  void work();
  void post(Command command);
  void take(engine::Event& event);
  std::filesystem::path folder_of(engine::WorkerId worker) const;

  std::filesystem::path folder_;
  Resources resources_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::unique_ptr<engine::Engine> engine_;  // used by the thread only, but for wake()
  std::exception_ptr engine_error_;
  std::vector<Command> commands_;
  std::map<engine::WorkerId, Worker> workers_;
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
