// Amounts of resources as numbers that add up exactly.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cadre/resources.h"

namespace cadre::resources {

// Amounts by name, "cpus", "gpus" or a custom one, in units of 1/10000: ten times 0.1 is 1.
using Amounts = std::map<std::string, std::int64_t>;

inline constexpr std::int64_t kUnitsPerWhole = 10'000;
// Returns an amount in units, rounded to the nearest one.
std::int64_t units(double amount);
// Returns the amount, which may be a fraction, of a number of units.
double amount_of(std::int64_t units);

Amounts amounts_of(const Resources& resources);
// Returns the resources with these amounts; what `amounts` does not name becomes 0.
Resources with_amounts(Resources resources, const Amounts& amounts);

}  // namespace cadre::resources
