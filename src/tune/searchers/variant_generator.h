// Draws the configs of trials from a search space.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/tune/search_space.h"

namespace cadre::tune {

struct Variant {
  Config config;
  Dict sampled;  // what was drawn, by path ("model/width"), in the order of the space
};

// The config of a trial. Depends on the space, the seed and the trial's index, and on nothing else: every value is
// drawn in the order of the space from the trial's own stream.
Variant generate_variant(const Space& space, std::uint64_t seed, std::uint32_t trial);

// "lr=0.1000,width=3": sorted by path, only the last part of each path; floats with four digits, other text with
// everything but letters, digits, '_' and '-' as '_'. Source: Ray Tune's experiment tags.
std::string format_variables(const Dict& sampled);

}  // namespace cadre::tune
