// Random numbers of a soak; the same seed and stream give the same numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace cadre::survival {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) {
    std::seed_seq words{seed, seed >> 32, stream};
    engine_.seed(words);
  }
  double uniform(double lower, double upper) { return std::uniform_real_distribution(lower, upper)(engine_); }
  double log_uniform(double lower, double upper) { return std::exp(uniform(std::log(lower), std::log(upper))); }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cadre::survival
