// What is said about single trials as it happens. Pure: an action in, a text out.
#pragma once

#include <cstdint>
#include <string>

#include "tune/console/display_text.h"
#include "tune/events.h"
#include "tune/experiment.h"

namespace cadre::tune::console {

// What is worth a line.
struct LogDetail {
  int verbose = 1;          // RunConfig's
  std::int64_t trials = 1;  // of the experiment. With many of them (above 20) nothing is said of each one's start
  std::string metric = {};  // of the experiment, told first
  Encoding encoding = Encoding::utf8;
};

// Lines about what has been decided, separated by '\n' and without one at the end; empty: nothing is said. What users
// and trials have named is printable in it, but a Say is as it was given. `directory` is the experiment's.
std::string log_text(const Action& action, const Experiment& experiment, const std::string& directory,
                     const LogDetail& detail);

// A trial's failure with the file that has all of it: "Trial 00003 errored after 12 iterations: <first line>\n <file>".
std::string error_text(const Trial& trial, const std::string& message, const std::string& directory, Encoding encoding);

}  // namespace cadre::tune::console
