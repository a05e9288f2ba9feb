// Log lines about single trials. Pure: an action in, a text out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/display_text.h"
#include "tune/events.h"
#include "tune/experiment.h"

namespace cadre::tune::console {

// The settings and the state that decide which lines are logged.
struct LogDetail {
  int verbose = 1;          // RunConfig::verbose
  std::int64_t trials = 1;  // number of trials; above 20, only verbose 2 logs the start of each
  std::string metric = {};  // the experiment's metric, listed first
  base::Encoding encoding = base::Encoding::utf8;
  // Reasons that were logged, with the id of the first trial; log_text() adds to them. A reason is logged in full once.
  std::map<std::string, std::string>* said_errors = nullptr;
};

// Returns the lines about an action, separated by '\n' and without one at the end; empty: nothing is logged. Names
// given by users and trials are made printable, but the text of a Say is unchanged. `directory` is the experiment's.
std::string log_text(const Action& action, const Experiment& experiment, const std::string& directory,
                     const LogDetail& detail);

// Describes a trial's failure and names the file with the whole error: "Trial 00003 errored after 12 iterations:
// <message>\n <file>". Shows the message without the stacks of libtorch's errors, and at most kMostErrorLines of it.
inline constexpr std::size_t kMostErrorLines = 36;
std::string error_text(const Trial& trial, std::int64_t iteration, const std::string& message,
                       const std::string& directory, base::Encoding encoding);

// Returns the message with the trial's directory and memory addresses replaced, so that trials that fail for the same
// reason have the same text.
std::string reason_of(const Trial& trial, const std::string& message);

// Describes one or more trials that failed for good for the same reason: their number, the line of the message that
// says what happened, and the file of the first trial.
std::string errors_text(const std::vector<const Trial*>& trials, const std::string& directory, base::Encoding encoding);

}  // namespace cadre::tune::console
