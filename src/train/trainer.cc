#include <fmt/format.h>

#include <utility>

#include "base/directory.h"
#include "base/system_error.h"
#include "cadre/train.h"
#include "control/beginning.h"
#include "control/differences.h"
#include "control/object_uses.h"
#include "publish/home.h"
#include "publish/publishing.h"
#include "resources/cluster.h"
#include "store/experiment_lock.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "store/read_store.h"
#include "store/run_directory.h"
#include "store/segment.h"
#include "train/capacity.h"
#include "train/controller.h"
#include "train/options.h"
#include "train/validations.h"
#include "worker/parent_run.h"
#include "worker/root_engine.h"
#include "worker/worker.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

resources::Cluster nodes_that_are_there() { return resources::Cluster(worker::root_nodes()); }

// Throws if the smallest group needs more than there is and could never start.
void require_resources(const ScalingConfig& scaling) {
  if (worker::awaits_nodes()) return;
  const resources::Cluster nodes = nodes_that_are_there();
  if (scaling.placement_strategy == PlacementStrategy::strict_spread &&
      scaling.num_workers.min > static_cast<std::int64_t>(nodes.size()))
    throw InvalidArgument(
        fmt::format("placement_strategy strict_spread needs {} machines for {} workers, and there {} {}",
                    scaling.num_workers.min, scaling.num_workers.min, nodes.size() == 1 ? "is" : "are",
                    nodes.size() == 1 ? "one" : std::to_string(nodes.size())));
  const std::string missing = shortage(nodes, scaling);
  if (missing.empty()) return;
  const bool in_trial = worker::ParentRun::current() != nullptr;
  const std::string what = in_trial             ? "the bundles of their trial have"
                           : nodes.may_change() ? "the nodes have"
                                                : "this machine has";
  throw InvalidArgument(fmt::format("{} workers need more than {}: {}", scaling.num_workers.min, what, missing));
}

// Throws if a validation needs more than a machine has. It may wait until the run has trained, but must be able to
// start then.
void require_resources(const ValidationConfig& validation) {
  if (validation.function.name.empty() || worker::awaits_nodes()) return;
  const std::string missing = nodes_that_are_there().shortage(Validations(validation).needs());
  if (!missing.empty()) throw InvalidArgument("a validation needs more than there is: " + missing);
}

std::string workers_text(const WorkerRange& workers) {
  if (workers.is_elastic()) return fmt::format("{} to {} workers", workers.min, workers.max);
  return fmt::format("{} {}", workers.max, workers.max == 1 ? "worker" : "workers");
}

// Returns the directory of a trial's run, inside the trial's. Removes a run that an earlier attempt of the trial left
// there: its reports and checkpoints are already the trial's.
publish::Home home_in_trial(const RunConfig& config, const Loop& loop, const worker::ParentRun& parent) {
  const fs::path directory = parent.directory() / (config.name.empty() ? loop.name : config.name);
  if (store::has_store(directory)) store::remove_with_store(directory);
  store::make_new_directory(directory, store::training_run_tenant);
  return {directory};
}

// Throws if the run belongs to a trial, which restarts it from the trial's checkpoint.
void refuse_run_of_trial(const fs::path& directory) {
  const fs::path experiment = directory.parent_path().parent_path();
  if (!store::has_store(experiment)) return;
  throw InvalidArgument(
      fmt::format("the training run in {} is that of a trial: continue the experiment with Tuner::restore from {}",
                  directory.string(), experiment.string()));
}

}  // namespace

Trainer::Trainer(Loop loop, TrainerOptions options) : Trainer(std::move(loop), std::move(options), "", {}) {}

Trainer::Trainer(Loop loop, TrainerOptions options, std::string backend, Config backend_options)
    : loop_(std::move(loop)),
      options_(std::move(options)),
      backend_(std::move(backend)),
      backend_options_(std::move(backend_options)) {
  resolve(options_);
  check_options({loop_, backend_, backend_options_, options_}, true);
}

Trainer::Trainer(Restored, Loop loop, TrainerOptions options, std::string backend, Config backend_options)
    : loop_(std::move(loop)),
      options_(std::move(options)),
      backend_(std::move(backend)),
      backend_options_(std::move(backend_options)),
      restored_(true) {
  check_options({loop_, backend_, backend_options_, options_}, false);
}

bool Trainer::can_restore(const fs::path& directory, const PublishConfig& publish_config) {
  return control::can_restore(directory, publish_config, store::training_run_tenant);
}

