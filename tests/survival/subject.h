// A run that the soak and tests/faults disturb: an experiment or a training run, published or not. A controller in a
// process of its own begins it, and each later one continues it.
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

// The target of a disturbance. One process of a kind is killed, except where a comment says something else.
enum class Victim {
  controller,
  server,
  worker,             // a worker of an experiment
  rank,               // a rank of a training run
  validator,          // a validator of a training run's checkpoints
  rank_of_validator,  // a rank of a group that a validator trains
  dataset_worker,
  newborn,   // a worker whose kind is not known yet
  both,      // controller and server are killed at the same instant
  everyone,  // all processes get a signal that asks them to end
  stopped,   // all processes are stopped for a time
  // On nodes (nodes.h):
  agent,
  agent_told_to_go,  // SIGTERM
  agent_stopped,     // stopped for a time
  node_stopped,      // so are its workers
  agents_server,
  controller_and_agent,  // are killed at the same instant
  connection,            // is reset
  half_connection,       // is reset for one of its ends only
  cut_off,               // nothing comes through for a time
};
constexpr std::array kVictimNames{"controllers",
                                  "servers",
                                  "workers",
                                  "ranks",
                                  "validators",
                                  "ranks of validators",
                                  "dataset workers",
                                  "newborns",
                                  "controllers with their servers",
                                  "signals to all",
                                  "stops of all",
                                  "agents",
                                  "signals to agents",
                                  "stops of agents",
                                  "stops of nodes",
                                  "servers of agents",
                                  "controllers with an agent",
                                  "cut connections",
                                  "half-open connections",
                                  "black holes"};
constexpr bool is_of_nodes(Victim victim) { return victim >= Victim::agent; }
constexpr const char* name_of(Victim victim) { return kVictimNames.at(static_cast<std::size_t>(victim)); }

// The target and the time of a disturbance.
struct Plan {
  Victim victim = Victim::controller;
  double at_progress = 0;      // 0 to 1 of all steps; then `after`
  Milliseconds after{0};       // since `at_progress`, the controller's start or the last disturbance
  Milliseconds patience{0};    // for a process of the kind to appear
  Milliseconds hesitation{0};  // then, so that the victim has not always just started
};

class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::string text() const = 0;  // the setting, for messages
  // Returns true if the next controller continues the run.
  virtual bool has_begun() const = 0;
  // `environment` is added to the controller's: "NAME=value".
  virtual ControllerProcess start(Random& random, std::vector<std::string> environment) = 0;
  virtual double progress() const = 0;  // 0 to 1
  virtual Plan draw_plan(Random& random) const = 0;
  // A worker of a kind, or one whose kind is not known yet.
  struct Candidate {
    Victim kind;
    pid_t process;
  };
  virtual std::vector<Candidate> workers(Victim kind, const ControllerProcess& controller) const = 0;

  // Disturbs a node (is_of_nodes). Returns false if there was nothing to disturb.
  virtual bool disturb_node(Victim, Random&, const ControllerProcess&) { return false; }
  // Returns true if processes of the run may stay for the next controller after one was killed.
  virtual bool has_nodes() const { return false; }
  // Ends what disturb_node() has begun.
  virtual void heal() {}

  // Called after a controller's end, when none of its processes runs: may remove files that a run must not need.
  virtual void take_away(Random&) {}
  // Return faults, a line each: faults_of_readers() those that readers find, however the run was interrupted; faults()
  // the broken invariants, of a finished run if `finished`.
  virtual std::vector<std::string> faults_of_readers(Random& random) = 0;
  virtual std::vector<std::string> faults(bool finished, std::int64_t worker_kills) = 0;
  // Removes the run's files.
  virtual void remove() = 0;
};

}  // namespace cadre::survival
