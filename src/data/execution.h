// A plan that runs: its operators as stages over each other.
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

// What an execution reads instead of all pieces of its sources; they know their numbers of rows then.
using ChoosePieces = std::function<std::vector<Piece>(std::vector<Piece> pieces)>;

class Execution {
 public:
  // Looks at files and functions: throws what is wrong with them. Nothing runs yet.
  explicit Execution(const PlanContent& plan, ChoosePieces choose = {});
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // The next block, which has rows; empty at the end. One thread at a time.
  std::optional<Block> next();
  // From another thread: next() ends soon, with Cancelled.
  void cancel();

  // Of what comes, where it is known before anything has come; null: not.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  ExecutionStats stats() const { return progress_.stats(); }
  // Outlives every execution: whoever has a block keeps its memory, and threads of Arrow may free some later.
  static arrow::MemoryPool* pool() { return arrow::default_memory_pool(); }

 private:
  class Builder;

  // Where functions run: workers, or null for threads; throws EngineError where there must be some and cannot.
  static std::shared_ptr<WorkerPool> make_pool(const PlanContent& plan);

  ExecutionProgress progress_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<BlockStream> stream_;  // last: its threads use the rest
};

// The pieces of a plan that are shared between ranks: all of its sources, in order. Throws InvalidArgument for a plan
// whose rows cannot be told apart by its sources alone.
Source shared_source(const NodePtr& node);
// Whether every row that is read is one that comes out.
bool keeps_rows(const NodePtr& node);

// How many rows a plan has that is nothing more than some of the rows of its sources, which are looked at once. Throws
// what is wrong with it. Empty: see known_count().
std::optional<std::int64_t> stored_count(const NodePtr& node);
// How many rows a plan has, about which nothing is wrong, where its sources say that; empty: it must run.
std::optional<std::int64_t> known_count(const NodePtr& node);

// The options with their defaults.
std::int64_t memory_limit(const ExecutionOptions& options);
std::int64_t thread_count(const ExecutionOptions& options);

}  // namespace cadre::data
