// What is said about single trials as it happens. Pure: an action in, a text out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/display_text.h"
#include "tune/events.h"
#include "tune/experiment.h"

namespace cadre::tune::console {

// What is worth a line.
struct LogDetail {
  int verbose = 1;          // RunConfig's
  std::int64_t trials = 1;  // of the experiment. With many of them (above 20) nothing is said of each one's start
  std::string metric = {};  // of the experiment, told first
  base::Encoding encoding = base::Encoding::utf8;
  // Reasons that were said, and of which trial; log_text() adds to them. A reason is said once.
  std::map<std::string, std::string>* said_errors = nullptr;
};

// Lines about what has been decided, separated by '\n' and without one at the end; empty: nothing is said. What users
// and trials have named is printable in it, but a Say is as it was given. `directory` is the experiment's.
std::string log_text(const Action& action, const Experiment& experiment, const std::string& directory,
                     const LogDetail& detail);

// A trial's failure with the file that has all of it: "Trial 00003 errored after 12 iterations: <message>\n <file>".
// The message without the stacks of libtorch's errors, and at most so many lines of it.
inline constexpr std::size_t kMostErrorLines = 36;
std::string error_text(const Trial& trial, const std::string& message, const std::string& directory,
                       base::Encoding encoding);

// Returns the part of a message that trials share which fail for the same reason: without the trial's
// directory and addresses in memory.
std::string reason_of(const Trial& trial, const std::string& message);

// Trials that have failed for good for the same reason, at least one: their number, the first line of the message and
// the file of the first one.
std::string errors_text(const std::vector<const Trial*>& trials, const std::string& directory, base::Encoding encoding);

}  // namespace cadre::tune::console
