#include "checkpoint/file_worker.h"

#include <exception>
#include <utility>

#include "base/directory.h"
#include "base/inner_path.h"
#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"

namespace cadre::checkpoint {

FileWorker::FileWorker(std::filesystem::path root, std::filesystem::path shared, std::function<void()> wake)
    : root_(std::move(root)), shared_(std::move(shared)), wake_(std::move(wake)), thread_([this] { run(); }) {}

FileWorker::~FileWorker() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    to_seal_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void FileWorker::seal(CheckpointId id, std::filesystem::path directory) {
  const std::lock_guard lock(mutex_);
  if (to_seal_.empty()) changed_.notify_all();
  to_seal_.emplace(id, Pending{std::move(directory), Clock::now() + seal_delay});
}

void FileWorker::forget(CheckpointId id) {
  const std::lock_guard lock(mutex_);
  to_seal_.erase(id);
  if (sealing_ == id) sealing_ = 0;
}

void FileWorker::remove(CheckpointId id, std::filesystem::path directory) {
  forget(id);
  remove(std::move(directory));
}

void FileWorker::remove(std::filesystem::path directory) {
  {
    const std::lock_guard lock(mutex_);
    to_remove_.push_back(std::move(directory));
  }
  changed_.notify_all();
}

std::vector<std::filesystem::path> FileWorker::deletions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::filesystem::path> directories = not_removed_;
  directories.insert(directories.end(), to_remove_.begin(), to_remove_.end());
  return directories;
}

void FileWorker::finish_sealing() {
  std::unique_lock lock(mutex_);
  hurry_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return to_seal_.empty() && !busy_; });
  hurry_ = false;
}

std::vector<FileWorker::Sealed> FileWorker::take_sealed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(sealed_, {});
}

std::vector<std::string> FileWorker::take_errors() {
  const std::lock_guard lock(mutex_);
  return std::exchange(errors_, {});
}

bool FileWorker::has_work() const {
  return quit_ || !to_remove_.empty() ||
         (!to_seal_.empty() && (hurry_ || Clock::now() >= to_seal_.begin()->second.due));
}

void FileWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (to_seal_.empty()) {
      changed_.wait(lock, [this] { return has_work() || !to_seal_.empty(); });
    } else {
      const Clock::time_point due = to_seal_.begin()->second.due;  // another thread may remove the entry
      changed_.wait_until(lock, due, [this] { return has_work(); });
    }
    if (!to_remove_.empty()) {
      remove_next(lock);
    } else if (quit_ && !not_removed_.empty() && !std::exchange(tried_again_, true)) {
      to_remove_.assign(not_removed_.begin(), not_removed_.end());  // the obstacle may be gone
    } else if (quit_) {
      return;
    } else if (has_work()) {
      seal_next(lock);
    }
  }
}

void FileWorker::seal_next(std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  const auto next = to_seal_.extract(to_seal_.begin());
  sealing_ = next.key();
  lock.unlock();
  Sealed sealed{next.key(), {}};
  std::string error;
  try {
    sealed.files = seal_files(root_, next.mapped().directory);
  } catch (const std::exception& failure) {  // no caller would catch it
    error = failure.what();
  }
  lock.lock();
  busy_ = false;
  if (error.empty()) {
    sealed_.push_back(std::move(sealed));
  } else if (sealing_ != 0) {
    errors_.push_back("a checkpoint may not survive a loss of power: " + error);
  }
  changed_.notify_all();
  wake_();
}

void FileWorker::remove_next(std::unique_lock<std::mutex>& lock) {
  const std::filesystem::path directory = to_remove_.front();
  lock.unlock();
  std::string error;
  try {
    directory.is_absolute() ? base::remove_tree(directory) : remove_here(directory);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  lock.lock();
  to_remove_.pop_front();
  if (error.empty()) return;
  not_removed_.push_back(directory);
  errors_.push_back(std::move(error));
  wake_();
}

void FileWorker::remove_here(const std::filesystem::path& directory) const {
  const base::InnerPath inner(directory.native(), "a deletion");
  if (!shared_.empty()) {
    if (is_reporting_name(directory.filename().native())) {
      base::remove_inside(shared_, inner);
    } else if (const auto remote = storage::remote_files(root_ / inner)) {
      base::remove_inside(shared_, {remote->place_of(inner.text()), "a deletion"});
    }
  }
  remove_directory(root_, inner);
}

}  // namespace cadre::checkpoint
