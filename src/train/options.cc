#include "train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/archive.h"
#include "base/name.h"
#include "run/config_struct.h"
#include "run/entries.h"
#include "run/group_backend.h"
#include "run/machine_labels.h"
#include "run/object_uses.h"
#include "run/objective.h"
#include "run/parent_run.h"
#include "run/resource_fields.h"
#include "store/held_objects.h"
#include "store/object_files.h"
#include "train/session.h"
#include "train/validation_check.h"

namespace cadre {

void fields(auto& archive, base::Is<Loggers> auto& loggers) {
  auto& [csv, json, tensorboard] = loggers;
  archive("csv", csv);
  archive("json", json);
  archive("tensorboard", tensorboard);
}

namespace train {

void fields(auto& archive, base::Is<LoggingConfig> auto& logging) {
  auto& [loggers, log_to_driver] = logging;
  archive("loggers", loggers);
  archive("log_to_driver", log_to_driver);
}

void fields(auto& archive, base::Is<WorkerRange> auto& range) {
  archive("min", range.min);
  archive("max", range.max);
}

// Times in seconds.
struct StoredScalingConfig {
  WorkerRange num_workers = {};
  bool use_gpu = false;
  std::optional<Resources> resources = {};
  PlacementStrategy strategy = {};
  std::string accelerator_type = {};
  std::map<std::string, std::string> label_selector = {};
  double elastic_resize_monitor_interval = 0;
};

void fields(auto& archive, base::Is<StoredScalingConfig> auto& scaling) {
  auto& [workers, use_gpu, resources, strategy, accelerator_type, label_selector, interval] = scaling;
  archive("num_workers", workers);
  archive("use_gpu", use_gpu);
  archive("resources_per_worker", resources);
  archive("placement_strategy", strategy);
  archive.added("accelerator_type", accelerator_type);
  archive.added("label_selector", label_selector);
  archive("elastic_resize_monitor_interval", interval);
}

struct StoredValidationConfig {
  std::string function = {};
  Config config = {};
  Resources resources = {};
  std::vector<Resources> workers = {};
  PlacementStrategy workers_strategy = {};
  std::optional<double> timeout = {};
  std::optional<std::int64_t> max_in_flight = {};
  std::int64_t max_retries = 0;
  ValidationOrder order = {};
};

void fields(auto& archive, base::Is<StoredValidationConfig> auto& validation) {
  archive("function", validation.function);
  archive("config", validation.config);
  archive("resources", validation.resources);
  archive("workers", validation.workers);
  archive.added("workers_strategy", validation.workers_strategy);
  archive("timeout", validation.timeout);
  archive("max_in_flight", validation.max_in_flight);
  archive("max_retries", validation.max_retries);
  archive("order", validation.order);
}

namespace {

constexpr const char* kKind = "training_run";

struct StoredCheckpointConfig {
  std::optional<std::int64_t> num_to_keep = {};
  std::optional<std::string> score_attribute = {};
  std::optional<Mode> score_order = {};

  static void fields(auto& archive, auto& checkpoints) {
    archive("num_to_keep", checkpoints.num_to_keep);
    archive("checkpoint_score_attribute", checkpoints.score_attribute);
    archive("checkpoint_score_order", checkpoints.score_order);
  }
};

StoredCheckpointConfig to_stored(const CheckpointConfig& checkpoints) {
  StoredCheckpointConfig stored{.num_to_keep = checkpoints.num_to_keep,
                                .score_order = checkpoints.checkpoint_score_order};
  if (checkpoints.checkpoint_score_attribute) stored.score_attribute = checkpoints.checkpoint_score_attribute->name;
  return stored;
}

CheckpointConfig to_checkpoint_config(const StoredCheckpointConfig& stored) {
  CheckpointConfig checkpoints{.num_to_keep = stored.num_to_keep, .checkpoint_score_order = stored.score_order};
  if (stored.score_attribute) checkpoints.checkpoint_score_attribute = *stored.score_attribute;
  run::drop_order_of_nothing(checkpoints);
  return checkpoints;
}

// Times in seconds.
struct StoredRunConfig {
  std::int64_t max_failures = 0;
  std::int64_t max_start_failures = 0;
  std::int64_t max_preemption_failures = 0;
  StoredCheckpointConfig checkpoint_config = {};
  LoggingConfig logging_config = {};
  double collective_timeout = 0;
  double stop_grace_period = 0;
  int verbose = 0;
  bool chdir_to_rank_dir = false;

