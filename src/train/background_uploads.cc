#include "train/background_uploads.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace cadre::train {

struct BackgroundUploads::State {
  struct Job {
    std::function<void()> upload;
    std::function<void()> notify;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;  // the first one is running
  bool has_thread = false;
  bool given_up = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return given_up || !jobs.empty(); });
      if (given_up) return;
      const Job& job = jobs.front();
      lock.unlock();
      job.upload();
      lock.lock();
      if (given_up) return;
      job.notify();
      jobs.pop_front();
      changed.notify_all();
    }
  }
};

BackgroundUploads::BackgroundUploads() : state_(std::make_shared<State>()) {}

BackgroundUploads::~BackgroundUploads() {
  const std::lock_guard lock(state_->mutex);
  state_->given_up = true;
  state_->changed.notify_all();
}

void BackgroundUploads::begin(std::function<void()> upload, std::function<void()> notify) {
  const std::lock_guard lock(state_->mutex);
  // No upload waits for a thread that cannot be started.
  if (!state_->has_thread) std::thread([state = state_] { state->run(); }).detach();
  state_->has_thread = true;
  state_->jobs.push_back({std::move(upload), std::move(notify)});
  state_->changed.notify_all();
}

void BackgroundUploads::finish() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->jobs.empty(); });
}

}  // namespace cadre::train
