#include "cadre/tune/tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/system_error.h"
#include "control/beginning.h"
#include "control/differences.h"
#include "control/object_uses.h"
#include "control/objective.h"
#include "publish/home.h"
#include "publish/place.h"
#include "publish/publishing.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "store/run_directory.h"
#include "store/segment.h"
#include "tune/controller.h"
#include "tune/description.h"
#include "tune/functions.h"
#include "tune/objects.h"
#include "tune/options/extend.h"
#include "tune/options/options.h"
#include "tune/resource_needs.h"
#include "tune/results/result_reader.h"
#include "tune/searchers/variant_generator.h"
#include "view/output.h"
#include "worker/entries.h"
#include "worker/host.h"
#include "worker/root_engine.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

// The description of an experiment as it is stored.
struct StoredDescription {
  Description present = {};
  std::optional<Description> first = {};  // before any extension; empty: the same
};

StoredDescription stored_description(const fs::path& directory) {
  const control::StoredOptions stored = control::read_options(directory);
  StoredDescription description{parse_description(stored.options, stored.source)};
  if (!stored.first_options.is_null())
    description.first = parse_description(stored.first_options, "the first of " + stored.source);
  return description;
}

void check_registered(const Trainable& trainable, const fs::path& directory) {
  if (worker::find_entry(trainable.name) != nullptr) return;
  if (trainable.host_function.is_set() || trainable.program.is_set()) return;
  throw InvalidArgument(
      fmt::format("the experiment in {} runs the trainable \"{}\", and this program has none of that name; it has: {}. "
                  "Was the experiment made by another program?",
                  directory.string(), trainable.name, fmt::join(worker::entry_names(), ", ")));
}

// Returns the trainable with the methods that it has now, which are not stored.
Trainable with_methods(Trainable trainable) {
  if (const TrainableType* known = type_of(trainable)) trainable.methods = known->methods;
  if (Host* const host = worker::find_host(); host != nullptr && trainable.host_function.is_set())
    trainable.methods = host->methods(trainable.host_function);
  return trainable;
}

ControllerStarted::Errored errored_of(const RestoreOptions& restore) {
  using Errored = ControllerStarted::Errored;
  if (restore.resume_errored) return Errored::resume;
  return restore.restart_errored ? Errored::restart : Errored::leave;
}

// Throws if no node could ever run a trial.
void require_room(const Trainable& trainable) {
  if (!trainable.resource_function.function.empty() || worker::awaits_nodes()) return;
  const resources::Cluster nodes(worker::root_nodes());
  const Needs needs = ResourceNeeds(trainable).usual();
  const std::string missing = shortage(nodes, needs);
  if (missing.empty()) return;
  const char* const what = !nodes.may_change()           ? "this machine has"
                           : may_be_parted(nodes, needs) ? "the nodes have"
                                                         : "any node has";
  throw InvalidArgument(fmt::format("a trial needs more than {}: {}", what, missing));
}

// Throws if trials exist that an extension would not have made.
void require_samples(const Extension& extension, const Experiment& experiment) {
  const std::int64_t made = experiment.samples_made();
  if (!extension.num_samples || *extension.num_samples >= made) return;
  throw InvalidArgument(
      fmt::format("num_samples is {}, and the experiment has {} samples already: give that many or more",
                  *extension.num_samples, made));
}

}  // namespace

Trainable with_parameters(Trainable trainable, Config parameters) {
  trainable.parameters = std::move(parameters);
  return trainable;
}

Tuner::Tuner(Trainable trainable, TunerOptions options)
    : Tuner(std::move(trainable), std::move(options), std::nullopt) {}

Tuner::Tuner(Trainable trainable, TunerOptions options, std::optional<RestoreOptions> restore)
    : trainable_(with_methods(std::move(trainable))),
      options_(resolve(trainable_, std::move(options), notes_)),
      restore_(restore) {
  check_options(trainable_, options_, restore_ ? ObjectsAre::files : ObjectsAre::held);
  objects_ = control::held_objects(control::object_uses(describe(trainable_, options_)));
}

bool Tuner::can_restore(const fs::path& directory, const PublishConfig& publish_config) {
  return control::can_restore(directory, publish_config, store::experiment_tenant);
}

