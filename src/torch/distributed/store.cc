#include "torch/distributed/store.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cadre::distributed {
namespace {

constexpr std::chrono::milliseconds a_day = std::chrono::hours(24);

using Bytes = std::vector<std::uint8_t>;

std::string to_text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

// Inherits append, multiGet, multiSet and barrier, which the base implements with these functions.
class ChannelStore final : public c10d::Store {
 public:
  ChannelStore(std::shared_ptr<worker::KeyValueStore> values, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), values_(std::move(values)) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<ChannelStore>(values_, timeout_); }

  using Store::compareSet;
  using Store::set;

  void set(const std::string& key, const Bytes& value) override { values_->set(key, to_text(value)); }
  Bytes get(const std::string& key) override { return to_bytes(values_->get(key, limit(timeout_))); }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return to_bytes(values_->compare_and_set(key, to_text(expected), to_text(desired)));
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override { return values_->add(key, amount); }
  bool deleteKey(const std::string& key) override { return values_->erase(key); }
  bool check(const std::vector<std::string>& keys) override { return values_->contains(keys); }
  std::int64_t getNumKeys() override { return values_->size(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    values_->wait(keys, limit(timeout));
  }

 private:
  static std::chrono::milliseconds limit(std::chrono::milliseconds timeout) {
    return timeout == kNoTimeout ? a_day : timeout;
  }

  std::shared_ptr<worker::KeyValueStore> values_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_store(std::shared_ptr<worker::KeyValueStore> values,
                                           std::chrono::milliseconds timeout) {
  return c10::make_intrusive<ChannelStore>(std::move(values), timeout);
}

}  // namespace cadre::distributed
