#include "resources/amounts.h"

#include <cmath>

namespace cadre::resources {

std::int64_t units(double amount) { return std::llround(amount * static_cast<double>(kUnitsPerWhole)); }

double amount_of(std::int64_t units) { return static_cast<double>(units) / static_cast<double>(kUnitsPerWhole); }

Amounts amounts_of(const Resources& resources) {
  Amounts amounts{{"cpus", units(resources.cpus)}, {"gpus", units(resources.gpus)}};
  for (const auto& [name, amount] : resources.custom) amounts[name] = units(amount);
  return amounts;
}

Resources with_amounts(Resources resources, const Amounts& amounts) {
  resources.cpus = resources.gpus = 0;
  resources.custom.clear();
  for (const auto& [name, amount] : amounts)
    (name == "cpus" ? resources.cpus : name == "gpus" ? resources.gpus : resources.custom[name]) = amount_of(amount);
  return resources;
}

}  // namespace cadre::resources