Tuner Tuner::continuing(const fs::path& directory, Trainable trainable, TunerOptions options,
                        const RestoreOptions& restore) {
  if (restore.resume_errored && restore.restart_errored)
    throw InvalidArgument(
        "resume_errored and restart_errored are both set: trials that failed either continue or begin anew");
  Callbacks& callbacks = options.run_config.callbacks;
  callbacks.insert(callbacks.end(), restore.callbacks.begin(), restore.callbacks.end());
  options.run_config.name.clear();  // a renamed directory may have a name that a new experiment cannot have
  const IfExists if_exists = std::exchange(options.run_config.if_exists, IfExists::fail);
  Tuner tuner(std::move(trainable), std::move(options), restore);
  tuner.options_.run_config.name = directory.filename();
  tuner.options_.run_config.if_exists = if_exists;
  tuner.options_.run_config.storage_path = directory.parent_path();
  tuner.options_.run_config.publish_config = restore.publish_config;
  return tuner;
}

Tuner Tuner::restore(const fs::path& directory, const RestoreOptions& restore) {
  std::vector<std::string> notes;
  const fs::path plain = control::find(directory, restore.publish_config, store::experiment_tenant, notes);
  const StoredDescription all_stored = stored_description(plain);
  Description stored = all_stored.present;
  check_registered(stored.trainable, plain);
  if (stored.trainable.program.is_set() && !restore.run_program)
    throw InvalidArgument(fmt::format(
        "the experiment in {} runs the program {}, which is executed only if RestoreOptions::run_program is "
        "set; or continue it with cadre tune --restore",
        plain.string(), stored.trainable.program.command.front()));
  HostFunction& function = stored.trainable.host_function;
  if (restore.host_function.is_set() && !function.is_set())
    throw InvalidArgument(
        fmt::format("the trainable \"{}\" of the experiment in {} is a function of a program in C++, and "
                    "RestoreOptions::host_function cannot replace it",
                    stored.trainable.name, plain.string()));
  const HostFunction replaced =
      restore.host_function.is_set() ? std::exchange(function, restore.host_function) : HostFunction();
  extend(stored.options, restore.extend);
  Tuner tuner = continuing(plain, std::move(stored.trainable), std::move(stored.options), restore);
  tuner.note_extension(all_stored.present.options, all_stored.first ? &all_stored.first->options : nullptr);
  tuner.restore_notes_ = std::move(notes);
  tuner.replaced_function_ = replaced;
  return tuner;
}

Tuner Tuner::restore(const fs::path& directory, Trainable trainable, TunerOptions options,
                     const RestoreOptions& restore) {
  std::vector<std::string> notes;
  const fs::path plain = control::find(directory, restore.publish_config, store::experiment_tenant, notes);
  const auto [stored, first] = stored_description(plain);
  const auto take_over = [](auto& own, const auto& others) {
    if (!own.empty()) own = std::remove_reference_t<decltype(own)>(own.held().taking_over(others.held()));
  };
  take_over(options.tune_config.scheduler, stored.options.tune_config.scheduler);
  take_over(options.tune_config.searcher, stored.options.tune_config.searcher);
  Tuner tuner = continuing(plain, trainable, options, restore);
  const Dict given = describe(tuner.trainable_, tuner.options_);
  if (first && control::differences(describe(first->trainable, first->options), given).empty()) {
    extend(options, extension_between(first->options, stored.options));  // the program knows nothing of it
  } else {
    control::check_same(describe(stored.trainable, stored.options), given, "the experiment in " + plain.string());
  }
  if (first || restore.extend.is_set()) {
    extend(options, restore.extend);
    tuner = continuing(plain, std::move(trainable), std::move(options), restore);
    tuner.note_extension(stored.options, first ? &first->options : nullptr);
  }
  tuner.restore_notes_ = std::move(notes);
  return tuner;
}

// Notes what differs from the stored options, those of now and those of the beginning, null if they are the same.
void Tuner::note_extension(const TunerOptions& stored, const TunerOptions* first) {
  if (restore_->extend.is_set()) extension_ = extension_between(stored, options_);
  if (first != nullptr || extension_.is_set()) first_options_ = first == nullptr ? stored : *first;
}

