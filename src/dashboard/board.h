// The state that the dashboard shows: a list of experiments, and the documents of the watched ones. Shared by the
// thread that reads experiments and the thread that serves pages.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dashboard/live_document.h"

namespace cadre::dashboard {

class Board {
 public:
  // `origin`: a text that no other program's board has. `changed` is called, by any thread, when a stream has something
  // new.
  Board(std::string origin, std::function<void()> changed);

  // ---- For the thread that serves pages

  // Returns the document with an id, that of the list for an empty one; nullptr if there is no such experiment.
  std::shared_ptr<LiveDocument> document(const std::string& id) const;
  // Returns the directory or URI of the experiment with an id; empty if there is none.
  std::string location(const std::string& id) const;
  // Has the document read soon, if there is none yet.
  void want(const LiveDocument& document);
  // Returns false before the first search for experiments is over: any id may still be that of one.
  bool has_searched() const;

  // ---- For the thread that reads experiments

  LiveDocument& list() { return *list_; }
  void add(const std::string& id, const std::string& location);
  void remove(const std::string& id);
  // Notes that all experiments have been searched for and added. Streams that wait for one hear now if it is not there.
  void note_search();
  void notify() { changed_(); }
  // Sleeps until the time is over, a document is wanted, or stop(). Returns false after stop().
  bool sleep(std::chrono::milliseconds time);
  bool stopped() const;

  // Any thread.
  void stop();

 private:
  struct Shown {
    std::string location = {};
    std::shared_ptr<LiveDocument> document = {};
  };

  const std::string origin_;
  const std::function<void()> changed_;
  const std::shared_ptr<LiveDocument> list_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::map<std::string, Shown> experiments_ = {};  // by id
  std::uint64_t documents_ = 0;                    // number of those that were ever made
  bool has_searched_ = false;
  bool is_wanted_ = false;  // a document is wanted that nobody has read
  bool stopped_ = false;
};

}  // namespace cadre::dashboard
