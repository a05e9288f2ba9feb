// An experiment's core, fed by a test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tune/experiment.h"
#include "tune/searcher_thread.h"

namespace cadre::test_support {

using namespace tune;

// Passes an event to an experiment, and at once what its searcher suggests when it is asked.
inline void handle_and_suggest(Experiment& experiment, const Event& event, Actions& actions,
                               const RecordedAnswers* recorded = nullptr) {
  experiment.handle(event, actions, recorded);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (const auto* asks = std::get_if<AskSearcher>(&actions[i]))
      experiment.handle(ask(experiment.searcher(), asks->trial), actions);
  }
}

// An experiment whose events the test feeds, one by one. Each call returns the decisions, as "launch 0", "pause 1", …,
// without those that only make a trial.
class Driver {
 public:
  Driver(TunerOptions options, double slots) : Driver(std::move(options), Resources{.cpus = slots}, {}) {}
  Driver(TunerOptions options, const Resources& machine, const Resources& of_a_trial)
      : experiment_(with_resources(Trainable("f"), of_a_trial), std::move(options)) {
    decided = feed(ControllerStarted{machine});
  }
  // On the nodes of a cluster, "a" with number 0, "b" with 1, …
  Driver(TunerOptions options, const std::vector<Resources>& machines, const Resources& of_a_trial = {},
         const Trainable& trainable = Trainable("f"))
      : experiment_(with_resources(trainable, of_a_trial), std::move(options)) {
    ControllerStarted started{.nodes = {.may_change = true}};
    for (const Resources& machine : machines) {
      const auto id = static_cast<engine::NodeId>(started.nodes.nodes.size());
      started.nodes.nodes.push_back(
          {.id = id, .name = std::string(1, static_cast<char>('a' + id)), .resources = machine});
    }
    decided = feed(started);
  }

  std::vector<std::string> feed(const Event& event) {
    actions.clear();
    answers_for_searcher ? handle_and_suggest(experiment_, event, actions) : experiment_.handle(event, actions);
    std::vector<std::string> made;
    for (const auto* decision : all<RecordDecision>()) {
      if (decision->kind != DecisionKind::make)
        made.push_back(std::string(to_string(decision->kind)) + " " + std::to_string(decision->trial));
    }
    return made;
  }
  // Feeds the next report of the trial's current worker.
  std::vector<std::string> report(TrialIndex trial, Metrics metrics, std::string checkpoint = {}) {
    const Trial& present = experiment_.trials().at(trial);
    return feed(ResultReported{trial, present.attempt, {present.step + 1, std::move(metrics), std::move(checkpoint)}});
  }
  template <class T>
  std::vector<const T*> all() const {
    std::vector<const T*> found;
    for (const Action& action : actions) {
      if (const auto* one = std::get_if<T>(&action)) found.push_back(one);
    }
    return found;
  }

  bool answers_for_searcher = true;  // at once; false: the test feeds what the searcher suggests
  std::vector<std::string> decided;  // at the start
  Actions actions;                   // of the last event
  const Trial& trial(TrialIndex index) const { return experiment_.trials().at(index); }
  bool finished() const { return experiment_.finished(); }
  std::int64_t parked_workers() const { return experiment_.parked_workers(); }

  Experiment& experiment() { return experiment_; }

 private:
  Experiment experiment_;
};

inline const engine::Exit kClean{engine::Exit::Kind::code, 0, {}};

// Ends the worker of a trial that was told to stop, or whose function returns.
inline void unwind(Driver& driver, TrialIndex trial) {
  const std::int64_t attempt = driver.trial(trial).attempt;
  driver.feed(FunctionReturned{trial, attempt});
  driver.feed(WorkerEnded{trial, attempt, kClean});
}

}  // namespace cadre::test_support
