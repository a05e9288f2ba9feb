/// \file
/// Random numbers for functions that Cadre calls, such as one of a search space or an explore function, and for
/// searchers and schedulers of the program.
#pragma once

#include <cstdint>
#include <memory>

namespace cadre {

namespace base {
class RandomStream;
}

/// A random stream of one trial and one purpose: it gives the same numbers in every run of the experiment, and after a
/// restore. It is a standard uniform random bit generator, so it works with the distributions of the standard library
/// and std::ranges::shuffle. Valid during the call that it was passed to, in that call's thread.
///
/// Source: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011); docs/formats.md, "Random
/// streams", specifies every number that it gives.
class Random {
 public:
  using result_type = std::uint64_t;  ///< type of the numbers, as the standard library requires it

  /// Wraps a stream; called by Cadre only.
  explicit Random(base::RandomStream& stream) : stream_(&stream) {}

  double uniform();  ///< returns a number from 0 (included) to 1 (excluded), a multiple of 2^-53
  double normal();   ///< returns a number of the normal distribution with mean 0 and standard deviation 1
  std::uint64_t below(std::uint64_t n);  ///< returns an integer from 0 to n - 1, each equally likely; n from 1 to 2^53

  result_type operator()();                                  ///< returns 64 random bits
  static constexpr result_type min() { return 0; }           ///< returns the smallest result of operator()
  static constexpr result_type max() { return UINT64_MAX; }  ///< returns the largest result of operator()

 private:
  base::RandomStream* stream_;
};

/// The random numbers of one trial for a searcher or a scheduler of the program, or of one example of a dataset: the
/// same for the same seed, trial and use, and independent of all that Cadre draws.
class KeyedRandom {
 public:
  /// Begins the stream. `use`, from 0 to 2^24 - 1, distinguishes the purposes of one trial's numbers; throws
  /// InvalidArgument for a greater one.
  KeyedRandom(std::uint64_t seed, std::uint32_t trial, std::uint32_t use = 0);
  /// Begins a stream of another kind: the numbers by which one example of a dataset is changed in one epoch, as a
  /// DataLoader passes them to transforms. `layer` distinguishes transforms of one another's results. Throws
  /// InvalidArgument from 2^24 epochs, 2^40 examples or 2^8 layers on.
  static KeyedRandom of_example(std::uint64_t seed, std::uint64_t epoch, std::uint64_t example,
                                std::uint32_t layer = 0);
  ~KeyedRandom();
  KeyedRandom(const KeyedRandom&) = delete;
  KeyedRandom& operator=(const KeyedRandom&) = delete;

  Random& operator*() { return random_; }    ///< returns the numbers
  Random* operator->() { return &random_; }  ///< returns the numbers

 private:
  explicit KeyedRandom(const base::RandomStream& stream);

  std::unique_ptr<base::RandomStream> stream_;
  Random random_;
};

}  // namespace cadre