Trainer Trainer::restore(const fs::path& directory, const RestoreOptions& restore) {
  std::vector<std::string> notes;
  const fs::path plain = control::find(directory, restore.publish_config, store::training_run_tenant, notes);
  refuse_run_of_trial(plain);
  const control::StoredOptions options = control::read_options(plain);
  Description stored = parse_description(options.options, options.source);
  stored.options.run_config.name = "";
  stored.options.run_config.callbacks = restore.callbacks;
  Trainer trainer(Restored(), std::move(stored.loop), std::move(stored.options), std::move(stored.backend),
                  std::move(stored.backend_options));
  trainer.options_.run_config.name = plain.filename();
  trainer.options_.run_config.storage_path = plain.parent_path();
  trainer.options_.run_config.publish_config = restore.publish_config;
  trainer.notes_ = std::move(notes);
  return trainer;
}

// Continues an existing run, for IfExists::restore.
Result Trainer::continue_in(const fs::path& existing) const {
  const RunConfig& config = options_.run_config;
  Trainer restored =
      Trainer::restore(existing, {.callbacks = config.callbacks, .publish_config = config.publish_config});
  control::check_same(describe({restored.loop_, restored.backend_, restored.backend_options_, restored.options_}),
                      describe({loop_, backend_, backend_options_, options_}),
                      "the training run in " + existing.string());
  restored.options_.run_config.verbose = config.verbose;
  restored.options_.run_config.if_exists = config.if_exists;
  return restored.fit();
}

Result Trainer::fit() {
  if (std::exchange(fitted_, true)) throw InvalidArgument("fit() was called before on this Trainer; make another one");
  try {
    return base::with_storage_errors([this] { return run(); });
  } catch (...) {  // unwinds even if the caller does not catch, so that the lease is released
    throw;
  }
}

Result Trainer::run() {
  const auto require_all_resources = [this] {
    require_resources(options_.scaling_config);
    require_resources(options_.validation);
  };
  if (!worker::has_cluster()) require_all_resources();
  const RunConfig& config = options_.run_config;
  worker::ParentRun* const parent = worker::ParentRun::current();
  const bool in_trial = parent != nullptr && config.storage_path.empty();
  const publish::Place place =
      restored_ || in_trial ? publish::Place{} : publish::place_of(config.storage_path, config.publish_config);
  if (!restored_ && !in_trial && config.if_exists == IfExists::restore) {
    if (const auto existing = publish::find_existing(place, config.name)) return continue_in(*existing);
  }
  const auto [directory, home_notes] =
      restored_  ? publish::Home{config.storage_path / config.name}
      : in_trial ? home_in_trial(config, loop_, *parent)
                 : publish::make_home(place, config.name, loop_.name, config.if_exists, store::training_run_tenant);
  const Description description{loop_, backend_, backend_options_, options_};
  const Dict described = describe(description);
  const auto uses = control::object_uses(described);
  const auto write_objects = [&, &inside = directory] {
    control::write_objects(inside, control::held_objects(uses));
    if (parent != nullptr) control::share_objects(parent->experiment(), inside, uses);
  };
  control::Session session =
      restored_ ? control::resume(directory)
                : control::begin(directory, place, store::training_run_tenant, write_objects, loop_.name, described);

  Run run(options_, parent != nullptr);
  const bool has_ended = restored_ && store::is_finished(directory);
  const std::unique_ptr<engine::Engine> engine =
      control::make_engine(session, store::training_run_tenant, config.if_exists, has_ended);
  if (worker::has_cluster() && !has_ended) require_all_resources();
  RunConsole console(directory, config, engine->now());
  Controller controller(description, directory, run, session.store, *engine, console, parent, session.publication);
  if (restored_) {
    controller.recover();
    if (run.status() != RunStatus::finished) control::require_objects(directory, uses, session.store.after_reboot());
  }
  console.say(fmt::format("Training run {}: {}, in {}", session.name(),
                          workers_text(options_.scaling_config.num_workers), directory.string()));
  for (const std::string& note : home_notes) console.say(note);
  for (const std::string& note : notes_) console.say(note);
  if (session.publication) console.say(description_of(*session.publication, config.publish_config));
  controller.run();
  if (run.status() == RunStatus::finished) control::delete_other_objects(directory, {});
  if (run.ended_by_parent()) throw worker::StopWorker{};
  if (run.interrupted()) control::throw_interrupted(session, store::training_run_tenant, config.if_exists);
  const std::string lack = run.validations().summary();
  if (run.status() == RunStatus::failed)
    throw TrainingFailed(
        fmt::format("the training run {} has failed: {}\nWhat its workers have printed is in {}; "
                    "Trainer::restore tries it again{}{}",
                    session.name(), run.error(), (directory / "rank_*").string(), lack.empty() ? "" : "\n", lack));
  if (!lack.empty()) console.say(lack);
  return Result::from_directory(directory);
}

}  // namespace cadre::train
