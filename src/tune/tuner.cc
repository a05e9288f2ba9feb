#include "cadre/tune/tuner.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "base/file.h"
#include "base/json.h"
#include "base/name.h"
#include "run/root_engine.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "tune/controller.h"
#include "tune/options.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

fs::path default_storage_path() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw InvalidArgument("storage_path is not set, and there is no HOME for the default ~/cadre_results");
  return fs::path(home) / "cadre_results";
}

bool holds_an_experiment(const fs::path& directory) {
  return fs::exists(directory / store::ExperimentStore::kFileName);
}

// Names the experiment by its function and the time, as long as nobody else took that name in the same second.
std::string free_name(const fs::path& storage, const std::string& trainable) {
  const std::string name = trainable + "_" + base::date_text(static_cast<double>(std::time(nullptr)));
  for (int i = 1;; ++i) {
    std::string candidate = i == 1 ? name : fmt::format("{}_{}", name, i);
    if (!fs::exists(storage / candidate)) return candidate;
  }
}

// The directory of a new experiment, which nothing else uses.
void make_experiment_directory(const fs::path& directory) {
  if (holds_an_experiment(directory))
    throw InvalidArgument("the experiment " + directory.string() +
                          " exists already: continue it with Tuner::restore, or give this one another name");
  if (fs::exists(directory) && (!fs::is_directory(directory) || !fs::is_empty(directory)))
    throw InvalidArgument(directory.string() + " exists and is not an experiment: give this one another name");
  base::make_directories(directory);
}

std::vector<Result> make_results(const Experiment& experiment, const fs::path& directory) {
  const run::CheckpointRegistry& registry = experiment.checkpoint_registry();
  const auto checkpoint = [&](run::CheckpointId id) {
    return Checkpoint::from_directory(directory / registry.get(id).directory);
  };
  std::vector<Result> results;
  for (const Trial& trial : experiment.trials()) {
    Result result{.trial_id = trial.id,
                  .status = trial.status,
                  .config = trial.config,
                  .metrics = trial.last_result,
                  .checkpoint = {},
                  .best_checkpoints = {},
                  .path = directory / trial.directory,
                  .error = {}};
    if (trial.latest_checkpoint) result.checkpoint = checkpoint(*trial.latest_checkpoint);
    for (const run::CheckpointId id : registry.kept(trial.index))
      result.best_checkpoints.emplace_back(checkpoint(id), registry.get(id).metrics);
    if (trial.status == TrialStatus::error) result.error = trial.error;
    results.push_back(std::move(result));
  }
  return results;
}

void check_same(const store::ExperimentInfo& stored, const Trainable& trainable, const Dict& options,
                const fs::path& directory) {
  if (stored.trainable != trainable.name)
    throw InvalidArgument("the experiment in " + directory.string() + " runs the trainable \"" + stored.trainable +
                          "\", not \"" + trainable.name + "\"");
  const Config before(base::parse_json(stored.options, "the options in the store").dict());
  std::string differences;
  for (const auto& [key, value] : options) {
    const Value* old = before.find(key);
    if (old == nullptr || !(*old == value))
      differences +=
          fmt::format("\n  {}: it was {}, and now is {}", key, old ? to_json(*old) : "unknown", to_json(value));
  }
  if (!differences.empty())
    throw InvalidArgument("the experiment in " + directory.string() + " was begun with other options:" + differences);
}

}  // namespace

Trainable with_resources(Trainable trainable, Resources resources) {
  trainable.resources = std::move(resources);
  return trainable;
}

Tuner::Tuner(Trainable trainable, TunerOptions options)
    : trainable_(std::move(trainable)), options_(resolve(std::move(options))) {
  check_options(trainable_, options_);
}

bool Tuner::can_restore(const fs::path& directory) { return holds_an_experiment(directory); }

Tuner Tuner::restore(const fs::path& directory, Trainable trainable, TunerOptions options) {
  const fs::path absolute = fs::absolute(directory).lexically_normal();
  const fs::path plain = absolute.has_filename() ? absolute : absolute.parent_path();
  if (!holds_an_experiment(plain))
    throw NotFound("there is no experiment in " + plain.string() + " to continue: it has no file " +
                   store::ExperimentStore::kFileName);
  options.run_config.name = plain.filename();
  options.run_config.storage_path = plain.parent_path();
  Tuner tuner(std::move(trainable), std::move(options));
  tuner.restore_ = true;
  return tuner;
}

ResultGrid Tuner::fit() {
  if (std::exchange(fitted_, true)) throw InvalidArgument("fit() was called before on this Tuner; make another one");
  const std::string shortage = run::ResourceLedger(run::root_resources()).shortage(trainable_.resources);
  if (!shortage.empty()) throw InvalidArgument("a trial needs more than this machine has: " + shortage);

  const RunConfig& run = options_.run_config;
  const fs::path storage =
      fs::absolute(run.storage_path.empty() ? default_storage_path() : run.storage_path).lexically_normal();
  const std::string name = run.name.empty() ? free_name(storage, trainable_.name) : run.name;
  const fs::path directory = storage / name;
  if (!restore_) make_experiment_directory(directory);
  const store::ExperimentLock lock(directory);

  const Dict description = describe(trainable_, options_);
  store::ExperimentStore store =
      restore_ ? store::ExperimentStore::open(directory)
               : store::ExperimentStore::create(directory, {name, trainable_.name, base::to_json(description)});
  if (restore_) check_same(store.info(), trainable_, description, directory);

  Experiment experiment(trainable_, options_);
  Console console(experiment, directory.string(), options_.tune_config.metric, options_.tune_config.mode, run.verbose);
  const std::unique_ptr<engine::Engine> engine = run::make_root_engine();
  Controller controller({name, directory, trainable_, options_.tune_config.seed}, experiment, store, *engine, console);
  if (restore_) controller.replay();
  console.begin(name, options_.tune_config.num_samples, restore_);
  controller.run();
  console.end();
  if (experiment.interrupted())
    throw Interrupted(
        fmt::format("the experiment {} was interrupted, and everything that was reported is saved. "
                    "Continue it with Tuner::restore from {}",
                    name, directory.string()));
  return {directory, make_results(experiment, directory), options_.tune_config.metric, options_.tune_config.mode};
}

}  // namespace cadre::tune
