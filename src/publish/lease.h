// One controller for what is published: an object that says who publishes, renewed as long as that one lives. Storages
// have no locks that end with their holder, so this one ends with its age, by the storage's own clock.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "storage/storage.h"

namespace cadre::publish {

inline constexpr const char* kLeaseFile = "lease.json";

class Lease {
 public:
  static constexpr auto period = std::chrono::seconds(10);  // of renewals
  static constexpr auto stale_after = std::chrono::seconds(60);

  // Takes the lease. Throws StorageError that names who has it, as long as that one may be alive; on this machine that
  // is known at once. Throws InvalidArgument, with what to do, where nothing can be written.
  Lease(std::shared_ptr<storage::Storage> storage, const storage::Uri& uri);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Gives it back, as far as the storage lets that happen.
  ~Lease();

  // Who had it and is gone, for people; empty where nobody had.
  const std::string& predecessor() const { return predecessor_; }

  // Renews it. Throws StorageError when another one has taken it, StorageFault where the storage fails.
  void renew();
  // Gives it back now.
  void release() noexcept;

 private:
  std::shared_ptr<storage::Storage> storage_;
  std::string where_;
  std::string token_;
  std::int64_t since_;
  bool held_ = false;
  std::string predecessor_ = {};
  std::string predecessor_token_ = {};  // until it is replaced
};

}  // namespace cadre::publish
