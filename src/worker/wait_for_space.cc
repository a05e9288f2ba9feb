#include "worker/wait_for_space.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "cadre/error.h"

namespace cadre::worker {

void wait_for_space(const std::function<void()>& act) {
  for (bool is_said = false;; is_said = true) {
    try {
      return act();
    } catch (const OutOfSpace& error) {
      if (!is_said) std::fprintf(stderr, "cadre: the disk is full, and this worker waits: %s\n", error.what());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

}  // namespace cadre::worker
