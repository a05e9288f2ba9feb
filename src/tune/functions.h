// Registries of the program's functions that take part in an experiment, and of its trainables, by name.
#pragma once

#include <string_view>

#include "base/registry.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/stop.h"
#include "cadre/tune/trainable.h"

namespace cadre::tune {

base::Registry<detail::SamplePointer>& sample_functions();
base::Registry<detail::ExplorePointer>& explore_functions();
base::Registry<detail::StopPointer>& stop_functions();
base::Registry<detail::ResourcePointer>& resource_functions();

// Registered properties of a trainable, besides the entry that runs it (worker/entries.h).
struct TrainableType {
  detail::ConfigType config = {};  // without members if it takes a Config
  TrainableMethods methods = {};
};
base::Registry<TrainableType>& trainable_types();

}  // namespace cadre::tune
