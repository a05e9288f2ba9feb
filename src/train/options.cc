#include "train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cadre/faults.h"
#include "cadre/stored.h"
#include "control/config_struct.h"
#include "control/object_uses.h"
#include "control/objective.h"
#include "control/option_checks.h"
#include "resources/machine_labels.h"
#include "store/held_objects.h"
#include "store/object_files.h"
#include "store/run_directory.h"
#include "train/session.h"
#include "train/validation_check.h"
#include "worker/entries.h"
#include "worker/group_backend.h"
#include "worker/host.h"
#include "worker/parent_run.h"

// Members that are not stored: callbacks belong to the program; name and places change when a run is moved.
template <>
inline constexpr auto cadre::kNotStored<cadre::train::RunConfig> =
    member_list("name", "if_exists", "storage_path", "publish_config", "callbacks");

namespace cadre::train {

namespace {

struct StoredRange {
  std::int64_t min = 1;
  std::int64_t max = 1;
};

}  // namespace

Value stored_form(const WorkerRange& range) { return cadre::to_stored(StoredRange{range.min, range.max}); }

void read_stored(WorkerRange& range, const cadre::Stored& stored) {
  const auto [min, max] = cadre::from_stored<StoredRange>(stored);
  range = {min, max};
}

namespace {

Resources selectors(const ScalingConfig& scaling) {
  return {.cpus = 0, .accelerator_type = scaling.accelerator_type, .labels = scaling.label_selector};
}

// Checks the resources of a worker. `name` is the option's.
void check_resources(const Resources& resources, const std::string& name, bool may_be_nothing, Faults& faults) {
  const std::string fault = fault_of_resources(resources);
  faults.unless(fault.empty(), name, fault);
  double sum = resources.cpus + resources.gpus;
  for (const auto& [custom, amount] : resources.custom) sum += amount;
  faults.unless(!fault.empty() || may_be_nothing || sum > 0, name, "a worker needs some amount of something");
}

void check_scaling(const ScalingConfig& scaling, Faults& faults) {
  const auto [fewest, most] = scaling.num_workers;
  faults.unless(fewest >= 1, "scaling_config num_workers",
                fmt::format("it is {}; a run has at least 1 worker", fewest));
  faults.unless(most >= fewest, "scaling_config num_workers",
                fmt::format("it is from {} to {}; give the smaller number first", fewest, most));
  control::check_time_above_0("scaling_config elastic_resize_monitor_interval", scaling.elastic_resize_monitor_interval,
                              faults);
  const std::string name = "scaling_config resources_per_worker";
  const Resources resources =
      scaling.resources_per_worker.value_or(ScalingConfig{.use_gpu = scaling.use_gpu}.worker_resources());
  check_resources(resources, name, /*may_be_nothing=*/false, faults);
  const std::string label_fault = resources::fault_of_selectors(selectors(scaling));
  faults.unless(label_fault.empty(), "scaling_config label_selector", label_fault);
  Resources both = resources;
  const std::string contradiction = resources::add_selectors(both, selectors(scaling));
  faults.unless(contradiction.empty(), "scaling_config", contradiction);
  faults.unless((resources.gpus > 0) == scaling.use_gpu, name,
                fmt::format("it has {:g} gpus, and use_gpu is {}: set both, or none", resources.gpus, scaling.use_gpu));
}

void check_validation(const ValidationConfig& validation, Faults& faults) {
  const std::string& function = validation.function.name;
  if (validation.function.host_function.is_set()) {
    worker::check_host(function, "validation function", faults);
  } else {
    faults.unless(function.empty() || worker::find_entry(function) != nullptr, "validation function",
                  fmt::format("this program has no function \"{0}\"; give it as fn<{0}>", function));
  }
  try {
    check_validation_config(validation.config, "it has a config");
  } catch (const InvalidArgument& error) {
    faults.unless(false, "validation config", error.what());
  }
  check_resources(validation.resources, "validation resources", /*may_be_nothing=*/true, faults);
  Resources selected;
  for (const Resources& bundle : validation.workers.bundles) {
    check_resources(bundle, "validation workers", /*may_be_nothing=*/true, faults);
    const std::string contradiction = resources::add_selectors(selected, bundle);
    faults.unless(contradiction.empty(), "validation workers", contradiction);
  }
  const std::size_t bundles = validation.workers.bundles.size();
  faults.unless(validation.workers.strategy != PlacementStrategy::strict_spread || bundles < 2, "validation workers",
                fmt::format("strict_spread needs {} machines, and there is one", bundles));
  if (validation.timeout) control::check_time_above_0("validation timeout", *validation.timeout, faults);
  faults.unless(validation.max_in_flight.value_or(1) >= 1, "validation max_in_flight",
                fmt::format("it is {}; at least 1 validation goes on at a time", validation.max_in_flight.value_or(1)));
  faults.unless(validation.max_retries >= -1, "validation max_retries",
                fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", validation.max_retries));
}

void check_datasets(const Dict& datasets, Faults& faults) {
  std::set<std::string> names;
  for (const auto& [name, dataset] : datasets) {
    faults.unless(!name.empty(), "datasets", "one of them has no name");
    faults.unless(names.insert(name).second, "datasets", "there are two of the name \"" + name + "\"");
  }
}

void check_run_config(const RunConfig& run, Faults& faults) {
  control::check_name("run_config name", run.name, run.if_exists, "run", faults);
  const auto check_budget = [&](const char* name, std::int64_t most) {
    faults.unless(most >= -1, std::string("failure_config ") + name,
                  fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", most));
  };
  check_budget("max_failures", run.failure_config.max_failures);
  check_budget("max_start_failures", run.failure_config.max_start_failures);
  check_budget("max_preemption_failures", run.failure_config.max_preemption_failures);
  control::check_time("run_config stop_grace_period", run.stop_grace_period, faults);
  control::check_time_above_0("run_config collective_timeout", run.collective_timeout, faults);
  control::check_publish_config("run_config publish_config", run.publish_config, faults);
  faults.unless(run.verbose == 0 || run.verbose == 1, "run_config verbose",
                fmt::format("it is {}; it must be 0 or 1", run.verbose));
  faults.unless(std::ranges::find(run.callbacks, nullptr) == run.callbacks.end(), "run_config callbacks",
                "one of them is empty");
  const CheckpointConfig& checkpoints = run.checkpoint_config;
  control::check_retention(checkpoints, {}, faults);
  faults.unless(!checkpoints.checkpoint_frequency && !checkpoints.checkpoint_at_end, "checkpoint_config",
                "checkpoint_frequency and checkpoint_at_end are for trainable classes: a training function reports its "
                "checkpoints itself");
}

void check_backend(const Description& description, Faults& faults) {
  if (description.backend.empty()) return;
  const worker::GroupBackend* backend = worker::find_group_backend(description.backend);
  if (backend == nullptr)
    return faults.unless(false, "backend",
                         fmt::format("this program has no library \"{}\" for worker groups; it has: {}",
                                     description.backend, fmt::join(worker::group_backend_names(), ", ")));
  try {
    backend->check(description.backend_options);
  } catch (const InvalidArgument& error) {
    faults.unless(false, description.backend + "_config", error.what());
  }
}

void check_objects(const Dict& description, Faults& faults) {
  const worker::ParentRun* const parent = worker::ParentRun::current();
  const auto is_of_parent = [&](const std::string& id) {
    return parent != nullptr &&
           store::fault_of_object(store::object_path(parent->experiment(), id), id, /*contents=*/false).empty();
  };
  for (const auto& [place, id] : control::object_uses(description))
    faults.unless(store::find_held_object(id).has_value() || is_of_parent(id), place,
                  "the object " + id + " is gone: no ObjectRef names it. Keep what cadre::put returned until fit()");
  for (const auto& [place, fault] : control::missing_checkpoints(description)) faults.unless(false, place, fault);
}

// Adds faults for keys that the training function's struct has no member for, and for values that it refuses.
void check_loop_config(const Description& description, Faults& faults) {
  const std::string& function = description.loop.name;
  const Config& config = description.options.train_loop_config;
  const auto* type = description.loop.host_function.is_set() ? nullptr : loop_structs().find(function);
  if (type == nullptr || type->check == nullptr) return;
  for (const auto& [key, value] : config)
    faults.unless(control::has_member(*type, key), "train_loop_config \"" + key + "\"",
                  control::no_such_member(*type, function));
  try {
    type->check(config);
  } catch (const Error& error) {
    faults.unless(false, "train_loop_config", fmt::format("{} cannot take it: {}", function, error.what()));
  }
}

}  // namespace

Resources ScalingConfig::worker_resources() const {
  Resources resources = resources_per_worker.value_or(Resources{.cpus = 1, .gpus = use_gpu ? 1.0 : 0.0});
  resources::add_selectors(resources, selectors(*this));
  return resources;
}

void resolve(TrainerOptions& options) {
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (checkpoints.checkpoint_score_attribute)
    control::complete(*checkpoints.checkpoint_score_attribute, checkpoints.checkpoint_score_order);
}

void check_options(const Description& description, bool new_run) {
  Faults faults;
  if (description.loop.host_function.is_set()) {
    worker::check_host(description.loop.name, "loop", faults);
  } else {
    faults.unless(worker::find_entry(description.loop.name) != nullptr, "loop",
                  fmt::format("this program has no function \"{0}\"; give it as fn<{0}>. It has: {1}",
                              description.loop.name, fmt::join(worker::entry_names(), ", ")));
  }
  check_loop_config(description, faults);
  check_backend(description, faults);
  check_scaling(description.options.scaling_config, faults);
  check_run_config(description.options.run_config, faults);
  check_validation(description.options.validation, faults);
  check_datasets(description.options.datasets, faults);
  if (new_run) check_objects(describe(description), faults);
  faults.throw_if_any("the training run");
}

namespace {

// Everything but the options.
struct StoredRun {
  std::string kind = store::training_run_tenant.kind;
  Loop loop = {};
  std::string backend = {};
  Config backend_options = {};
};
const std::set<std::string_view> kKeysOfRun{"kind", "loop", "backend", "backend_options"};

Dict joined(const Value& first, const Value& second) {
  Dict entries = first.dict();
  entries.insert(entries.end(), second.dict().begin(), second.dict().end());
  return entries;
}

}  // namespace

Dict describe(const Description& description) {
  const StoredRun run{
      .loop = description.loop, .backend = description.backend, .backend_options = description.backend_options};
  return joined(cadre::to_stored(run), cadre::to_stored(description.options));
}

Description to_description(const Value& form) {
  const cadre::Stored stored(form);
  Dict of_run;
  for (const auto& [key, entry] : stored.dict()) {
    if (kKeysOfRun.contains(key)) of_run.emplace_back(key, entry);
  }
  auto run = cadre::from_value<StoredRun>(of_run);
  Description description{
      .loop = run.loop, .backend = std::move(run.backend), .backend_options = std::move(run.backend_options)};
  cadre::from_stored(description.options, stored, kKeysOfRun);
  return description;
}

Description parse_description(const Value& value, const std::string& source) {
  return cadre::reading(source, [&] {
    if (Config(cadre::Stored(value).dict()).get<std::string>("kind", "") != store::training_run_tenant.kind)
      throw StorageError(source + " describe no training run");
    return to_description(value);
  });
}

}  // namespace cadre::train
