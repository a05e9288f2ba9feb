// Who calls a function of the program with batches: threads of this process, or worker processes.
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
  // A place in the order in which the worker does its tasks, for one call(), which must come.
  virtual std::int64_t take_turn() { return 0; }
  // Calls the function once for each batch, in order, and returns how long that has taken. Throws DatasetError with the
  // function's error, or the constructor's.
  virtual Duration call(std::int64_t turn, std::span<const Block> batches, const Emit& emit) = 0;
  // From another thread: call() ends soon, if it waits.
  virtual void cancel() = 0;
};

// The workers of one operator.
class Callers {
 public:
  virtual ~Callers() = default;
  // How many threads may use a worker at a time: with more than one it has its next task when it is done with one.
  virtual std::int64_t tasks_in_flight() const { return 1; }
  // A worker, which gets ready while the first rows are read, or with its first task.
  virtual std::unique_ptr<Caller> make() = 0;
};

// In threads of this process.
std::unique_ptr<Callers> make_local_callers(const Node& node);

// What a function of the program has thrown, with its name: to be called in a catch block.
std::string describe_function_error(const std::string& function);

}  // namespace cadre::data
