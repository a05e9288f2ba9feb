// The model that trials train: a small convolutional network in the program with libtorch (torch_learner.cc),
// arithmetic in the program without it (plain_learner.cc).
#pragma once

#include <time.h>

#include <chrono>
#include <filesystem>
#include <memory>

namespace cadre::bench {

// Returns true in the program with libtorch.
bool with_torch();

class Learner {
 public:
  explicit Learner(double lr);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // Trains for `cpu_time` of this thread's CPU time, and then to the end of the current batch.
  void train(std::chrono::duration<double> cpu_time);
  // Write the state to a file, and read it back.
  void save(const std::filesystem::path& file) const;
  void load(const std::filesystem::path& file);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the CPU time of the calling thread.
inline std::chrono::duration<double> thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace cadre::bench
