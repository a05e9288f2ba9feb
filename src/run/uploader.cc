#include "run/uploader.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/directory.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"

namespace cadre::run {
namespace fs = std::filesystem;
namespace {

using Again = Uploader::Outcome::Again;

// What is wrong with the source stays wrong.
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
    return {upload.number, error.what(), Again::when_there_is_space};
  } catch (const std::exception& error) {
    return {upload.number, error.what(), is_readable(upload) ? Again::later : Again::never};
  }
}

// Threads begin when there is something for them: most runs copy nothing.
class LocalUploader final : public Uploader {
 public:
  explicit LocalUploader(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~LocalUploader() override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.clear();
      quit_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool only_copies() const override { return true; }

  void begin(Upload upload) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(upload));
    if (idle_ < waiting_.size() && threads_.size() < kMostThreads) threads_.emplace_back([this] { run(); });
    changed_.notify_one();
  }

  std::vector<Outcome> take_outcomes() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
  }

 private:
  static constexpr std::size_t kMostThreads = 4;

  void run() {
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

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Upload> waiting_;
  std::vector<Outcome> outcomes_;
  std::size_t idle_ = 0;  // threads
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Uploader> make_local_uploader(std::function<void()> wake) {
  return std::make_unique<LocalUploader>(std::move(wake));
}

}  // namespace cadre::run
