// Functions of the program that take part in an experiment, by name, and what training functions take.
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

// What is known of a trainable beside how it is run.
struct TrainableType {
  detail::ConfigType config = {};  // without members where it takes a Config
  TrainableMethods methods = {};
};
base::Registry<TrainableType>& trainable_types();

}  // namespace cadre::tune
