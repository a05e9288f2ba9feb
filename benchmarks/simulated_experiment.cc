#include "simulated_experiment.h"

#include <signal.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/forwarding_engine.h"
#include "process.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "tune/controller.h"
#include "tune/description.h"
#include "tune/options/options.h"

namespace cadre::bench {
namespace {

namespace sim = engine::simulated;

class OneStep final : public sim::Behaviour {
 public:
  explicit OneStep(sim::Step step) : step_(std::move(step)) {}
  sim::Step next(const channel::Answer&) override { return step_; }

 private:
  sim::Step step_;
};

// The simulated engine with the real clock, because the controller syncs the store by time.
class ImmediateEngine final : public engine::ForwardingEngine {
 public:
  explicit ImmediateEngine(const SimulatedSetup& setup)
      : ForwardingEngine(inner_),
        finishing_(setup.options.tune_config.num_samples - setup.unfinished),
        inner_(
            {.cpus = static_cast<double>(setup.slots)},
            setup.behave ? setup.behave : [this](const engine::WorkerSpec&) { return behave(); }) {}

  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds>) override {
    std::vector<engine::Event> events = inner_.wait(std::chrono::nanoseconds(0));
    if (events.empty() && finishing_ <= 0 && inner_.workers() > 0) ::kill(::getpid(), SIGKILL);
    return events;
  }
  Clock::time_point now() const override { return Clock::now(); }
  double wall_seconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

 private:
  std::unique_ptr<sim::Behaviour> behave() {
    if (finishing_-- > 0) return std::make_unique<OneStep>(sim::Step{{}, sim::Step::Return{}});
    return std::make_unique<OneStep>(sim::Step{{}, sim::Step::Hang{}});
  }

  std::int64_t finishing_;  // trials that will return and have not started yet
  sim::SimulatedEngine inner_;
};

}  // namespace

double run_simulated_experiment(const SimulatedSetup& setup) {
  std::vector<std::string> notes;
  tune::TunerOptions options = tune::resolve(setup.trainable, setup.options, notes);
  options.run_config.verbose = 0;
  tune::check_options(setup.trainable, options);
  const tune::RunConfig& run = options.run_config;
  const std::filesystem::path directory = run.storage_path / run.name;
  base::make_directories(directory);

  const Stopwatch stopwatch;
  const store::ExperimentLock lock(directory);
  store::ExperimentStore store = store::ExperimentStore::create(
      directory, {run.name, setup.trainable.name, base::to_json(tune::describe(setup.trainable, options))});
  tune::Experiment experiment(setup.trainable, options);
  tune::RunningTime running_time;
  tune::Console console(experiment, running_time, directory.string(), options.tune_config, run.verbose);
  ImmediateEngine engine(setup);
  tune::Controller controller(
      {.experiment_name = run.name, .directory = directory, .trainable = setup.trainable, .options = options},
      experiment, running_time, store, engine, console);
  controller.run();
  return stopwatch.seconds();
}

}  // namespace cadre::bench
