// A key-value store through which the processes of a group exchange values before they can talk directly. Each group
// has one. Every function blocks, may be called in any thread, and throws Error if the group's controller is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace cadre::worker {

class KeyValueStore {
 public:
  using Milliseconds = std::chrono::milliseconds;
  virtual ~KeyValueStore() = default;

  // Sets a value, which is any bytes, and replaces an existing one.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is set and returns its value. Throws Error, naming the key, after the timeout.
  virtual std::string get(const std::string& key, Milliseconds timeout) = 0;
  // Waits until all keys are set. The error of a timeout names the missing ones.
  virtual void wait(std::span<const std::string> keys, Milliseconds timeout) = 0;
  // Returns true if all keys are set.
  virtual bool contains(std::span<const std::string> keys) = 0;
  // Adds to a number in decimal digits, and returns the sum; a missing key counts as 0. Throws InvalidArgument if the
  // value is not a number.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
  // Sets the value if it is `expected`, or if the key is missing and `expected` is empty. Returns the value afterwards,
  // or `expected` if the key is still missing.
  virtual std::string compare_and_set(const std::string& key, const std::string& expected,
                                      const std::string& value) = 0;
  // Removes a key. Returns true if it existed.
  virtual bool erase(const std::string& key) = 0;
  virtual std::int64_t size() = 0;
};

}  // namespace cadre::worker
