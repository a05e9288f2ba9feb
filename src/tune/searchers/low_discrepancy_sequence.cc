#include "tune/searchers/low_discrepancy_sequence.h"

#include <algorithm>
#include <bit>

#include "base/random.h"
#include "tune/searchers/sobol_directions.h"

namespace cadre::tune {
namespace {

constexpr int kSobolBits = 32;
constexpr double kLargestCoordinate = 1 - 0x1p-53;

// Returns the numbers of a dimension to combine for an index, by its bits.
std::vector<std::uint32_t> sobol_directions(std::size_t dimension) {
  const auto& row = kSobolDirections[dimension];
  const std::uint32_t polynomial = row[0];
  const int degree = std::bit_width(polynomial) - 1;
  std::vector<std::uint32_t> numbers;
  for (int bit = 0; bit < kSobolBits; ++bit) {
    if (degree == 0 || bit < degree) {
      numbers.push_back(degree == 0 ? 1 : row[static_cast<std::size_t>(bit) + 1]);
      continue;
    }
    const auto before = [&](int steps) { return numbers[static_cast<std::size_t>(bit - steps)]; };
    std::uint32_t number = before(degree);
    for (int power = 1; power <= degree; ++power) {
      if ((polynomial >> (degree - power) & 1) != 0) number ^= before(power) << power;
    }
    numbers.push_back(number);
  }
  for (int bit = 0; bit < kSobolBits; ++bit) numbers[static_cast<std::size_t>(bit)] <<= kSobolBits - 1 - bit;
  return numbers;
}

// Flips each bit or not, by the bits before it, and adds random bits behind the last one.
double owen_scrambled(std::uint32_t bits, std::uint64_t seed, std::uint32_t dimension) {
  // The bits before a bit are a node of a binary tree, numbered from 1: the children of k are 2 k and 2 k + 1. A random
  // word holds the flips of six levels of the tree below a node, numbered likewise.
  constexpr int levels = 6;
  const auto random_word = [&](std::uint64_t node) {
    return base::RandomStream(seed, dimension, base::Purpose::suggestion, node).bits();
  };
  std::uint64_t node = 1;
  std::uint64_t scrambled = 0;
  for (int remaining = kSobolBits; remaining > 0;) {
    const std::uint64_t flips = random_word(node);
    std::uint64_t below = 1;
    for (int level = 0; level < levels && remaining > 0; ++level) {
      const std::uint64_t own = bits >> --remaining & 1;
      scrambled = scrambled << 1 | (own ^ (flips >> below & 1));
      below = below << 1 | own;
      node = node << 1 | own;
    }
  }
  constexpr int more = 53 - kSobolBits;
  return static_cast<double>(scrambled << more | random_word(node) >> (64 - more)) * 0x1p-53;
}

bool is_prime(std::uint64_t number) {
  for (std::uint64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

}  // namespace

const std::size_t SobolSequence::kMostDimensions = kSobolDirections.size();

SobolSequence::SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed) : seed_(seed) {
  for (std::size_t i = 0; i < dimensions; ++i) directions_.push_back(sobol_directions(i));
}

std::vector<double> SobolSequence::point(std::uint64_t index) const {
  const std::uint64_t gray_code = index ^ index >> 1;
  std::vector<double> point;
  for (std::size_t i = 0; i < directions_.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t bit = 0; bit < directions_[i].size(); ++bit) {
      if ((gray_code >> bit & 1) != 0) bits ^= directions_[i][bit];
    }
    point.push_back(seed_ ? owen_scrambled(bits, *seed_, static_cast<std::uint32_t>(i)) : bits * 0x1p-32);
  }
  return point;
}

HaltonSequence::HaltonSequence(std::size_t dimensions, std::optional<std::uint64_t> seed) {
  std::uint64_t base = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    do ++base;
    while (!is_prime(base));
    Dimension& dimension = dimensions_.emplace_back();
    dimension.base = base;
    if (!seed) continue;
    base::RandomStream random(*seed, static_cast<std::uint32_t>(i), base::Purpose::suggestion);
    for (double unit = 1; unit > 0x1p-53; unit /= static_cast<double>(base))
      dimension.digits.push_back({.multiplier = 1 + random.below(base - 1), .shift = random.below(base)});
  }
}

std::vector<double> HaltonSequence::point(std::uint64_t index) const {
  std::vector<double> point;
  for (const auto& [base, digits] : dimensions_) {
    const double inverse = 1 / static_cast<double>(base);
    double coordinate = 0;
    double unit = inverse;
    std::uint64_t rest = index;
    for (std::size_t position = 0; rest > 0 || position < digits.size(); ++position) {
      const Digit digit = position < digits.size() ? digits[position] : Digit();
      coordinate += static_cast<double>((rest % base * digit.multiplier + digit.shift) % base) * unit;
      rest /= base;
      unit *= inverse;
    }
    point.push_back(std::min(coordinate, kLargestCoordinate));
  }
  return point;
}

}  // namespace cadre::tune
