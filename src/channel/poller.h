// Waits for many connections at once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::channel {

// Calls functions when descriptors can be read or written; used by one thread at a time. Functions may call any member
// except wait(). An exception in one leaves wait(); the others are called by the next.
class Poller {
 public:
  // Throws EngineError if the operating system refuses.
  Poller();

  // Calls `ready` in wait() while the descriptor can be read, or has ended; one function per descriptor. The caller
  // owns the descriptor and keeps it open until unwatch().
  void watch(int descriptor, std::function<void()> ready);
  // Calls the function of watch() also while the descriptor can be written, if `wanted`; otherwise no longer.
  void watch_writing(int descriptor, bool wanted);
  void unwatch(int descriptor);

  // Waits until a function has been called, at most for `timeout` (empty: without limit), and calls those of all
  // descriptors that are ready. Returns false after a timeout or a signal.
  bool wait(std::optional<std::chrono::nanoseconds> timeout);

  // Returns a descriptor that can be read when wait() would call something.
  int descriptor() const { return epoll_.get(); }

 private:
  struct Watched {
    std::function<void()> ready;
    bool writing = false;
  };

  base::FileDescriptor epoll_;
  std::unordered_map<int, std::shared_ptr<Watched>> watched_;
};

}  // namespace cadre::channel
