// A plan in execution: its operators as stages on top of each other.
#pragma once

#include <arrow/memory_pool.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/plan.h"
#include "data/progress.h"
#include "data/source.h"
#include "data/stream.h"

namespace cadre::data {

class WorkerPool;

// Chooses the pieces that an execution reads from all pieces of its sources. The result has known numbers of rows.
using ChoosePieces = std::function<std::vector<Piece>(std::vector<Piece> pieces)>;

class Execution {
 public:
  // Checks files and functions, and throws if there is a fault. Starts nothing. `batch_rows`: the consumer joins blocks
  // to batches of so many rows; if it is known, rows of a fixed size are made next to each other. `context`: for the
  // functions.
  explicit Execution(const PlanContent& plan, ChoosePieces choose = {}, std::optional<std::int64_t> batch_rows = {},
                     const CallContext& context = {});
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Returns the next block, which has rows; empty at the end. Called by one thread at a time.
  std::optional<Block> next();
  // Makes next() throw Cancelled soon. Called from another thread.
  void cancel();

  // Returns the result's schema if it is known before the first block; null: unknown.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  ExecutionStats stats() const { return progress_.stats(); }
  // Outlives every execution: consumers may keep blocks, and threads of Arrow may free memory later.
  static arrow::MemoryPool* pool() { return arrow::default_memory_pool(); }

 private:
  class Builder;

  // Returns the workers for functions; null: functions run in threads. Throws EngineError if processes are required
  // and cannot be started.
  static std::shared_ptr<WorkerPool> make_pool(const PlanContent& plan);

  ExecutionProgress progress_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<BlockStream> stream_;  // last: its threads use the rest
};

// Returns the pieces that ranks share: those of all sources of a plan, in order. Throws InvalidArgument if the plan's
// rows cannot be divided by dividing its sources.
Source shared_source(const NodePtr& node);
// Returns true if every row that is read is also a row of the result.
bool keeps_rows(const NodePtr& node);

// Returns the number of rows of a plan that only selects rows of its sources; reads their metadata once. Throws if the
// plan has a fault. Empty: use known_count().
std::optional<std::int64_t> stored_count(const NodePtr& node);
// Returns the number of rows of a plan without faults if its sources know it; empty: the plan must run.
std::optional<std::int64_t> known_count(const NodePtr& node);

// Return the options or their defaults.
std::int64_t memory_limit(const ExecutionOptions& options);
std::int64_t thread_count(const ExecutionOptions& options);

}  // namespace cadre::data
