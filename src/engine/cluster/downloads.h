// Downloads directories of a run whose files are in a storage only, for nodes that do not reach it: in threads, because
// the controller's loop must not wait for the storage.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

namespace cadre::engine::cluster {

class Downloads {
 public:
  static constexpr std::size_t at_a_time = 4;

  // `directory`: the run's. `wake` is called in the threads when take_done() has something.
  Downloads(std::filesystem::path directory, std::function<void()> wake)
      : directory_(std::move(directory)), wake_(std::move(wake)) {}
  // Waits for those that have begun, about half a minute at most while the storage does not answer.
  ~Downloads() = default;
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;

  // Downloads a directory in place, by its path below the run's. Does nothing if that has begun.
  void begin(const std::string& place);

  struct Done {
    std::string place = {};
    std::string fault = {};  // empty: it has its files
    bool may_pass = false;   // true: a retry may succeed
  };
  std::vector<Done> take_done();

 private:
  void start_next();

  std::filesystem::path directory_;
  std::function<void()> wake_;
  std::deque<std::string> waiting_ = {};
  std::map<std::string, std::future<Done>> running_ = {};
  std::vector<Done> refused_ = {};  // for which there was no thread
};

}  // namespace cadre::engine::cluster
