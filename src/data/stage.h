// An operator with its own threads: takes tasks in order, runs several at a time, and returns their results in the
// order of the tasks. It stays within its memory limit by starting and continuing tasks only while there is room; the
// first unfinished task may always continue, so that there is no deadlock.
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

// A unit of work for a thread of the stage.
struct Task {
  std::int64_t bytes = 0;  // held while it runs
  std::function<void(const Emit& emit)> run;
};

// The source of a stage's tasks, called by one thread at a time.
class TaskSource {
 public:
  virtual ~TaskSource() = default;
  virtual std::optional<Task> next() = 0;  // empty: there are no more
  virtual void cancel() = 0;               // like BlockStream's
};

struct StageOptions {
  std::int64_t threads = 1;
  std::int64_t limit_bytes = 0;
};

class Stage final : public BlockStream {
 public:
  // Threads start with the first next().
  Stage(std::unique_ptr<TaskSource> tasks, const StageOptions& options, std::shared_ptr<OperatorProgress> progress);
  ~Stage() override;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::optional<Block> next() override;
  void cancel() override;

 private:
  // Blocks that a task has made and that were not taken yet.
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

  std::mutex asking_;  // held while getting a task
  std::mutex mutex_;   // guards the following members
  std::condition_variable changed_;
  std::map<std::int64_t, Output> outputs_;  // by the task's number
  std::int64_t started_ = 0;                // number of started tasks
  std::int64_t first_ = 0;                  // first task whose output is not completely taken
  std::int64_t held_bytes_ = 0;
  std::int64_t usual_bytes_ = 0;  // of the last task
  bool exhausted_ = false;
  bool cancelled_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cadre::data
