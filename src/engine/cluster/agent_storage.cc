#include "engine/cluster/agent_storage.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"
#include "storage/retry.h"
#include "storage/storage.h"
#include "storage/uploads.h"

namespace cadre::engine::cluster {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostThreads = 4;
// A node for which the storage fails for so long sends and gets files over its connection.
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kPatienceToTry = std::chrono::seconds(5);
constexpr const char* kNoThread = "its agent cannot start a thread";

std::string fault_of_order(const std::string& place) {
  return fault_of_place(place).empty() ? "" : fmt::format("{} is no path in a node's directory", place);
}

}  // namespace

struct AgentStorage::Shared {
  const UseStorage use;
  const fs::path directory;

  std::atomic<bool> stop = false;  // true: nobody waits for anything any more

  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> wake;
  std::deque<std::function<Done()>> waiting = {};
  std::vector<Done> done = {};
  std::size_t threads = 0;
  std::size_t idle = 0;

  std::mutex opening;
  std::unique_ptr<storage::Storage> storage = {};

  Shared(UseStorage used, fs::path own, std::function<void()> wakes)
      : use(std::move(used)), directory(std::move(own)), wake(std::move(wakes)) {}

  storage::Storage& opened() {
    const std::lock_guard lock(opening);
    if (storage == nullptr) storage = storage::open_storage(storage::parse_uri(use.uri));
    return *storage;
  }

  TriedStorage attempt();
  FilesStored carry_out(const StoreFiles& order);
  FilesLoaded carry_out(const LoadFiles& order);
  void work();
  static void add(const std::shared_ptr<Shared>& shared, std::function<Done()> job, Done refused);
};

// Reads the file that only the run's controller has written, and writes one, which it removes.
TriedStorage AgentStorage::Shared::attempt() {
  try {
    return storage::with_patience(kPatienceToTry, [&]() -> TriedStorage {
      storage::Storage& there = opened();
      const std::optional<std::string> text = there.read(use.file);
      if (!text) return {.uri = use.uri, .fault = fmt::format("it finds no {} there", use.file)};
      const std::string name = fmt::format(".cadre_trial_{}_{:08x}", base::host_name(), std::random_device()());
      there.write(name, "x");
      there.remove(name);
      return {.uri = use.uri, .checksum = base::checksum_of(*text)};
    });
  } catch (const std::exception& error) {
    return {.uri = use.uri, .fault = error.what()};
  }
}

FilesStored AgentStorage::Shared::carry_out(const StoreFiles& order) {
  FilesStored stored{.place = order.place, .fault = fault_of_order(order.place)};
  if (!stored.fault.empty()) return stored;
  try {
    const std::vector<std::string> files = files_below(directory / order.place);
    stored.files = storage::upload_files(opened(), directory / order.place, files, order.name, stop, kPatience);
  } catch (const std::exception& error) {
    stored.fault = error.what();
  }
  return stored;
}

FilesLoaded AgentStorage::Shared::carry_out(const LoadFiles& order) {
  FilesLoaded loaded{.place = order.place, .fault = fault_of_order(order.place)};
  if (!loaded.fault.empty()) return loaded;
  const fs::path place = directory / order.place;
  const fs::path unfinished = unfinished_beside(place);
  try {
    storage::check_list(order.files, "the controller");
    base::make_directories(unfinished);
    storage::download_files(opened(), storage::parse_uri(use.uri), order.files, order.name, unfinished, kPatience);
    if (stop) throw StorageError("nobody waits for it any more");  // another run may have its own there by now
    base::remove_tree(place);
    base::rename(unfinished, place);
  } catch (const storage::StorageFault& fault) {
    loaded.fault = fault.what();
    loaded.may_pass = fault.kind() != storage::StorageFault::Kind::lasting;
  } catch (const std::exception& error) {
    loaded.fault = error.what();
  }
  std::error_code ignored;
  if (!loaded.fault.empty()) fs::remove_all(unfinished, ignored);
  return loaded;
}

void AgentStorage::Shared::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [this] { return stop || !waiting.empty(); });
    --idle;
    if (stop) return;
    const std::function<Done()> job = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    Done result = job();
    lock.lock();
    done.push_back(std::move(result));
    if (!stop) wake();
  }
}

// `refused`: what is said of a job for which there is no thread.
void AgentStorage::Shared::add(const std::shared_ptr<Shared>& shared, std::function<Done()> job, Done refused) {
  const std::lock_guard lock(shared->mutex);
  shared->waiting.push_back(std::move(job));
  shared->changed.notify_one();
  if (shared->idle >= shared->waiting.size() || shared->threads == kMostThreads) return;
  try {
    std::thread([shared] { shared->work(); }).detach();
    ++shared->threads;
  } catch (const std::system_error&) {  // the node has no room for another process or thread
    if (shared->threads > 0) return;    // those that are there do it
    shared->waiting.pop_back();
    shared->done.push_back(std::move(refused));
    shared->wake();
  }
}

AgentStorage::AgentStorage(const UseStorage& use, fs::path directory, std::function<void()> wake)
    : shared_(std::make_shared<Shared>(use, std::move(directory), std::move(wake))) {
  std::string fault;
  try {
    storage::prepare_storage(storage::parse_uri(use.uri));
  } catch (const std::exception& error) {
    fault = error.what();
  }
  const auto attempt = [shared = shared_.get(), fault] {
    return Done(fault.empty() ? shared->attempt() : TriedStorage{.uri = shared->use.uri, .fault = fault});
  };
  Shared::add(shared_, attempt, TriedStorage{.uri = use.uri, .fault = kNoThread});
}

AgentStorage::~AgentStorage() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->waiting.clear();
  shared_->changed.notify_all();
}

void AgentStorage::store(const StoreFiles& store) {
  Shared::add(
      shared_, [shared = shared_.get(), store] { return Done(shared->carry_out(store)); },
      FilesStored{.place = store.place, .fault = kNoThread});
}

void AgentStorage::load(const LoadFiles& load) {
  Shared::add(
      shared_, [shared = shared_.get(), load] { return Done(shared->carry_out(load)); },
      FilesLoaded{.place = load.place, .fault = kNoThread, .may_pass = true});
}

std::vector<AgentStorage::Done> AgentStorage::take_done() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->done, {});
}

}  // namespace cadre::engine::cluster
