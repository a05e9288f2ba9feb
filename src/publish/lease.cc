#include "publish/lease.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/machine.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

using storage::StorageFault;

constexpr std::int64_t kFormat = 1;

std::string random_text() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// What process ids belong to: this start of this machine, as far as this process sees it.
std::string machine() {
  std::error_code none;
  return base::boot_id() + " " + fs::read_symlink("/proc/self/ns/pid", none).string();
}

// When a process was started, in ticks since the machine was; empty when there is none.
std::string start_of(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::size_t at = text.rfind(')');  // behind the name, which may have blanks
  constexpr int kFieldsBefore = 20;
  for (int i = 0; i < kFieldsBefore && at != text.npos; ++i) at = text.find(' ', at + 1);
  return at == text.npos ? std::string() : text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

struct Holder {
  std::string token = {};
  std::string host = {};
  std::string machine = {};
  std::string start = {};
  std::int64_t pid = 0;
  std::int64_t since = 0;

  bool is_known_to_be_dead() const { return machine == publish::machine() && start_of(pid) != start; }
};

std::string to_text(const Holder& holder) {
  return base::to_json({{"format", kFormat},
                        {"token", holder.token},
                        {"host", holder.host},
                        {"machine", holder.machine},
                        {"pid", holder.pid},
                        {"start", holder.start},
                        {"since", holder.since}}) +
         "\n";
}

// One that cannot be read has a holder that nobody knows.
Holder parse_holder(const std::string& text) {
  try {
    const Config lease(base::parse_json(text, kLeaseFile).dict());
    return {.token = lease.get<std::string>("token"),
            .host = lease.get<std::string>("host"),
            .machine = lease.get<std::string>("machine"),
            .start = lease.get<std::string>("start"),
            .pid = lease.get<std::int64_t>("pid"),
            .since = lease.get<std::int64_t>("since")};
  } catch (const Error&) {
    return {.host = "a machine that is not known"};
  }
}

std::string describe(const Holder& holder) { return fmt::format("process {} on {}", holder.pid, holder.host); }

// Writes, reads and removes an object, so that what is missing for that is known before anything runs. Returns what the
// storage's clock says.
double try_out(storage::Storage& storage) {
  const std::string name = ".cadre_trial_" + random_text();
  storage.write(name, "x");
  const auto found = storage.find(name);
  if (!found || storage.read(name) != "x")
    throw StorageFault(StorageFault::Kind::lasting, "what was written there a moment ago is not there");
  storage.remove(name);
  return found->modified;
}

}  // namespace

Lease::Lease(std::shared_ptr<storage::Storage> storage, const storage::Uri& uri)
    : storage_(std::move(storage)),
      where_(shown(uri)),
      token_(random_text()),
      since_(static_cast<std::int64_t>(base::wall_seconds())) {
  try {
    const double now = try_out(*storage_);
    const auto file = storage_->find(kLeaseFile);
    const auto text = file ? storage_->read(kLeaseFile) : std::nullopt;
    if (text) {
      const Holder holder = parse_holder(*text);
      const double age = now - file->modified;
      constexpr double most = std::chrono::duration<double>(stale_after).count();
      if (age < most && !holder.is_known_to_be_dead())
        throw StorageError(
            fmt::format("{} is being run already, by {}, who was there {:.0f} s ago: wait for it or stop it first. "
                        "When it is gone, "
                        "this is possible {:.0f} s from now",
                        where_, describe(holder), std::max(age, 0.0), most - std::max(age, 0.0)));
      predecessor_ = describe(holder);
      predecessor_token_ = holder.token;
    }
    renew();
  } catch (const StorageFault& fault) {
    throw InvalidArgument(fmt::format("the storage path {} cannot be used: {}", where_, fault.what()));
  }
}

void Lease::renew() {
  if (const auto text = storage_->read(kLeaseFile)) {
    const Holder holder = parse_holder(*text);
    if (holder.token != token_ && holder.token != predecessor_token_)
      throw StorageError(fmt::format("{} was taken over by {}, because nothing was heard of this process for {} s",
                                     where_, describe(holder), stale_after.count()));
  }
  storage_->write(kLeaseFile, to_text({.token = token_,
                                       .host = base::host_name(),
                                       .machine = machine(),
                                       .start = start_of(::getpid()),
                                       .pid = ::getpid(),
                                       .since = since_}));
  predecessor_token_.clear();
  held_ = true;
}

Lease::~Lease() { release(); }

void Lease::release() noexcept {
  if (!std::exchange(held_, false)) return;
  try {
    const auto text = storage_->read(kLeaseFile);
    if (text && parse_holder(*text).token == token_) storage_->remove(kLeaseFile);
  } catch (const std::exception&) {  // it grows old
  }
}

}  // namespace cadre::publish