ResultGrid Tuner::fit() {
  if (std::exchange(fitted_, true)) throw InvalidArgument("fit() was called before on this Tuner; make another one");
  try {
    return base::with_storage_errors([this] { return run(); });
  } catch (...) {  // makes the stack unwind even if no caller catches, to close everything and release the lease
    throw;
  }
}

ResultGrid Tuner::run() {
  if (!worker::has_cluster()) require_room(trainable_);
  const RunConfig& run = options_.run_config;
  const publish::Place place =
      restore_ ? publish::Place{.local = run.storage_path} : publish::place_of(run.storage_path, run.publish_config);
  if (!restore_ && run.if_exists == IfExists::restore) {
    if (const auto existing = publish::find_existing(place, run.name))
      return Tuner::restore(*existing, trainable_, options_, {.publish_config = run.publish_config}).fit();
  }
  const auto [directory, home_notes] =
      restore_ ? publish::Home{place.local / run.name}
               : publish::make_home(place, run.name, trainable_.name, run.if_exists, store::experiment_tenant);
  Dict description = describe(trainable_, options_);
  if (replaced_function_.is_set()) description.emplace_back("replaced function", replaced_function_.value);
  control::Session session = restore_ ? control::resume(directory)
                                      : control::begin(
                                            directory, place, store::experiment_tenant,
                                            [&, &inside = directory] { control::write_objects(inside, objects_); },
                                            trainable_.name, description);
  store::ExperimentStore& store = session.store;

  Experiment experiment(trainable_, first_options_ ? *first_options_ : options_);
  bool is_to_be_extended = extension_.is_set();
  const auto uses = [&] {
    return objects_in_use(description, experiment.trials(), experiment.trials_to_come() + (is_to_be_extended ? 1 : 0));
  };
  RunningTime running_time;
  Console console(experiment, running_time, directory.string(), options_.tune_config,
                  view::host_shows_progress() ? 0 : run.verbose, run.log_to_driver);
  const auto errored = errored_of(restore_.value_or(RestoreOptions()));
  const bool has_ended =
      restore_ && errored == ControllerStarted::Errored::leave && !extension_.is_set() && store::is_finished(directory);
  const std::unique_ptr<engine::Engine> engine =
      control::make_engine(session, store::experiment_tenant, run.if_exists, has_ended);
  if (worker::has_cluster() && !has_ended) require_room(trainable_);
  Controller controller({.experiment_name = session.name(),
                         .directory = directory,
                         .trainable = trainable_,
                         .options = options_,
                         .errored = errored,
                         .allow_divergence = restore_ && restore_->allow_divergence,
                         .extension = extension_,
                         .description = extension_.is_set() ? std::optional(description) : std::nullopt,
                         .publication = session.publication},
                        experiment, running_time, store, *engine, console);
  if (restore_) {
    if (restore_->host_function.is_set() || is_to_be_extended) control::write_objects(directory, objects_);
    controller.recover();
    require_samples(extension_, experiment);
    control::require_objects(directory, uses(), store.after_reboot());
  }
  objects_.clear();  // now files of the experiment
  const auto delete_unused_objects = [&] {
    try {
      control::delete_other_objects(directory, uses());
    } catch (const StorageError& error) {  // the next restore tries again
      console.say(std::string("Warning: an object that nothing needs any more stays: ") + error.what());
    }
  };
  delete_unused_objects();
  console.begin(session.name(), restore_.has_value());
  for (const std::string& note : home_notes) console.say(note);
  for (const std::string& note : notes_) console.say("Warning: " + note);
  for (const std::string& note : restore_notes_) console.say(note);
  if (session.publication) console.say(description_of(*session.publication, run.publish_config));
  is_to_be_extended = false;
  controller.run();
  delete_unused_objects();
  console.end();
  if (experiment.interrupted()) control::throw_interrupted(session, store::experiment_tenant, run.if_exists);
  try {
    return read_results(directory, store::ExperimentReader::Check::rows);  // the other checks were done before
  } catch (const StorageError& error) {
    throw StorageError(
        fmt::format("the experiment has ended, and its results cannot be read: {}. Continue it with "
                    "Tuner::restore from {}",
                    error.what(), directory.string()));
  }
}

}  // namespace cadre::tune
