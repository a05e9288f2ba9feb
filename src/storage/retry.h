// Retries of failed storage calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "storage/storage.h"

namespace cadre::storage {

// Pauses between attempts: each is twice as long as the previous one, from `first` up to `longest`.
class BackOff {
 public:
  static constexpr auto first = std::chrono::milliseconds(500);
  static constexpr auto longest = std::chrono::seconds(60);

  std::chrono::milliseconds next() {
    const auto pause = pause_;
    pause_ = std::min<std::chrono::milliseconds>(2 * pause_, longest);
    return pause;
  }
  void reset() { pause_ = first; }

 private:
  std::chrono::milliseconds pause_ = first;
};

// Calls `act` until it succeeds. Rethrows a fault that is not passing, or if the next pause would end after
// `patience`; other exceptions pass through.
template <class Act>
auto with_patience(std::chrono::steady_clock::duration patience, const Act& act) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (BackOff back_off;;) {
    try {
      return act();
    } catch (const StorageFault& fault) {
      const auto pause = back_off.next();
      if (fault.kind() != StorageFault::Kind::passing || std::chrono::steady_clock::now() + pause > until) throw;
      std::this_thread::sleep_for(pause);
    }
  }
}

}  // namespace cadre::storage
