// Copies the parts of reported checkpoints to the run's file system, where they can be committed, off the event loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/retry_delay.h"

namespace cadre::checkpoint {

// A pool of copying threads. They are started on demand, because most runs copy nothing. Blocks are shared if the file
// system supports it.
class Uploader {
 public:
  struct Part {
    std::filesystem::path directory = {};  // absolute path; not changed until the upload is done
    std::filesystem::path copy = {};       // absolute target path on the run's file system; empty: nothing to copy
  };
  struct Upload {
    std::int64_t number = 0;
    std::vector<Part> parts = {};
  };
  // The outcome of an upload.
  struct Outcome {
    std::int64_t number = 0;
    std::string error = {};  // empty: success
    base::TryAgain again = base::TryAgain::never;
  };

  // `wake` is called in another thread whenever take_outcomes() has new entries.
  explicit Uploader(std::function<void()> wake) : wake_(std::move(wake)) {}
  // Waits for the copies that have begun.
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Starts an upload. Removes what an earlier try has left.
  void begin(Upload upload);
  // Returns the outcomes of uploads that have ended since the last call.
  std::vector<Outcome> take_outcomes();

 private:
  void run();

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Upload> waiting_;
  std::vector<Outcome> outcomes_;
  std::size_t idle_ = 0;  // number of idle threads
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cadre::checkpoint
