// Deletes directories in a thread of its own, because a large one takes milliseconds that the controller's loop does
// not have.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cadre::run {

class FilePool {
 public:
  FilePool() : thread_([this] { run(); }) {}
  // Finishes what was asked for.
  ~FilePool();

  void remove(std::filesystem::path path);

  // What could not be deleted since the last call, a message each.
  std::vector<std::string> take_errors();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::filesystem::path> queue_;
  std::vector<std::string> errors_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace cadre::run