  static void fields(auto& archive, auto& run) {
    archive("max_failures", run.max_failures);
    archive("max_start_failures", run.max_start_failures);
    archive("max_preemption_failures", run.max_preemption_failures);
    archive("checkpoint_config", run.checkpoint_config);
    archive.added("logging_config", run.logging_config);
    archive("collective_timeout", run.collective_timeout);
    archive("stop_grace_period", run.stop_grace_period);
    archive("verbose", run.verbose);
    archive.added("chdir_to_rank_dir", run.chdir_to_rank_dir);
  }
};

struct Stored {
  std::string kind = kKind;
  std::string loop = {};
  std::string backend = {};
  Config backend_options = {};
  Config train_loop_config = {};
  StoredScalingConfig scaling_config = {};
  StoredRunConfig run_config = {};
  StoredValidationConfig validation = {};
  Config datasets = {};

  static void fields(auto& archive, auto& stored) {
    archive("kind", stored.kind);
    archive("loop", stored.loop);
    archive("backend", stored.backend);
    archive("backend_options", stored.backend_options);
    archive("train_loop_config", stored.train_loop_config);
    archive("scaling_config", stored.scaling_config);
    archive("run_config", stored.run_config);
    archive.added("validation", stored.validation);
    archive.added("datasets", stored.datasets);
  }
};

bool is_time(Seconds time) { return std::isfinite(time.count()) && time.count() >= 0; }

class Faults {
 public:
  void unless(bool good, const std::string& option, const std::string& what) {
    if (!good) text_ += "\n  " + option + ": " + what;
  }
  void throw_if_any(const std::string& subject) const {
    if (!text_.empty()) throw InvalidArgument(subject + " cannot be run:" + text_);
  }

