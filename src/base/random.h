// Random numbers that depend on nothing but (seed, trial, purpose, index): the same on every machine, in every order of
// events, and after a restore.
//
// Source: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// docs/formats.md defines how streams map to it; a change there changes every experiment.
#pragma once

#include <array>
#include <cstdint>

namespace cadre::base {

// Returns one block of the generator: four 32-bit words for a counter of four and a key of two.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// The use of a stream. Numbers are part of the format: never reuse one.
enum class Purpose : std::uint32_t {
  search_space = 1,           // a trial's initial values
  exploit = 2,                // the choice of a donor
  explore = 3,                // the changes to the donor's config
  training = 4,               // the seed for user code
  upload_retry = 5,           // the pause after a failed upload
  dataset_shuffle = 6,        // the position of each row in random_shuffle
  dataset_epoch = 7,          // the order of a dataset's pieces in an epoch
  dataset_local_shuffle = 8,  // the order of neighbouring rows
  bracket = 9,                // the bracket of a trial
  suggestion = 10,            // a searcher's suggestion
  own = 11,                   // searchers and schedulers of programs
  regret_bound = 12,          // points at which a regret bound is looked for
  augmentation = 13,          // changes of a dataset's examples
  dataset_sample = 14,        // the choice of each row in random_sample
};

// The random numbers of one trial for one purpose. A value: copying it copies its position.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint32_t trial, Purpose purpose, std::uint64_t index = 0)
      : seed_(seed), trial_(trial), purpose_(purpose), index_(index) {}

  std::uint64_t bits();                  // 64 bits; each call increments the index
  double uniform();                      // [0, 1) with 53 bits
  std::uint64_t below(std::uint64_t n);  // 0 to n - 1; n from 1 to 2^53
  double normal();                       // mean 0, standard deviation 1; uses two numbers of the stream

  std::uint64_t index() const { return index_; }
  void seek(std::uint64_t index) { index_ = index; }

 private:
  std::uint64_t seed_;
  std::uint32_t trial_;
  Purpose purpose_;
  std::uint64_t index_;
};

}  // namespace cadre::base
