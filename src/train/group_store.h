// The key-value store of a worker's group, over the worker's connection to its controller.
#pragma once

#include "channel/worker_end.h"
#include "worker/key_value_store.h"

namespace cadre::train {

class GroupStore final : public worker::KeyValueStore {
 public:
  explicit GroupStore(channel::WorkerEnd& controller) : controller_(controller) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  void wait(std::span<const std::string> keys, Milliseconds timeout) override;
  bool contains(std::span<const std::string> keys) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  std::string compare_and_set(const std::string& key, const std::string& expected, const std::string& value) override;
  bool erase(const std::string& key) override;
  std::int64_t size() override;

 private:
  channel::StoreReply call(channel::StoreRequest request);

  channel::WorkerEnd& controller_;
};

}  // namespace cadre::train
