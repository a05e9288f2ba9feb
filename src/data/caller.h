// Callers of the program's functions with batches: threads of this process, or worker processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cadre/data/functions.h"
#include "data/plan.h"
#include "data/source.h"

namespace cadre::data {

// One worker.
class Caller {
 public:
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Caller() = default;
  // Reserves the next place in the order of the worker's tasks, for exactly one call(), which must follow.
  virtual std::int64_t take_turn() { return 0; }
  // Calls the function once for each batch, in order, and returns the time spent in it. Throws DatasetError with the
  // error of the function or of the constructor.
  virtual Duration call(std::int64_t turn, std::span<const Block> batches, const Emit& emit) = 0;
  // Makes a waiting call() end soon. Called from another thread.
  virtual void cancel() = 0;
};

// The workers of one operator.
class Callers {
 public:
  virtual ~Callers() = default;
  // Returns how many threads may use a worker at a time. With more than one, its next task is ready when it finishes
  // one.
  virtual std::int64_t tasks_in_flight() const { return 1; }
  // Makes a worker, which is prepared while the first rows are read, or with its first task.
  virtual std::unique_ptr<Caller> make() = 0;
};

// Makes callers that run in threads of this process.
std::unique_ptr<Callers> make_local_callers(const Node& node, const CallContext& context);

// Returns the text of the current exception with the function's name. Must be called in a catch block.
std::string describe_function_error(const std::string& function);

}  // namespace cadre::data
