#include "tune/searcher_thread.h"

#include <utility>

namespace cadre::tune {

Suggested ask(const Searcher& searcher, TrialIndex trial) {
  Suggested answer{.for_trial = trial, .values = searcher.suggest(trial)};
  answer.finished = !answer.values && searcher.is_finished();
  return answer;
}

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
    Suggested suggested;
    std::exception_ptr error;
    try {
      suggested = ask(*task.searcher, task.trial);
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
