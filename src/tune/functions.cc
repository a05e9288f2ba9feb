#include "tune/functions.h"

namespace cadre::tune {

// Static locals, because other files' static objects use the registries while they are initialised.
base::Registry<detail::SamplePointer>& sample_functions() {
  static base::Registry<detail::SamplePointer> instance;
  return instance;
}

base::Registry<detail::ExplorePointer>& explore_functions() {
  static base::Registry<detail::ExplorePointer> instance;
  return instance;
}

base::Registry<detail::StopPointer>& stop_functions() {
  static base::Registry<detail::StopPointer> instance;
  return instance;
}

base::Registry<detail::ResourcePointer>& resource_functions() {
  static base::Registry<detail::ResourcePointer> instance;
  return instance;
}

base::Registry<TrainableType>& trainable_types() {
  static base::Registry<TrainableType> instance;
  return instance;
}

bool detail::register_sample_function(std::string_view name, SamplePointer function) {
  sample_functions().add(name, function);
  return true;
}

bool detail::register_explore_function(std::string_view name, ExplorePointer function) {
  explore_functions().add(name, function);
  return true;
}

bool detail::register_resource_function(std::string_view name, ResourcePointer function) {
  resource_functions().add(name, function);
  return true;
}

bool detail::register_stop_function(std::string_view name, StopPointer function) {
  stop_functions().add(name, function);
  return true;
}

}  // namespace cadre::tune
