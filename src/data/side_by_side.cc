#include "data/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace cadre::data {
namespace {

constexpr std::size_t kThreads = 16;  // most of them wait for a disk or a server

}  // namespace

void side_by_side(std::size_t count, const std::function<void(std::size_t number)>& call) {
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> end = count;
  std::mutex mutex;
  std::exception_ptr error;  // of the number `end`
  // Numbers are started in order: when one fails, all lower ones have been started.
  const auto work = [&] {
    for (;;) {
      const std::size_t number = next++;
      if (number >= end) return;
      try {
        call(number);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (number >= end) continue;
        end = number;
        error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t helper = 1; helper < std::min(count, kThreads); ++helper) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace cadre::data
