// What this program does when it is executed anew, for measurements that begin with the start of a process.
#pragma once

#include <string>

#include "cadre/value.h"

namespace cadre::bench {

inline constexpr const char* kPartOption = "--part";

struct Arguments {
  int argc;
  char** argv;

  // The words behind the part's name, from 0.
  std::string operator[](int index) const { return argv[index + 3]; }
};

// Each does its work, beginning with cadre::init where it runs trials, and returns what it has to say.
Dict be_fork_server(const Arguments& arguments);       // for a process that is executed to be one: never returns
Dict start_and_fork(const Arguments& arguments);       // nothing else
Dict run_one_empty_trial(const Arguments& arguments);  // storage path, name of the experiment
Dict restore_experiment(const Arguments& arguments);   // its directory, slots
Dict show_own_memory(const Arguments& arguments);      // before cadre::init
Dict hold_trials(const Arguments& arguments);          // see memory.cc
Dict hold_plain_forks(const Arguments& arguments);     // see memory.cc

}  // namespace cadre::bench
