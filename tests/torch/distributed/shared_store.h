// A key-value store in shared memory of forked processes, in place of the controller's store.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "cadre/error.h"
#include "worker/key_value_store.h"

namespace cadre::test_support {

// Create it before the fork; all processes after it may use it. A process that is killed while it uses the store does
// no harm; one that is killed while it waits does.
class SharedStore final : public worker::KeyValueStore {
 public:
  SharedStore() {
    void* const memory =
        ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    content_ = static_cast<Content*>(memory);  // zeros, which is an empty store
    pthread_mutexattr_t mutex_attributes;
    ::pthread_mutexattr_init(&mutex_attributes);
    ::pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&mutex_attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&content_->mutex, &mutex_attributes);
    pthread_condattr_t condition_attributes;
    ::pthread_condattr_init(&condition_attributes);
    ::pthread_condattr_setpshared(&condition_attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_condattr_setclock(&condition_attributes, CLOCK_MONOTONIC);
    ::pthread_cond_init(&content_->changed, &condition_attributes);
  }
  ~SharedStore() override { ::munmap(content_, sizeof(Content)); }
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  void set(const std::string& key, const std::string& value) override {
    const Lock lock(*content_);
    store(key, value);
  }

  std::string get(const std::string& key, Milliseconds timeout) override {
    const Lock lock(*content_);
    wait_for(key, timeout);
    return std::string(find(key)->value_text());
  }

  void wait(std::span<const std::string> keys, Milliseconds timeout) override {
    const Lock lock(*content_);
    for (const std::string& key : keys) wait_for(key, timeout);
  }

  bool contains(std::span<const std::string> keys) override {
    const Lock lock(*content_);
    for (const std::string& key : keys) {
      if (find(key) == nullptr) return false;
    }
    return true;
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const Lock lock(*content_);
    std::int64_t number = 0;
    if (const Entry* entry = find(key)) {
      const std::string_view text = entry->value_text();
      if (std::from_chars(text.begin(), text.end(), number).ec != std::errc()) {
        throw InvalidArgument("\"" + key + "\" is no number");
      }
    }
    store(key, std::to_string(number + amount));
    return number + amount;
  }

  std::string compare_and_set(const std::string& key, const std::string& expected, const std::string& value) override {
    const Lock lock(*content_);
    const Entry* const entry = find(key);
    if (entry == nullptr && !expected.empty()) return expected;
    if (entry != nullptr && entry->value_text() != expected) return std::string(entry->value_text());
    store(key, value);
    return value;
  }

  bool erase(const std::string& key) override {
    const Lock lock(*content_);
    Entry* const entry = find(key);
    if (entry != nullptr) entry->used = false;
    return entry != nullptr;
  }

  std::int64_t size() override {
    const Lock lock(*content_);
    std::int64_t count = 0;
    for (const Entry& entry : content_->entries) count += entry.used ? 1 : 0;
    return count;
  }

 private:
  struct Entry {
    bool used;
    std::size_t key_size, value_size;
    char key[500];
    char value[16'000];

    std::string_view key_text() const { return {key, key_size}; }
    std::string_view value_text() const { return {value, value_size}; }
  };
  struct Content {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    std::array<Entry, 500> entries;
  };

  struct Lock {
    explicit Lock(Content& content) : mutex(&content.mutex) {
      if (::pthread_mutex_lock(mutex) == EOWNERDEAD) ::pthread_mutex_consistent(mutex);
    }
    ~Lock() { ::pthread_mutex_unlock(mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    pthread_mutex_t* mutex;
  };

  Entry* find(std::string_view key) const {
    for (Entry& entry : content_->entries) {
      if (entry.used && entry.key_text() == key) return &entry;
    }
    return nullptr;
  }

  void store(const std::string& key, const std::string& value) {
    Entry* entry = find(key);
    for (Entry& other : content_->entries) {
      if (entry == nullptr && !other.used) entry = &other;
    }
    if (entry == nullptr || key.size() > sizeof(entry->key) || value.size() > sizeof(entry->value)) {
      throw Error("the test's store is too small for \"" + key + "\"");
    }
    std::memcpy(entry->key, key.data(), entry->key_size = key.size());
    std::memcpy(entry->value, value.data(), entry->value_size = value.size());
    entry->used = true;
    ::pthread_cond_broadcast(&content_->changed);
  }

  // Waits for a key. The caller holds the lock.
  void wait_for(const std::string& key, Milliseconds timeout) {
    timespec deadline;
    ::clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout.count() / 1000;
    deadline.tv_nsec += timeout.count() % 1000 * 1'000'000;
    deadline.tv_sec += deadline.tv_nsec / 1'000'000'000;
    deadline.tv_nsec %= 1'000'000'000;
    while (find(key) == nullptr) {
      const int result = ::pthread_cond_timedwait(&content_->changed, &content_->mutex, &deadline);
      if (result == EOWNERDEAD) ::pthread_mutex_consistent(&content_->mutex);
      if (result == ETIMEDOUT) throw Error("nobody has set \"" + key + "\"");
    }
  }

  Content* content_;
};

}  // namespace cadre::test_support
