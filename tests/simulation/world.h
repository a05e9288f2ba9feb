// An experiment's core on the simulated engine: random trials, results and faults from one seed, and what must hold
// after every event.
#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/simulated/simulated_engine.h"
#include "tune/experiment.h"

namespace cadre::tune {

// What may go wrong in a world, as probabilities of each report.
struct Faults {
  double throws = 0;
  double dies = 0;
  double returns = 0;
  double no_metric = 0;
};

class World {
 public:
  World(std::uint64_t seed, TunerOptions options, Resources resources, Faults faults);

  // Lets the next events happen. False when the experiment is finished.
  bool step();
  void run_to_the_end() {
    while (step()) {
    }
  }
  // The controller and all workers are gone; another controller goes on with the recorded events.
  void interrupt();

  const Experiment& experiment() const { return *experiment_; }
  const std::vector<Event>& recorded() const { return recorded_; }
  const std::vector<std::string>& decisions() const { return decisions_; }
  std::int64_t exploits = 0;

 private:
  void begin();
  void handle(const Event& event);
  void perform(const Action& action);
  void check() const;
  std::unique_ptr<engine::simulated::Behaviour> make_behaviour(const engine::WorkerSpec& spec);

  std::mt19937_64 random_;
  TunerOptions options_;
  Resources resources_;
  Faults faults_;
  std::unique_ptr<Experiment> experiment_;
  std::unique_ptr<engine::simulated::SimulatedEngine> engine_;
  std::vector<Event> recorded_;
  std::vector<std::string> decisions_;
  std::set<std::string> existing_;  // checkpoint directories
};

}  // namespace cadre::tune
