// Parts of this program that run when it is executed anew, for measurements that begin with the start of a process.
#pragma once

#include <string>

#include "cadre/value.h"

namespace cadre::bench {

inline constexpr const char* kPartOption = "--part";

struct Arguments {
  int argc;
  char** argv;

  // Returns the `index`th word after the part's name, from 0.
  std::string operator[](int index) const { return argv[index + 3]; }
};

// Each part does its work, beginning with cadre::init if it runs trials, and returns its result. Comments name the
// arguments.
Dict be_fork_server(const Arguments& arguments);       // CPUs; serves in a process executed for that, never returns
Dict start_and_fork(const Arguments& arguments);       // none
Dict run_one_empty_trial(const Arguments& arguments);  // storage path, name of the experiment
Dict restore_experiment(const Arguments& arguments);   // the experiment's directory, slots
Dict show_own_memory(const Arguments& arguments);      // none; without cadre::init
Dict hold_trials(const Arguments& arguments);          // see memory.cc
Dict hold_plain_forks(const Arguments& arguments);     // see memory.cc

}  // namespace cadre::bench
