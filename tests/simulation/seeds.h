// The seeds of a simulation, as the environment chooses them.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace cadre::test_support {

inline std::uint64_t number_from_environment(const char* name, std::uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// One world is made from each seed. SIMULATION_SEEDS is the number of seeds, SIMULATION_FIRST_SEED the first one; the
// constructor has the defaults.
class Seeds {
 public:
  explicit Seeds(std::uint64_t default_count, std::uint64_t default_first = 0)
      : first_(number_from_environment("SIMULATION_FIRST_SEED", default_first)),
        count_(number_from_environment("SIMULATION_SEEDS", default_count)) {}

  std::uint64_t first() const { return first_; }
  std::uint64_t count() const { return count_; }
  // Returns true if everything that a simulation counts happens in one of so many worlds at least. It need not in the
  // few that are repeated after a failure.
  bool are_many() const { return count_ >= 60; }

 private:
  std::uint64_t first_;
  std::uint64_t count_;
};

}  // namespace cadre::test_support
