#include "checkpoint/uploader.h"

#include <utility>

#include "base/directory.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"

namespace cadre::checkpoint {
namespace fs = std::filesystem;
namespace {

// Returns true if the source can be read. A fault of the source is permanent, so the upload is not tried again.
bool is_readable(const Uploader::Upload& upload) {
  try {
    for (const Uploader::Part& part : upload.parts) list_files(part.directory);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Uploader::Outcome copy(const Uploader::Upload& upload) {
  try {
    for (const auto& [directory, copy] : upload.parts) {
      if (copy.empty()) continue;
      base::remove_tree(copy);
      base::copy_tree(directory, copy);
    }
    return {.number = upload.number};
  } catch (const OutOfSpace& error) {
    return {upload.number, error.what(), base::TryAgain::when_there_is_space};
  } catch (const std::exception& error) {
    return {upload.number, error.what(), is_readable(upload) ? base::TryAgain::later : base::TryAgain::never};
  }
}

constexpr std::size_t kMostThreads = 4;

}  // namespace

Uploader::~Uploader() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    quit_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Uploader::begin(Upload upload) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(upload));
  if (idle_ < waiting_.size() && threads_.size() < kMostThreads) threads_.emplace_back([this] { run(); });
  changed_.notify_one();
}

std::vector<Uploader::Outcome> Uploader::take_outcomes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

void Uploader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return quit_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const Upload upload = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Outcome outcome = copy(upload);
    lock.lock();
    outcomes_.push_back(std::move(outcome));
    wake_();
  }
}

}  // namespace cadre::checkpoint
