// What the processes of a group leave for each other before they can talk directly: values under keys. A group has one
// store; every function blocks, may be called in any thread, and throws Error where the group's controller is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace cadre::run {

class KeyValueStore {
 public:
  using Milliseconds = std::chrono::milliseconds;
  virtual ~KeyValueStore() = default;

  // Values are bytes. A key that is there gets the new value.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has set it. Throws Error, which names the key, when nobody has within this time.
  virtual std::string get(const std::string& key, Milliseconds timeout) = 0;
  // The same without the values, until all keys are there. The error names those that are missing.
  virtual void wait(std::span<const std::string> keys, Milliseconds timeout) = 0;
  // Whether all of them are there.
  virtual bool contains(std::span<const std::string> keys) = 0;
  // Adds to a number in decimal digits, and returns the sum; a key that is not there is 0. Throws InvalidArgument where
  // it is no number.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
  // Sets the value where it is `expected`, or where the key is not there and `expected` is empty. Returns what is there
  // afterwards, and `expected` where the key is still not there.
  virtual std::string compare_and_set(const std::string& key, const std::string& expected,
                                      const std::string& value) = 0;
  // Whether it was there.
  virtual bool erase(const std::string& key) = 0;
  virtual std::int64_t size() = 0;
};

}  // namespace cadre::run
