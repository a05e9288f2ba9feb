// The fields of Resources, for base/archive.h and other code that visits fields.
#pragma once

#include "base/archive.h"
#include "cadre/resources.h"

namespace cadre {

void fields(auto& archive, base::Is<Resources> auto& resources) {
  auto& [cpus, gpus, custom, accelerator_type, labels] = resources;
  archive("cpus", cpus);
  archive("gpus", gpus);
  archive("custom", custom);
  archive.added("accelerator_type", accelerator_type);
  archive.added("labels", labels);
}

}  // namespace cadre
