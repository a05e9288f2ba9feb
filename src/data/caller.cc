#include "data/caller.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "data/functions.h"
#include "worker/worker.h"

namespace cadre::data {
namespace {

class LocalCaller final : public Caller {
 public:
  LocalCaller(std::string name, std::function<BatchCall()> make) : name_(std::move(name)), make_(std::move(make)) {}

  Duration call(std::int64_t /*turn*/, std::span<const Block> batches, const Emit& emit) override {
    if (!function_) construct();
    Duration taken{};
    for (const Block& block : batches) {
      const auto began = std::chrono::steady_clock::now();
      Block result = result_of(block);
      taken += std::chrono::steady_clock::now() - began;
      emit(std::move(result));
    }
    return taken;
  }
  void cancel() override {}

 private:
  void construct() {
    try {
      function_ = make_();
    } catch (...) {
      throw DatasetError(describe_function_error(name_ + ": its constructor"));
    }
  }
  Block result_of(const Block& block) const {
    try {
      return function_(Batch(block)).arrow();
    } catch (...) {
      throw DatasetError(describe_function_error(name_));
    }
  }

  std::string name_;
  std::function<BatchCall()> make_;
  BatchCall function_;  // created by the first call
};

class LocalCallers final : public Callers {
 public:
  LocalCallers(const Node& node, const CallContext& context)
      : name_(to_string(node)), make_(find_batch_call(std::get<Call>(node.operation), context)) {}

  std::unique_ptr<Caller> make() override { return std::make_unique<LocalCaller>(name_, make_); }

 private:
  std::string name_;
  std::function<BatchCall()> make_;
};

}  // namespace

std::string describe_function_error(const std::string& function) {
  return function + " has thrown " + worker::describe_current_exception();
}

std::unique_ptr<Callers> make_local_callers(const Node& node, const CallContext& context) {
  return std::make_unique<LocalCallers>(node, context);
}

}  // namespace cadre::data