 private:
  std::string text_;
};

Resources selectors(const ScalingConfig& scaling) {
  return {.cpus = 0, .accelerator_type = scaling.accelerator_type, .labels = scaling.label_selector};
}

// Checks the resources of a worker. `name` is the option's.
void check_resources(const Resources& resources, const std::string& name, bool may_be_nothing, Faults& faults) {
  const auto is_amount = [](double amount) { return std::isfinite(amount) && amount >= 0; };
  bool good = is_amount(resources.cpus) && is_amount(resources.gpus);
  double sum = resources.cpus + resources.gpus;
  for (const auto& [custom, amount] : resources.custom) {
    good = good && is_amount(amount) && !custom.empty();
    sum += amount;
  }
  faults.unless(good, name, "amounts must be numbers from 0 on, and have names");
  faults.unless(!good || may_be_nothing || sum > 0, name, "a worker needs some amount of something");
  const std::string label_fault = run::fault_of_selectors(resources);
  faults.unless(label_fault.empty(), name, label_fault);
}

void check_scaling(const ScalingConfig& scaling, Faults& faults) {
  const auto [fewest, most] = scaling.num_workers;
  faults.unless(fewest >= 1, "scaling_config num_workers",
                fmt::format("it is {}; a run has at least 1 worker", fewest));
  faults.unless(most >= fewest, "scaling_config num_workers",
                fmt::format("it is from {} to {}; give the smaller number first", fewest, most));
  const Seconds interval = scaling.elastic_resize_monitor_interval;
  faults.unless(is_time(interval) && interval.count() > 0, "scaling_config elastic_resize_monitor_interval",
                fmt::format("it is {:g} s; it must be above 0", interval.count()));
  const std::string name = "scaling_config resources_per_worker";
  const Resources resources =
      scaling.resources_per_worker.value_or(ScalingConfig{.use_gpu = scaling.use_gpu}.worker_resources());
  check_resources(resources, name, /*may_be_nothing=*/false, faults);
  const std::string label_fault = run::fault_of_selectors(selectors(scaling));
  faults.unless(label_fault.empty(), "scaling_config label_selector", label_fault);
  Resources both = resources;
  const std::string contradiction = run::add_selectors(both, selectors(scaling));
  faults.unless(contradiction.empty(), "scaling_config", contradiction);
  faults.unless((resources.gpus > 0) == scaling.use_gpu, name,
                fmt::format("it has {:g} gpus, and use_gpu is {}: set both, or none", resources.gpus, scaling.use_gpu));
}

void check_validation(const ValidationConfig& validation, Faults& faults) {
  const std::string& function = validation.function.name;
  faults.unless(function.empty() || run::find_entry(function) != nullptr, "validation function",
                fmt::format("this program has no function \"{}\"; make it with train::validator<f>()", function));
  try {
    check_validation_config(validation.config, "it has a config");
  } catch (const InvalidArgument& error) {
    faults.unless(false, "validation config", error.what());
  }
  check_resources(validation.resources, "validation resources", /*may_be_nothing=*/true, faults);
  Resources selected;
  for (const Resources& bundle : validation.workers.bundles) {
    check_resources(bundle, "validation workers", /*may_be_nothing=*/true, faults);
    const std::string contradiction = run::add_selectors(selected, bundle);
    faults.unless(contradiction.empty(), "validation workers", contradiction);
  }
  const std::size_t bundles = validation.workers.bundles.size();
  faults.unless(validation.workers.strategy != PlacementStrategy::strict_spread || bundles < 2, "validation workers",
                fmt::format("strict_spread needs {} machines, and there is one", bundles));
  const Seconds timeout = validation.timeout.value_or(Seconds(1));
  faults.unless(is_time(timeout) && timeout.count() > 0, "validation timeout",
                fmt::format("it is {:g} s; it must be above 0", timeout.count()));
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
  if (!run.name.empty()) {
    const std::string fault = base::fault_of_file_name(run.name);
    faults.unless(fault.empty(), "run_config name", "\"" + run.name + "\" cannot name a directory: " + fault);
  }
  faults.unless(run.if_exists != IfExists::restore || !run.name.empty(), "run_config name",
                "there is none, and if_exists is IfExists::restore: the run to continue is found by its name");
  const auto check_budget = [&](const char* name, std::int64_t most) {
    faults.unless(most >= -1, std::string("failure_config ") + name,
                  fmt::format("it is {}; it must be 0 or more, or -1 for retries without limit", most));
  };
  check_budget("max_failures", run.failure_config.max_failures);
  check_budget("max_start_failures", run.failure_config.max_start_failures);
  check_budget("max_preemption_failures", run.failure_config.max_preemption_failures);
  faults.unless(is_time(run.stop_grace_period), "run_config stop_grace_period",
                fmt::format("it is {:g} s; it must be 0 or more", run.stop_grace_period.count()));
  faults.unless(is_time(run.collective_timeout) && run.collective_timeout.count() > 0, "run_config collective_timeout",
                fmt::format("it is {:g} s; it must be above 0", run.collective_timeout.count()));
  const PublishConfig& publish = run.publish_config;
  faults.unless(is_time(publish.interval) && publish.interval.count() > 0, "run_config publish_config interval",
                fmt::format("it is {:g} s; it must be above 0", publish.interval.count()));
  faults.unless(is_time(publish.patience), "run_config publish_config patience",
                fmt::format("it is {:g} s; it must be 0 or more", publish.patience.count()));
  faults.unless(run.verbose == 0 || run.verbose == 1, "run_config verbose",
                fmt::format("it is {}; it must be 0 or 1", run.verbose));
  faults.unless(std::ranges::find(run.callbacks, nullptr) == run.callbacks.end(), "run_config callbacks",
                "one of them is empty");
  const CheckpointConfig& checkpoints = run.checkpoint_config;
  faults.unless(!checkpoints.num_to_keep || *checkpoints.num_to_keep >= 1, "checkpoint_config num_to_keep",
                fmt::format("it is {}; keep at least 1 checkpoint, or leave it out to keep all",
                            checkpoints.num_to_keep.value_or(0)));
  const std::string score_fault = run::fault_of(checkpoints.checkpoint_score_attribute.value_or(Objective()),
                                                checkpoints.checkpoint_score_order, "checkpoint_score_order");
  faults.unless(score_fault.empty(), "checkpoint_config checkpoint_score_attribute", score_fault);
  faults.unless(!checkpoints.checkpoint_frequency && !checkpoints.checkpoint_at_end, "checkpoint_config",
                "checkpoint_frequency and checkpoint_at_end are for trainable classes: a training function reports its "
                "checkpoints itself");
}

void check_backend(const Description& description, Faults& faults) {
  if (description.backend.empty()) return;
  const run::GroupBackend* backend = run::find_group_backend(description.backend);
  if (backend == nullptr)
    return faults.unless(false, "backend",
                         fmt::format("this program has no library \"{}\" for worker groups; it has: {}",
                                     description.backend, fmt::join(run::group_backend_names(), ", ")));
  try {
    backend->check(description.backend_options);
  } catch (const InvalidArgument& error) {
    faults.unless(false, description.backend + "_config", error.what());
  }
}

void check_objects(const Dict& description, Faults& faults) {
  const run::ParentRun* const parent = run::ParentRun::current();
  const auto is_of_parent = [&](const std::string& id) {
    return parent != nullptr &&
           store::fault_of_object(store::object_path(parent->experiment(), id), id, /*contents=*/false).empty();
  };
  for (const auto& [place, id] : run::object_uses(description))
    faults.unless(store::find_held_object(id).has_value() || is_of_parent(id), place,
                  "the object " + id + " is gone: no ObjectRef names it. Keep what cadre::put returned until fit()");
}

// Adds faults for keys that the training function's struct has no member for, and for values that it refuses.
void check_loop_config(const Description& description, Faults& faults) {
  const std::string& function = description.loop.name;
  const Config& config = description.options.train_loop_config;
  const auto* type = loop_structs().find(function);
  if (type == nullptr || type->check == nullptr) return;
  for (const auto& [key, value] : config)
    faults.unless(run::has_member(*type, key), "train_loop_config \"" + key + "\"",
                  run::no_such_member(*type, function));
  try {
    type->check(config);
  } catch (const Error& error) {
    faults.unless(false, "train_loop_config", fmt::format("{} cannot take it: {}", function, error.what()));
  }
}

}  // namespace

Resources ScalingConfig::worker_resources() const {
  Resources resources = resources_per_worker.value_or(Resources{.cpus = 1, .gpus = use_gpu ? 1.0 : 0.0});
  run::add_selectors(resources, selectors(*this));
  return resources;
}

void resolve(TrainerOptions& options) {
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (checkpoints.checkpoint_score_attribute)
    run::complete(*checkpoints.checkpoint_score_attribute, checkpoints.checkpoint_score_order);
}

void check_options(const Description& description, bool new_run) {
  Faults faults;
  faults.unless(run::find_entry(description.loop.name) != nullptr, "loop",
                fmt::format("this program has no function \"{}\"; make it with train::loop<f>(). It has: {}",
                            description.loop.name, fmt::join(run::entry_names(), ", ")));
  check_loop_config(description, faults);
  check_backend(description, faults);
  check_scaling(description.options.scaling_config, faults);
  check_run_config(description.options.run_config, faults);
  check_validation(description.options.validation, faults);
  check_datasets(description.options.datasets, faults);
  if (new_run) check_objects(describe(description), faults);
  faults.throw_if_any("the training run");
}

Dict describe(const Description& description) {
  const auto& [config, scaling, run, validation, datasets] = description.options;
  const Stored stored{
      .loop = description.loop.name,
      .backend = description.backend,
      .backend_options = description.backend_options,
      .train_loop_config = config,
      .scaling_config = {.num_workers = scaling.num_workers,
                         .use_gpu = scaling.use_gpu,
                         .resources = scaling.resources_per_worker,
                         .strategy = scaling.placement_strategy,
                         .accelerator_type = scaling.accelerator_type,
                         .label_selector = scaling.label_selector,
                         .elastic_resize_monitor_interval = scaling.elastic_resize_monitor_interval.count()},
      .run_config = {.max_failures = run.failure_config.max_failures,
                     .max_start_failures = run.failure_config.max_start_failures,
                     .max_preemption_failures = run.failure_config.max_preemption_failures,
                     .checkpoint_config = to_stored(run.checkpoint_config),
                     .logging_config = run.logging_config,
                     .collective_timeout = run.collective_timeout.count(),
                     .stop_grace_period = run.stop_grace_period.count(),
                     .verbose = run.verbose,
                     .chdir_to_rank_dir = run.chdir_to_rank_dir},
      .validation = {.function = validation.function.name,
                     .config = validation.config,
                     .resources = validation.resources,
                     .workers = validation.workers.bundles,
                     .workers_strategy = validation.workers.strategy,
                     .timeout = validation.timeout ? std::optional(validation.timeout->count()) : std::nullopt,
                     .max_in_flight = validation.max_in_flight,
                     .max_retries = validation.max_retries,
                     .order = validation.order},
      .datasets = Config(datasets)};
  return base::SaveArchive::to_value(stored).dict();
}

Description parse_description(const Value& value, const std::string& source) {
  Stored stored;
  try {
    base::LoadArchive::load(value, stored);
    if (stored.kind != kKind) throw InvalidArgument("it is a " + stored.kind);
  } catch (const Error& error) {
    throw StorageError(fmt::format("{} describe no training run: {}", source, error.what()));
  }
  return {.loop = {stored.loop},
          .backend = std::move(stored.backend),
          .backend_options = std::move(stored.backend_options),
          .options = {
              .train_loop_config = std::move(stored.train_loop_config),
              .scaling_config = {.num_workers = stored.scaling_config.num_workers,
                                 .use_gpu = stored.scaling_config.use_gpu,
                                 .resources_per_worker = std::move(stored.scaling_config.resources),
                                 .placement_strategy = stored.scaling_config.strategy,
                                 .accelerator_type = std::move(stored.scaling_config.accelerator_type),
                                 .label_selector = std::move(stored.scaling_config.label_selector),
                                 .elastic_resize_monitor_interval =
                                     Seconds(stored.scaling_config.elastic_resize_monitor_interval)},
              .run_config = {.failure_config = {.max_failures = stored.run_config.max_failures,
                                                .max_start_failures = stored.run_config.max_start_failures,
                                                .max_preemption_failures = stored.run_config.max_preemption_failures},
                             .checkpoint_config = to_checkpoint_config(stored.run_config.checkpoint_config),
                             .logging_config = stored.run_config.logging_config,
                             .collective_timeout = Seconds(stored.run_config.collective_timeout),
                             .stop_grace_period = Seconds(stored.run_config.stop_grace_period),
                             .verbose = stored.run_config.verbose,
                             .chdir_to_rank_dir = stored.run_config.chdir_to_rank_dir},
              .validation = {.function = {std::move(stored.validation.function)},
                             .config = std::move(stored.validation.config),
                             .resources = std::move(stored.validation.resources),
                             .workers = {.bundles = std::move(stored.validation.workers),
                                         .strategy = stored.validation.workers_strategy},
                             .timeout = stored.validation.timeout ? std::optional(Seconds(*stored.validation.timeout))
                                                                  : std::nullopt,
                             .max_in_flight = stored.validation.max_in_flight,
                             .max_retries = stored.validation.max_retries,
                             .order = stored.validation.order},
              .datasets = stored.datasets.dict()}};
}

}  // namespace train
}  // namespace cadre
