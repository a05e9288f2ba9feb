#include "simulated_experiment.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <random>
#include <vector>

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
        has_nodes_(setup.has_nodes),
        trial_time_(setup.trial_time),
        last_node_(setup.has_nodes ? static_cast<engine::NodeId>(setup.slots) : 0),
        inner_(machines(setup), setup.behave ? setup.behave : [this](const engine::WorkerSpec&) { return behave(); }) {}

  void start(engine::WorkerId worker, const engine::WorkerSpec& spec) override {
    inner_.start(worker, spec);
    if (!has_nodes_ || ++started_ % kStartsPerChange != 0) return;
    inner_.leave(spec.node, trial_time_ / 4);
    inner_.join(node(++last_node_), trial_time_ / 2);
  }

  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds>) override {
    std::vector<engine::Event> events = inner_.wait(trial_time_);
    if (events.empty() && finishing_ <= 0 && inner_.workers() > 0) ::kill(::getpid(), SIGKILL);
    return events;
  }
  Clock::time_point now() const override { return Clock::now(); }
  double wall_seconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

 private:
  static constexpr std::int64_t kStartsPerChange = 100;

  static engine::Node node(engine::NodeId id) {
    return {.id = id, .name = fmt::format("n{}", id), .resources = {.cpus = 1}};
  }
  static std::vector<engine::Node> machines(const SimulatedSetup& setup) {
    if (!setup.has_nodes) return {{.resources = {.cpus = static_cast<double>(setup.slots)}}};
    std::vector<engine::Node> nodes;
    for (std::int64_t i = 1; i <= setup.slots; ++i) nodes.push_back(node(static_cast<engine::NodeId>(i)));
    return nodes;
  }

  std::unique_ptr<sim::Behaviour> behave() {
    if (trial_time_.count() > 0) {
      const auto time = std::uniform_int_distribution<std::int64_t>(0, trial_time_.count())(random_);
      return std::make_unique<OneStep>(sim::Step{std::chrono::nanoseconds(time), sim::Step::Return{}});
    }
    if (finishing_-- > 0) return std::make_unique<OneStep>(sim::Step{{}, sim::Step::Return{}});
    return std::make_unique<OneStep>(sim::Step{{}, sim::Step::Hang{}});
  }

  std::int64_t finishing_;  // trials that will return and have not started yet
  bool has_nodes_;
  std::chrono::nanoseconds trial_time_;
  std::mt19937_64 random_{1};
  std::int64_t started_ = 0;
  engine::NodeId last_node_;
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
