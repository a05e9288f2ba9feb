#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "cadre/error.h"
#include "cadre/random.h"

namespace cadre::base {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::uint64_t RandomStream::bits() {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto block = philox({low(index_), low(index_ >> 32), trial_, static_cast<std::uint32_t>(purpose_)},
                            {low(seed_), low(seed_ >> 32)});
  ++index_;
  return std::uint64_t{block[1]} << 32 | block[0];
}

double RandomStream::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

std::uint64_t RandomStream::below(std::uint64_t n) {
  // Rounding can give n itself, but only for n near 2^53.
  return std::min(static_cast<std::uint64_t>(uniform() * static_cast<double>(n)), n - 1);
}

// Source: Box and Muller, "A note on the generation of random normal deviates" (1958).
double RandomStream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));  // 1 - uniform() is greater than 0
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace cadre::base

namespace cadre {
namespace {

// Returns the index at which the numbers of a use begin.
std::uint64_t begin_of(std::uint32_t use) {
  if (use >> 24 != 0)
    throw InvalidArgument("there are no random numbers for use " + std::to_string(use) +
                          " of a trial: give a use from 0 to 2^24 - 1");
  return std::uint64_t{use} << 40;
}

}  // namespace

double Random::uniform() { return stream_->uniform(); }
double Random::normal() { return stream_->normal(); }
std::uint64_t Random::below(std::uint64_t n) { return stream_->below(n); }
Random::result_type Random::operator()() { return stream_->bits(); }

KeyedRandom::KeyedRandom(std::uint64_t seed, std::uint32_t trial, std::uint32_t use)
    : KeyedRandom(base::RandomStream(seed, trial, base::Purpose::own, begin_of(use))) {}
KeyedRandom::KeyedRandom(const base::RandomStream& stream)
    : stream_(std::make_unique<base::RandomStream>(stream)), random_(*stream_) {}

KeyedRandom KeyedRandom::of_example(std::uint64_t seed, std::uint64_t epoch, std::uint64_t example,
                                    std::uint32_t layer) {
  if (epoch >> 24 != 0 || example >> 40 != 0 || layer >> 8 != 0)
    throw InvalidArgument("there are no random numbers for example " + std::to_string(example) + " in epoch " +
                          std::to_string(epoch) + ", layer " + std::to_string(layer));
  const std::uint64_t index = epoch << 40 | example >> 32 << 32 | std::uint64_t{layer} << 24;
  return KeyedRandom(base::RandomStream(seed, static_cast<std::uint32_t>(example), base::Purpose::augmentation, index));
}

KeyedRandom::~KeyedRandom() = default;

}  // namespace cadre
