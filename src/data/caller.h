// Who calls a function of the program with batches: threads of this process, or worker processes.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cadre/data/functions.h"
#include "data/plan.h"
#include "data/source.h"

namespace cadre::data {

// One worker. Used by one thread at a time.
class Caller {
 public:
  virtual ~Caller() = default;
  // Calls the function once for each batch, in order. Throws DatasetError with the function's error.
  virtual void call(std::span<const Block> batches, const Emit& emit) = 0;
  // From another thread: call() ends soon, if it waits.
  virtual void cancel() = 0;
};

// The workers of one operator, made when there is something for them to do.
class Callers {
 public:
  virtual ~Callers() = default;
  // In the thread that will use it first. Throws DatasetError where the constructor of a class throws.
  virtual std::unique_ptr<Caller> make() = 0;
};

// In threads of this process.
std::unique_ptr<Callers> make_local_callers(const Node& node);

// What a function of the program has thrown, with its name: to be called in a catch block.
std::string describe_function_error(const std::string& function);

}  // namespace cadre::data
