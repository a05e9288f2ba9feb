// An operator that works in threads of its own: takes tasks in order, does several at a time, and gives what they make
// in the tasks' order. It holds as many bytes as it is allowed to, and begins and goes on with tasks only when there is
// room; the first task that is not finished always goes on, so that nothing waits for ever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "data/progress.h"
#include "data/source.h"
#include "data/stream.h"

namespace cadre::data {

// Something that a thread of the stage does.
struct Task {
  std::int64_t bytes = 0;  // that it holds while it runs
  std::function<void(const Emit& emit)> run;
};

// Where a stage's tasks come from. Threads ask one at a time.
class TaskSource {
 public:
  virtual ~TaskSource() = default;
  virtual std::optional<Task> next() = 0;  // empty: there are no more
  virtual void cancel() = 0;               // as BlockStream's
};

struct StageOptions {
  std::int64_t threads = 1;
  std::int64_t limit_bytes = 0;
};

class Stage final : public BlockStream {
 public:
  // Threads begin with the first next().
  Stage(std::unique_ptr<TaskSource> tasks, const StageOptions& options, std::shared_ptr<OperatorProgress> progress);
  ~Stage() override;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::optional<Block> next() override;
  void cancel() override;

 private:
  // What a task has made and nobody has taken.
  struct Output {
    std::deque<Block> blocks;
    bool finished = false;
    std::exception_ptr error;
  };
  using Lock = std::unique_lock<std::mutex>;

  void work();
  bool do_next_task();
  void run(std::int64_t number, const Task& task);
  void emit(std::int64_t number, Block block);
  void finish(std::int64_t number, std::exception_ptr error);
  void hold(std::int64_t bytes);

  std::unique_ptr<TaskSource> tasks_;
  const StageOptions options_;
  const std::shared_ptr<OperatorProgress> progress_;

  std::mutex asking_;  // for tasks
  std::mutex mutex_;   // of what follows
  std::condition_variable changed_;
  std::map<std::int64_t, Output> outputs_;  // by the task's number
  std::int64_t started_ = 0;                // tasks
  std::int64_t first_ = 0;                  // task whose output is not taken altogether
  std::int64_t held_bytes_ = 0;
  std::int64_t usual_bytes_ = 0;  // of a task
  bool exhausted_ = false;
  bool cancelled_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cadre::data
