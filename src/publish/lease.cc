#include "publish/lease.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/machine.h"
#include "cadre/stored.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

using storage::StorageFault;

constexpr std::int64_t kLeaseFormat = 2;

struct StoredLease {
  std::int64_t format = kLeaseFormat;
  Holder holder = {};
};

std::string random_text() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// Returns the scope of process ids: the boot of this machine and the PID namespace.
std::string machine() {
  std::error_code none;
  return base::boot_id() + " " + fs::read_symlink("/proc/self/ns/pid", none).string();
}

// Returns the start time of a process, in ticks since the boot; empty if there is no such process.
std::string start_of(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::size_t at = text.rfind(')');  // after the name, which may contain blanks
  constexpr int kFieldsBefore = 20;
  for (int i = 0; i < kFieldsBefore && at != text.npos; ++i) at = text.find(' ', at + 1);
  return at == text.npos ? std::string() : text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

Holder this_process() {
  return {.token = random_text(),
          .host = base::host_name(),
          .machine = machine(),
          .start = start_of(::getpid()),
          .pid = ::getpid(),
          .since = static_cast<std::int64_t>(base::wall_seconds())};
}

bool is_known_to_be_dead(const Holder& holder) {
  return holder.machine == machine() && start_of(holder.pid) != holder.start;
}

std::string to_text(const Holder& holder) {
  return base::to_json(cadre::to_stored(StoredLease{.holder = holder}).dict()) + "\n";
}

// Returns an unknown holder if the text cannot be parsed.
Holder parse_holder(const std::string& text) {
  try {
    return cadre::document_from_value<StoredLease>(base::parse_json(text, kLeaseFile)).holder;
  } catch (const Error&) {
    return {.host = "a machine that is not known"};
  }
}

std::string describe(const Holder& holder) { return fmt::format("process {} on {}", holder.pid, holder.host); }

// Writes, reads and removes an object, so that missing permissions are found before anything runs. Returns the time on
// the storage's clock.
double try_out(storage::Storage& storage) {
  const std::string name = ".cadre_trial_" + random_text();
  storage.write(name, "x");
  const auto found = storage.find(name);
  if (!found || storage.read(name) != "x")
    throw StorageFault(StorageFault::Kind::lasting, "what was written there a moment ago is not there");
  storage.remove(name);
  return found->modified;
}

double seconds_of(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

LeaseSystem LeaseSystem::of_this_process() {
  return {.seconds = base::boot_seconds, .self = this_process, .is_dead = is_known_to_be_dead};
}

std::chrono::milliseconds Lease::period() {
  static const std::chrono::milliseconds period = [] {
    const char* const seconds = std::getenv("CADRE_LEASE_PERIOD");
    return std::chrono::milliseconds(seconds == nullptr ? 10'000
                                                        : static_cast<int>(1000 * std::strtod(seconds, nullptr)));
  }();
  return period;
}

Lease::Lease(Setting setting)
    : setting_(std::move(setting)), self_(setting_.system.self()), where_(shown(setting_.uri)) {
  try {
    take_over();
  } catch (const StorageFault& fault) {
    throw InvalidArgument(fmt::format("the storage path {} cannot be used: {}", where_, fault.what()));
  }
}

void Lease::take_over() {
  storage::Storage& storage = *setting_.storage;
  const double now = try_out(storage);
  is_fenced_ = storage.has_conditional_writes();
  const auto file = storage.find(kLeaseFile);
  if (const auto text = file ? storage.read(kLeaseFile) : std::nullopt) {
    const Holder holder = parse_holder(*text);
    const double age = now - file->modified;
    const double most = seconds_of(stale_after());
    if (!holder.is_released && age < most && !setting_.system.is_dead(holder))
      throw StorageError(fmt::format(
          "{} is being run already, by {}, who was there {:.0f} s ago: wait for it or stop it first. When it "
          "is gone, this is possible {:.0f} s from now",
          where_, describe(holder), std::max(age, 0.0), most - std::max(age, 0.0)));
    if (!holder.is_released) predecessor_ = describe(holder);
  }
  const auto found = storage.read_versioned(kManifestFile);
  if (found) {
    manifest_ = parse_manifest(found->bytes, shown(setting_.uri / kManifestFile));
    version_ = found->version;
  }
  setting_.accept(manifest_);
  generation_ = manifest_.generation + 1;
  manifest_.generations.push_back({.first_checkpoint = manifest_.next_checkpoint, .number = generation_});
  renewed_ = setting_.system.seconds();
  try {
    publish(manifest_);
  } catch (const LeaseLost&) {
    throw StorageError(where_ + " was taken over by another controller in this moment: wait for it or stop it first");
  }
  held_ = true;
  renew();
}

Manifest Lease::manifest() const {
  const std::lock_guard lock(writing_);
  return manifest_;
}

bool Lease::is_own(const Manifest& manifest) const {
  return manifest.generation == generation_ && manifest.writer == self_.token;
}

void Lease::publish(Manifest next) {
  const std::lock_guard lock(writing_);
  next.generation = generation_;
  next.writer = self_.token;
  const std::string text = to_text(next);
  constexpr int kAttempts = 10;  // each but the last finds a write of this holder whose response was lost
  for (int attempt = 1;; ++attempt) {
    auto version = setting_.storage->write_if(kManifestFile, text, version_);
    if (!version) {
      // The manifest was written by another controller, or by an earlier write of ours whose response was lost.
      const auto found = setting_.storage->read_versioned(kManifestFile);
      if (!found || !is_own(parse_manifest(found->bytes, shown(setting_.uri / kManifestFile)))) throw_lost();
      version_ = found->version;
      if (found->bytes != text && attempt < kAttempts) continue;
      if (found->bytes != text)
        throw StorageFault(StorageFault::Kind::passing, where_ + " changes all the time, though nobody else is at it");
      version = found->version;
    }
    version_ = *std::move(version);
    manifest_ = std::move(next);
    return;
  }
}

void Lease::verify() {
  const std::lock_guard lock(writing_);
  const auto text = setting_.storage->read(kManifestFile);
  if (!text || !is_own(parse_manifest(*text, shown(setting_.uri / kManifestFile)))) throw_lost();
}

void Lease::throw_lost() {
  std::string by = "another controller";
  try {
    const auto text = setting_.storage->read(kLeaseFile);
    if (const Holder holder = text ? parse_holder(*text) : Holder(); text && holder.token != self_.token)
      by = describe(holder);
  } catch (const StorageFault&) {  // NOLINT(bugprone-empty-catch): the successor stays unknown
  }
  throw LeaseLost(fmt::format("{} was taken over by {}, because nothing was heard of this process for {:g} s", where_,
                              by, seconds_of(stale_after())));
}

// A holder that has not renewed in time, or does not find its lease, may have a successor, so it checks the manifest.
// The lease itself is written conditionally, so that a holder stopped between the check and the write does not
// overwrite a successor's lease.
void Lease::renew() {
  const double now = setting_.system.seconds();
  const auto found = setting_.storage->read_versioned(kLeaseFile);
  const Holder holder = found ? parse_holder(found->bytes) : Holder();
  const bool is_there = found && holder.token == self_.token;
  if (is_there && holder.is_released) return;  // by another thread, a moment ago
  double since = 0;
  {
    const std::lock_guard lock(mutex_);
    since = now - renewed_;
  }
  if (!is_there || since > seconds_of(stale_after()) / 2) verify();
  if (!write_lease(self_, found)) return;  // the next renewal tries again
  const std::lock_guard lock(mutex_);
  renewed_ = now;
}

bool Lease::write_lease(const Holder& holder, const std::optional<storage::VersionedBytes>& found) {
  const auto expected = found ? std::optional(found->version) : std::nullopt;
  return setting_.storage->write_if(kLeaseFile, to_text(holder), expected).has_value();
}

void Lease::require() {
  {
    const std::lock_guard lock(mutex_);
    if (setting_.system.seconds() - renewed_ < 2 * seconds_of(period())) return;
  }
  renew();
}

Lease::~Lease() { release(); }

// Marks the lease as released, so that the next controller need not wait.
void Lease::release() noexcept {
  if (!std::exchange(held_, false)) return;
  Holder released = self_;
  released.is_released = true;
  try {
    constexpr int kAttempts = 3;  // another thread may renew the lease meanwhile
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      const auto found = setting_.storage->read_versioned(kLeaseFile);
      const Holder holder = found ? parse_holder(found->bytes) : Holder();
      if (holder.token != self_.token || holder.is_released) return;
      if (write_lease(released, found)) return;
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): then the lease expires
  }
}

}  // namespace cadre::publish
