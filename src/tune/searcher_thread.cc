#include "tune/searcher_thread.h"

#include <utility>

namespace cadre::tune {

SearcherThread::~SearcherThread() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    if (asked_ != nullptr) asked_->cancel();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SearcherThread::suggest(const Searcher& searcher, TrialIndex trial) {
  {
    const std::lock_guard lock(mutex_);
    task_ = Task{&searcher, trial};
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

std::optional<Suggested> SearcherThread::take() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, {}));
  return std::exchange(suggested_, {});
}

void SearcherThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || task_; });
    if (quit_) return;
    const Task task = *std::exchange(task_, {});
    asked_ = task.searcher;
    lock.unlock();
    Suggested suggested{.for_trial = task.trial};
    std::exception_ptr error;
    try {
      suggested.values = task.searcher->suggest(task.trial);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    asked_ = nullptr;
    if (error) {
      error_ = error;
    } else {
      suggested_ = std::move(suggested);
    }
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace cadre::tune
