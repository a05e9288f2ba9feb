#include "tune/functions.h"

#include "cadre/stored.h"
#include "worker/host.h"

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

namespace {

Value call_host(const auto& function, List arguments) {
  return worker::host_of(function.function).call(function.host_function, std::move(arguments));
}

}  // namespace

Value call(const SampleFrom& function, const Config& config, Random& random) {
  if (function.host_function.is_set()) return call_host(function, {config.value()});
  return (*sample_functions().find(function.function))(config, random);
}

Config call(const ExploreFunction& function, const Config& config, Random& random) {
  if (function.host_function.is_set()) return Config(call_host(function, {config.value()}).dict());
  return (*explore_functions().find(function.function))(config, random);
}

bool call(const FunctionStopper& function, const std::string& trial_id, const Metrics& result) {
  if (function.host_function.is_set()) return call_host(function, {trial_id, result.value()}).get<bool>();
  return (*stop_functions().find(function.function))(trial_id, result);
}

bool stops_all(const FunctionStopper& function) {
  return function.host_function.is_set() && call_host(function, {}).get<bool>();
}

PlacementGroup call(const ResourceFunction& function, const Config& config) {
  if (function.host_function.is_set()) return cadre::from_value<PlacementGroup>(call_host(function, {config.value()}));
  return (*resource_functions().find(function.function))(config);
}

const TrainableType* type_of(const Trainable& trainable) {
  return trainable.host_function.is_set() || trainable.program.is_set() ? nullptr
                                                                        : trainable_types().find(trainable.name);
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
