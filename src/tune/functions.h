// Registries of the program's functions that take part in an experiment, and of its trainables, by name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "cadre/faults.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/stop.h"
#include "cadre/tune/stoppers/function_stopper.h"
#include "cadre/tune/trainable.h"
#include "worker/host.h"

namespace cadre::tune {

base::Registry<detail::SamplePointer>& sample_functions();
base::Registry<detail::ExplorePointer>& explore_functions();
base::Registry<detail::StopPointer>& stop_functions();
base::Registry<detail::ResourcePointer>& resource_functions();

// Call a function of the program, or of the host.
Value call(const SampleFrom& function, const Config& config, Random& random);
Config call(const ExploreFunction& function, const Config& config, Random& random);
bool call(const FunctionStopper& function, const std::string& trial_id, const Metrics& result);
PlacementGroup call(const ResourceFunction& function, const Config& config);
// Asks a function of the host whether the whole experiment ends; false for one of the program.
bool stops_all(const FunctionStopper& function);

// Registered properties of a trainable, besides the entry that runs it (worker/entries.h).
struct TrainableType {
  detail::ConfigType config = {};  // without members if it takes a Config
  TrainableMethods methods = {};
};
base::Registry<TrainableType>& trainable_types();
// Returns the properties of a trainable of the program; nullptr for one that is not registered or is a host's.
const TrainableType* type_of(const Trainable& trainable);

// Adds faults of the name of a function that must be registered in this program.
template <class T>
void check_registered(const base::Registry<T>& functions, const auto& given, const std::string& option,
                      Faults& faults) {
  const std::string& name = given.function;
  if (given.host_function.is_set()) return worker::check_host(name, option, faults);
  faults.unless(functions.find(name) != nullptr, option,
                "this program has no function \"" + name + "\"; give it as fn<" + name + ">");
  const auto& twice = functions.duplicates();
  faults.unless(std::ranges::find(twice, name) == twice.end(), option,
                "two functions of this program are called \"" + name + "\"");
}

}  // namespace cadre::tune
