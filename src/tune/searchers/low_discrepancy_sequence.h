// Low-discrepancy sequences: points that cover the unit cube evenly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cadre::tune {

// The Sobol sequence in Gray-code order: each 2^k points from a multiple of 2^k on are a net.
// Source: Sobol (1967); Antonov and Saleev (1979) for the order; Owen, "Randomly permuted (t,m,s)-nets" (1995) for the
// scrambling, each bit of which depends on all bits before it.
class SobolSequence {
 public:
  static const std::size_t kMostDimensions;

  // At most kMostDimensions. With a seed the points are scrambled: each is distributed uniformly.
  SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed);

  // Returns the coordinates of a point, from 0 to below 1; the index is below 2^32.
  std::vector<double> point(std::uint64_t index) const;

 private:
  std::vector<std::vector<std::uint32_t>> directions_;  // by dimension and bit
  std::optional<std::uint64_t> seed_;
};

// The Halton sequence, of any number of dimensions; those with large bases need many points to cover them evenly.
// Source: Halton (1960); Matousek, "On the L2-discrepancy for anchored boxes" (1998) for the random linear scrambling,
// which permutes the values of each digit.
class HaltonSequence {
 public:
  // With a seed the digits are scrambled: each point is distributed uniformly.
  HaltonSequence(std::size_t dimensions, std::optional<std::uint64_t> seed);

  // Returns the coordinates of a point, from 0 to below 1.
  std::vector<double> point(std::uint64_t index) const;

 private:
  struct Digit {
    std::uint64_t multiplier = 1;  // not 0
    std::uint64_t shift = 0;
  };
  struct Dimension {
    std::uint64_t base = 2;  // a prime
    std::vector<Digit> digits = {};
  };
  std::vector<Dimension> dimensions_;
};

}  // namespace cadre::tune
