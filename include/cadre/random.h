// Random numbers for functions that Cadre calls: a sample_from or an explore function.
#pragma once

#include <cstdint>

namespace cadre {

namespace base {
class RandomStream;
}

// A stream that belongs to one trial and one purpose: the same numbers in every run of the experiment, and after a
// restore. A standard uniform random bit generator, so that <random> and std::ranges::shuffle take it too. Good while
// the call that it was given to lasts.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(base::RandomStream& stream) : stream_(&stream) {}

  double uniform();                      // [0, 1)
  double normal();                       // mean 0, standard deviation 1
  std::uint64_t below(std::uint64_t n);  // 0 to n - 1; n from 1 to 2^53

  result_type operator()();
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }

 private:
  base::RandomStream* stream_;
};

}  // namespace cadre
