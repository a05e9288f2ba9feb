// Decides whether polling for an answer is worth it.
//
// Waking an idle CPU, especially a virtual one, costs more than most answers. So who waits polls, and yields to other
// threads meanwhile, but only where answers usually come so soon: where many processes report at a time, polling takes
// the time of those who answer.
#pragma once

#include <algorithm>
#include <chrono>

namespace cadre::channel {

// Learns from how long answers took, of one kind and on one thread. At first it expects them soon.
class Patience {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // `longest`: for how long polling may be worth it.
  explicit constexpr Patience(Duration longest) : longest_(longest) {}

  Duration longest() const { return longest_; }
  // Returns for how long to poll now: `longest`, if that is half of the usual time or more, or not at all.
  Duration time_to_poll() const { return usual_ < 2 * longest_ ? longest_ : Duration::zero(); }
  // Any time beyond four times `longest` counts as that, so a pause between two series of answers is forgotten soon.
  void answer_took(Duration time) { usual_ += (std::min(time, 4 * longest_) - usual_) / 8; }

 private:
  Duration longest_;
  Duration usual_ = Duration::zero();  // mean of the last ones, of which later ones count more
};

}  // namespace cadre::channel
