// One controller for what is published.
//
// The lease is an object that names its holder, who renews it, so that others wait and people are told. Storages
// have no locks that end with their holder, so this one ends with its age, by the storage's own clock. What keeps a
// holder that was stopped or cut off for longer from harming its successor is the manifest: whoever takes over raises
// its generation before anything else, and every write of it is on the condition that it is as this holder left it.
// Source: fencing tokens (Kleppmann, How to do distributed locking, 2016).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "publish/manifest.h"
#include "storage/storage.h"

namespace cadre::publish {

inline constexpr const char* kLeaseFile = "lease.json";

// Another controller has taken over: nothing that this one has can be published any more.
class LeaseLost : public StorageError {
  using StorageError::StorageError;
};

// The controller that holds a lease.
struct Holder {
  std::string token = {};  // another one for each
  std::string host = {};
  std::string machine = {};  // this start of it, as far as processes see each other
  std::string start = {};    // of the process, in ticks since the machine was started
  std::int64_t pid = 0;
  std::int64_t since = 0;    // seconds since 1970
  bool is_released = false;  // it has given it back
};

// The system as a lease sees it; a simulation has another one.
struct LeaseSystem {
  std::function<double()> seconds;             // since whenever, also those in which this process or machine slept
  std::function<Holder()> self;                // with a new token
  std::function<bool(const Holder&)> is_dead;  // known to be: of a holder on this machine
  static LeaseSystem of_this_process();
};

class Lease {
 public:
  // Return the time between renewals, and the age at which others take the lease for stale. CADRE_LEASE_PERIOD, in
  // seconds, is the period for tests.
  static std::chrono::milliseconds period();
  static std::chrono::milliseconds stale_after() { return 6 * period(); }

  struct Setting {
    std::shared_ptr<storage::Storage> storage;
    storage::Uri uri;  // for messages
    // Looks at what is published before anything is taken over, and throws to leave it alone.
    std::function<void(const Manifest&)> accept = [](const Manifest&) {};
    LeaseSystem system = LeaseSystem::of_this_process();
  };

  // Takes over. Throws StorageError that names who has it, as long as that one may be alive; on this machine that is
  // known at once. Throws InvalidArgument, with what to do, where nothing can be written, StorageError for what is
  // damaged, and what `accept` throws: then nothing has changed.
  explicit Lease(Setting setting);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Gives it back, as far as the storage lets that happen.
  ~Lease();

  // Who had it and is gone, for people; empty where nobody had.
  const std::string& predecessor() const { return predecessor_; }
  // Returns whether a write on a condition is one step in this storage. Else a successor may be written over in the
  // moment between the look and the write.
  bool is_fenced() const { return is_fenced_; }
  // Returns what is published, by this holder or those before it.
  Manifest manifest() const;
  std::int64_t generation() const { return generation_; }

  // ---- By any thread. They throw LeaseLost when another one has taken over, and StorageFault where the storage fails.

  // Publishes it, in the place of what was. Generation and writer are this holder's.
  void publish(Manifest next);
  // Renews the lease: this one is there.
  void renew();
  // Makes sure that this one was there a short time ago; for what is written on no condition.
  void require();
  // Makes sure that nobody has taken over up to now.
  void verify();

  // Gives it back now.
  void release() noexcept;

 private:
  void take_over();
  bool is_own(const Manifest& manifest) const;
  // In the place of what was found. False where another one is there by now.
  bool write_lease(const Holder& holder, const std::optional<storage::VersionedBytes>& found);
  [[noreturn]] void lose();

  const Setting setting_;
  const Holder self_;
  const std::string where_;
  bool is_fenced_ = true;
  bool held_ = false;
  std::string predecessor_ = {};
  std::int64_t generation_ = 0;

  mutable std::mutex writing_;  // of the manifest, and the two below
  Manifest manifest_ = {};
  std::optional<storage::Version> version_ = {};

  std::mutex mutex_;  // of renewed_
  double renewed_ = 0;
};

}  // namespace cadre::publish
