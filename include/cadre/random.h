/// \file
/// Random numbers for functions that Cadre calls: a sample_from or an explore function.
#pragma once

#include <cstdint>

namespace cadre {

namespace base {
class RandomStream;
}

/// A stream that belongs to one trial and one purpose: the same numbers in every run of the experiment, and after a
/// restore. A standard uniform random bit generator, so that the distributions of the standard library and
/// std::ranges::shuffle take it too. Good while the call that it was given to lasts, in that call's thread.
///
/// Source: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011); docs/formats.md, "Random
/// streams", has every number that it gives.
class Random {
 public:
  using result_type = std::uint64_t;  ///< of the standard's generators

  /// Made by Cadre.
  explicit Random(base::RandomStream& stream) : stream_(&stream) {}

  double uniform();                      ///< from 0, which is included, to 1, which is not; multiples of 2^-53
  double normal();                       ///< of the normal distribution with mean 0 and standard deviation 1
  std::uint64_t below(std::uint64_t n);  ///< from 0 to n - 1, each equally likely; n from 1 to 2^53

  result_type operator()();                                  ///< 64 random bits
  static constexpr result_type min() { return 0; }           ///< the least number that operator() gives
  static constexpr result_type max() { return UINT64_MAX; }  ///< the greatest number that operator() gives

 private:
  base::RandomStream* stream_;
};

}  // namespace cadre
