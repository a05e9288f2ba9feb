// Has the requests of pages carried out in a thread of its own, so that neither the thread that serves pages nor the
// one that reads experiments waits for an answer.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dashboard/controls.h"

namespace cadre::dashboard {

class ControlQueue {
 public:
  enum class Result {
    done,
    refused,      // by the experiment, or nothing runs there
    unavailable,  // no answer has come, or nothing can be written there
  };
  struct Outcome {
    Result result = Result::done;
    std::string text = {};  // what follows, or the reason
  };
  static constexpr std::size_t kMost = 16;  // requests without an answer

  // `answered` is called by run() after each outcome. The controls outlive the queue.
  ControlQueue(Controls& controls, std::function<void()> answered)
      : controls_(controls), answered_(std::move(answered)) {}

  // Any thread. Returns an outcome that never throws; empty if kMost requests wait already.
  std::optional<std::future<Outcome>> add(std::string location, Dict request);

  // Serves until stop(), in its own thread. Requests without an answer are withdrawn then, with
  // Result::unavailable.
  void run();
  // Any thread.
  void stop();

 private:
  struct Request {
    std::string location = {};
    Dict content = {};
    std::promise<Outcome> outcome = {};
    std::unique_ptr<Controls::Asked> asked = {};  // empty: not yet
  };
  // Returns true once the request has its outcome.
  bool carry_on(Request& request);

  Controls& controls_;
  const std::function<void()> answered_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<Request> added_ = {};
  std::size_t waiting_ = 0;
  bool stopped_ = false;
};

}  // namespace cadre::dashboard
