#include "cadre/resources.h"

#include "resources/machine_labels.h"

namespace cadre {

Resources PlacementGroup::required_resources() const {
  Resources sum{.cpus = 0};
  for (const Resources& bundle : bundles) {
    sum.cpus += bundle.cpus;
    sum.gpus += bundle.gpus;
    for (const auto& [name, amount] : bundle.custom) sum.custom[name] += amount;
    resources::add_selectors(sum, bundle);
  }
  return sum;
}

}  // namespace cadre
