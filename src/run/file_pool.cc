#include "run/file_pool.h"

#include <utility>

#include "base/file.h"
#include "cadre/error.h"

namespace cadre::run {

FilePool::~FilePool() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FilePool::remove(std::filesystem::path path) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(path));
  }
  wake_.notify_one();
}

std::vector<std::string> FilePool::take_errors() {
  const std::lock_guard lock(mutex_);
  return std::exchange(errors_, {});
}

void FilePool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return quit_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::filesystem::path path = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::string error;
    try {
      base::remove_tree(path);
    } catch (const StorageError& failure) {
      error = failure.what();
    }
    lock.lock();
    if (!error.empty()) errors_.push_back(std::move(error));
  }
}

}  // namespace cadre::run
