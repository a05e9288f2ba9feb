// A run as the soak disturbs it, and tests/faults: an experiment or a training run, which is published or not. A
// controller in a process of its own begins it, and each later one continues it.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "survival/controller_process.h"
#include "survival/random.h"

namespace cadre::survival {

using Milliseconds = std::chrono::duration<double, std::milli>;

// Names who is disturbed. One process of a kind is killed; the last three say themselves what happens.
enum class Victim {
  controller,
  server,
  worker,             // of an experiment
  rank,               // of a training run
  validator,          // of its checkpoints
  rank_of_validator,  // which trains to validate
  dataset_worker,
  newborn,   // a worker that has not said yet what it is
  both,      // controller and server are killed in one instant
  everyone,  // gets a signal that asks it to end
  stopped,   // all are, for a time
};
constexpr std::array kVictimNames{"controllers",     "servers",     "workers",
                                  "ranks",           "validators",  "ranks of validators",
                                  "dataset workers", "newborns",    "controllers with their servers",
                                  "signals to all",  "stops of all"};
constexpr const char* name_of(Victim victim) { return kVictimNames.at(static_cast<std::size_t>(victim)); }

// Says whom to disturb, and when.
struct Plan {
  Victim victim = Victim::controller;
  double at_progress = 0;      // 0 to 1 of all steps; then `after`
  Milliseconds after{0};       // the controller's start, or the last disturbance
  Milliseconds patience{0};    // for somebody of the kind to be there
  Milliseconds hesitation{0};  // then: not always somebody who has just begun
};

class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::string text() const = 0;  // its setting, for messages
  // Returns whether the next controller continues it.
  virtual bool has_begun() const = 0;
  // `environment` has more for the controller's: "NAME=value".
  virtual ControllerProcess start(Random& random, std::vector<std::string> environment) = 0;
  virtual double progress() const = 0;  // 0 to 1
  virtual Plan draw_plan(Random& random) const = 0;
  // Workers of a kind, or what may become one.
  struct Candidate {
    Victim kind;
    pid_t process;
  };
  virtual std::vector<Candidate> workers(Victim kind, const ControllerProcess& controller) const = 0;

  // Called after a controller's end, when nothing of it runs any more: may take away what a run must not need.
  virtual void take_away(Random&) {}
  // These return faults, a line each. The first ones are those that readers find, however the run was interrupted; the
  // others are broken invariants, of a run that has come to its end where `finished`.
  virtual std::vector<std::string> faults_of_readers(Random& random) = 0;
  virtual std::vector<std::string> faults(bool finished, std::int64_t worker_kills) = 0;
  // Removes its files.
  virtual void remove() = 0;
};

}  // namespace cadre::survival
