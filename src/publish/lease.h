// Ensures that only one controller publishes at a URI.
//
// The lease is an object that names its holder. The holder renews it, so that other controllers wait and can name it
// to the user. Storages have no locks that end with their holder, so the lease expires by its age on the storage's
// clock. A holder that was stopped or cut off for longer cannot harm its successor because of the manifest: a
// successor first raises the generation in it, and every write of the manifest is conditional: it succeeds only if the
// manifest is as this holder left it. Source: fencing tokens (Kleppmann, How to do distributed locking, 2016).
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

// Thrown when another controller has taken over: this one can no longer publish.
class LeaseLost : public StorageError {
  using StorageError::StorageError;
};

// The controller process that holds a lease.
struct Holder {
  std::string token = {};  // unique for each holder
  std::string host = {};
  std::string machine = {};  // identifies the boot of the machine and the PID namespace
  std::string start = {};    // start time of the process, in ticks since the boot
  std::int64_t pid = 0;
  std::int64_t since = 0;    // seconds since 1970
  bool is_released = false;  // true if the holder has released the lease
};

// The lease's view of the operating system; simulations replace it.
struct LeaseSystem {
  std::function<double()> seconds;             // a clock with any origin that also counts suspended time
  std::function<Holder()> self;                // this process, with a new token
  std::function<bool(const Holder&)> is_dead;  // true if the holder ran on this machine and is dead
  static LeaseSystem of_this_process();
};

class Lease {
 public:
  // Return the time between renewals, and the age at which a lease is stale. CADRE_LEASE_PERIOD sets the period, in
  // seconds, for tests.
  static std::chrono::milliseconds period();
  static std::chrono::milliseconds stale_after() { return 6 * period(); }

  struct Setting {
    std::shared_ptr<storage::Storage> storage;
    storage::Uri uri;  // for messages
    // Checks the published manifest before the takeover; throws to refuse it.
    std::function<void(const Manifest&)> accept = [](const Manifest&) {};
    LeaseSystem system = LeaseSystem::of_this_process();
  };

  // Takes over the lease. Throws StorageError, naming the holder, while the holder may be alive; a dead holder on this
  // machine is detected at once. Throws InvalidArgument, with advice, if the storage cannot be used, StorageError if
  // the manifest is damaged, and the exceptions of `accept`: then nothing has changed.
  explicit Lease(Setting setting);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Releases the lease if the storage can be written.
  ~Lease();

  // Returns a description of the previous holder if it died without releasing the lease, for messages; empty
  // otherwise.
  const std::string& predecessor() const { return predecessor_; }
  // Returns true if conditional writes are atomic in this storage. Otherwise this holder may overwrite a successor's
  // write made between its check and its own write.
  bool is_fenced() const { return is_fenced_; }
  // Returns the manifest, as written by this holder or as found at the takeover.
  Manifest manifest() const;
  std::int64_t generation() const { return generation_; }

  // ---- For any thread. These functions throw LeaseLost if another controller has taken over, and StorageFault if the
  // storage fails.

  // Replaces the manifest. Sets its generation and writer to those of this holder.
  void publish(Manifest next);
  // Renews the lease.
  void renew();
  // Renews the lease unless it was renewed a short time ago. Call before unconditional writes.
  void require();
  // Reads the manifest and throws if another controller has taken over.
  void verify();

  // Releases the lease now.
  void release() noexcept;

 private:
  void take_over();
  bool is_own(const Manifest& manifest) const;
  // Writes the lease if it is still as `found`. Returns false if it has changed.
  bool write_lease(const Holder& holder, const std::optional<storage::VersionedBytes>& found);
  [[noreturn]] void throw_lost();

  const Setting setting_;
  const Holder self_;
  const std::string where_;
  bool is_fenced_ = true;
  bool held_ = false;
  std::string predecessor_ = {};
  std::int64_t generation_ = 0;

  mutable std::mutex writing_;  // guards writes of the manifest and the two fields below
  Manifest manifest_ = {};
  std::optional<storage::Version> version_ = {};

  std::mutex mutex_;  // guards renewed_
  double renewed_ = 0;
};

}  // namespace cadre::publish
