// Computes suggestions in a thread of its own, because a searcher may take longer than answers to reports may wait.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "cadre/tune/searcher.h"
#include "tune/events.h"

namespace cadre::tune {

// Asks a searcher, and returns its answer as an event.
Suggested ask(const Searcher& searcher, TrialIndex trial);

class SearcherThread {
 public:
  // Calls `wake` in the thread whenever take() has something.
  explicit SearcherThread(std::function<void()> wake) : wake_(std::move(wake)) {}
  SearcherThread(const SearcherThread&) = delete;
  SearcherThread& operator=(const SearcherThread&) = delete;
  // Cancels the suggestion that is being computed, and waits for the searcher to notice.
  ~SearcherThread();

  // Begins to compute a suggestion; one at a time. The first call starts the thread. `searcher` must stay as it is
  // until take() has returned the suggestion or thrown.
  void suggest(const Searcher& searcher, TrialIndex trial);
  // Returns a suggestion that is ready. Throws what the searcher has thrown.
  std::optional<Suggested> take();

 private:
  struct Task {
    const Searcher* searcher = nullptr;
    TrialIndex trial = 0;
  };

  void run();

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Task> task_ = {};
  const Searcher* asked_ = nullptr;  // while it computes a suggestion
  std::optional<Suggested> suggested_ = {};
  std::exception_ptr error_ = {};
  bool quit_ = false;
  std::thread thread_ = {};  // last, because it uses the other members
};

}  // namespace cadre::tune
