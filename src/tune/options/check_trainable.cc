#include "tune/options/check_trainable.h"

#include <fmt/format.h>

#include <string>

#include "base/value_limits.h"
#include "tune/functions.h"
#include "tune/program/check_program.h"
#include "tune/resource_needs.h"
#include "worker/entries.h"

namespace cadre::tune {
namespace {

void check_parameters(const Trainable& trainable, Faults& faults) {
  const Config& parameters = trainable.parameters;
  const TrainableType* const type = type_of(trainable);
  if (type != nullptr && !type->methods.is_class) {
    faults.unless(parameters.empty() || type->config.takes_parameters, "with_parameters",
                  trainable.name + " takes no second argument, const Config& parameters");
    faults.unless(!parameters.empty() || !type->config.takes_parameters, "with_parameters",
                  trainable.name + " takes parameters as its second argument, and there are none");
  }
  for (const auto& [key, value] : parameters) {
    const std::size_t bytes = base::stored_bytes(value);
    faults.unless(bytes <= base::max_stored_value_bytes, "with_parameters \"" + key + "\"",
                  fmt::format("it has {} bytes, and at most {} are sent to each trial: put it into the object store "
                              "(cadre::put) and give the reference",
                              bytes, base::max_stored_value_bytes));
  }
  const std::size_t bytes = base::stored_bytes(parameters.value());
  faults.unless(
      bytes <= base::max_parameters_bytes, "with_parameters",
      fmt::format("they have {} bytes together; at most {} are sent to each trial: put what is large into the "
                  "object store (cadre::put)",
                  bytes, base::max_parameters_bytes));
}

void check_class(const Trainable& trainable, const TunerOptions& options, Faults& faults) {
  const auto& [is_class, saves, loads, resets] = trainable.methods;
  const std::string& name = trainable.name;
  const CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  const auto needs_saving = [&](bool asked, const std::string& option) {
    faults.unless(!asked || saves, option, name + " has no save_checkpoint() to write one with");
  };
  needs_saving(checkpoints.checkpoint_frequency.value_or(0) > 0, "checkpoint_config checkpoint_frequency");
  needs_saving(checkpoints.checkpoint_at_end.value_or(false), "checkpoint_config checkpoint_at_end");
  faults.unless(
      saves == loads, "trainable",
      fmt::format("{} has {}() and not {}(): both or none", name, saves ? "save_checkpoint" : "load_checkpoint",
                  saves ? "load_checkpoint" : "save_checkpoint"));
  const bool exploits = options.tune_config.scheduler.held().traits().exploits;
  faults.unless(!exploits || saves || loads, "scheduler",
                fmt::format("its trials continue from checkpoints, and {} has no save_checkpoint() and no "
                            "load_checkpoint()",
                            name));
}

}  // namespace

void check_trainable(const Trainable& trainable, const TunerOptions& options, Faults& faults) {
  if (trainable.program.is_set()) {
    check_program(trainable.program, options, faults);
  } else if (trainable.host_function.is_set()) {
    worker::check_host(trainable.name, "trainable", faults);
  } else {
    faults.unless(
        worker::find_entry(trainable.name) != nullptr, "trainable",
        "\"" + trainable.name + "\" is not registered; give a function as fn<f>, a class as tune::trainable<C>()");
  }
  if (!trainable.resource_function.function.empty()) {
    check_registered(resource_functions(), trainable.resource_function, "resources", faults);
  } else {
    check_resources(placement_group(trainable), faults);
  }
  check_parameters(trainable, faults);
  if (trainable.methods.is_class) check_class(trainable, options, faults);
}

}  // namespace cadre::tune
