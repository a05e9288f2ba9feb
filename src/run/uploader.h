// Copies the parts of reported checkpoints to where they can be committed, off the event loop.
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

#include "run/retry_delay.h"

namespace cadre::run {

// Threads begin when there is something for them: most runs copy nothing. Blocks are shared where the file system can.
class Uploader {
 public:
  struct Part {
    std::filesystem::path directory = {};  // whole; nobody changes it until the upload is done
    std::filesystem::path copy = {};  // whole, on the run's file system: to be copied to; empty: it is there already
  };
  struct Upload {
    std::int64_t number = 0;
    std::vector<Part> parts = {};
  };
  // What became of an upload.
  struct Outcome {
    std::int64_t number = 0;
    std::string error = {};  // empty: it is done
    TryAgain again = TryAgain::never;
  };

  // `wake` is called in another thread whenever take_outcomes() has something new.
  explicit Uploader(std::function<void()> wake) : wake_(std::move(wake)) {}
  // Waits for the copies that have begun.
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Begins. What an earlier try has left is no obstacle.
  void begin(Upload upload);
  // Of those that have come to an end since the last call.
  std::vector<Outcome> take_outcomes();

 private:
  void run();

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Upload> waiting_;
  std::vector<Outcome> outcomes_;
  std::size_t idle_ = 0;  // threads
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cadre::run
