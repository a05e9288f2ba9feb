// The worker processes of an execution. One thread runs the engine; other threads give tasks to workers and wait for
// the results.
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
#include "resources/resource_ledger.h"

namespace cadre::data {

class WorkerPool {
 public:
  // `uses_gpus`: no other run of this process may have workers, because GPUs are not shared between runs. Throws
  // EngineError if one has then, and if this process cannot start workers.
  explicit WorkerPool(bool uses_gpus);
  // Ends all workers; idle ones have 10 s to exit.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  const Resources& resources() const { return resources_; }

  // The result of a task.
  struct Answer {
    Value content = {};
    // Memory of its blocks, as returned by map_shared(). Empty: lost with the worker.
    std::optional<std::shared_ptr<const base::MemoryMap>> memory = {};
  };
  // Ends of a worker: an exception, or the death of its process. `was_ready`: it had constructed its object.
  // `was_begun`: the task had begun and may be the cause.
  struct Failure {
    std::string message = {};
    bool was_ready = false;
  };
  struct Death {
    std::string description = {};  // with its last output to stderr
    bool was_ready = false;
    bool was_begun = false;
  };
  struct Cancellation {};
  using Outcome = std::variant<Answer, Failure, Death, Cancellation>;

  // Returns CUDA_VISIBLE_DEVICES for one more worker with these resources, which stay allocated until the pool ends.
  std::string take_gpus(const Resources& resources);
  engine::WorkerId start(const Value& payload, const Resources& resources);
  // Gives a task to a worker, which runs it after its earlier tasks. Returns the task's number, from 1.
  std::int64_t give(engine::WorkerId worker, const Value& task);
  // Waits for the outcome of a task. May be called once for each task.
  Outcome wait_for(engine::WorkerId worker, std::int64_t task);
  // Makes calls that wait for this worker return Cancellation.
  void cancel(engine::WorkerId worker);
  // Ends a worker. An idle worker destroys its object and exits; a busy one is killed.
  void end(engine::WorkerId worker);

  // Returns the pool's folder for files of workers. It is removed with the pool; folders of killed pools are removed
  // by the next pool.
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  struct Worker {
    std::int64_t given = 0;          // number of tasks
    std::int64_t asked = 0;          // number of requests for a task; each later one means that a task is done
    channel::CallNumber call = 0;    // of the last request
    std::deque<Value> waiting = {};  // tasks not yet requested
    std::map<std::int64_t, Answer> answers = {};  // by task; not yet taken
    std::optional<std::variant<Failure, Death>> end = {};
    bool cancelled = false;
    bool leaves = false;
    bool has_exited = false;
  };
  using Command = std::function<void(engine::Engine& engine)>;

  void work(bool uses_gpus);
  void post(Command command);
  void handle(engine::Event& event);
  static Answer to_answer(Value content);
  void handle(engine::WorkerId worker, channel::Request& request);
  void handle_end(engine::WorkerId worker, std::variant<Failure, Death> end);
  bool somebody_leaves() const;
  std::filesystem::path folder_of(engine::WorkerId worker) const;

  base::TemporaryFolder folder_;
  Resources resources_;
  std::mutex mutex_;  // guards the following members
  std::condition_variable changed_;
  std::unique_ptr<engine::Engine> engine_;  // used only by the thread, except wake()
  std::exception_ptr engine_error_;
  std::vector<Command> commands_;
  std::map<engine::WorkerId, Worker> workers_;  // including those that have ended
  std::optional<resources::ResourceLedger> ledger_;
  engine::WorkerId last_worker_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the other members
};

// Returns the number of workers of each operator with a function. Throws InvalidArgument, with the function, if the
// resources do not suffice for all operators together.
std::map<const Node*, std::int64_t> plan_workers(const std::vector<const Node*>& calls, const Resources& available,
                                                 std::int64_t threads);

// Makes callers that run in processes of the pool.
std::unique_ptr<Callers> make_process_callers(const Node& node, const CallContext& context, std::int64_t max_retries,
                                              std::shared_ptr<WorkerPool> pool);

}  // namespace cadre::data
