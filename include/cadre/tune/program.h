/// \file
/// Programs as trainables: a script or a compiled program in any language, which links nothing of Cadre's.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/stopper.h"

namespace cadre::tune {

/// A program that is started once for each of a trial's workers:
///
///     tune::Program train{.command = {"./train", "--lr", "{lr}"}};
///     tune::Tuner tuner(train, {.param_space = {{"lr", tune::loguniform(1e-5, 1)}}});
///
/// Texts may have placeholders: `{lr}` is the value of lr in the trial's config, `{model/width}` one of a nested space,
/// `{CADRE_TRIAL_DIR}` one of the variables that the program gets. Any other brace stays as it is; `{{lr}}` is the text
/// {lr}. Numbers are written so that they read back as the same, true and false in words, lists and dictionaries as
/// JSON.
///
/// A program that ends with exit code 0 has succeeded, unless the experiment has a metric and the program never
/// reported it. Any other end fails the trial, with the last lines of its output. docs/programs.md says how programs
/// report metrics and save checkpoints.
struct Program {
  /// Program and arguments, with placeholders in the arguments; started without a shell. A name without a slash is
  /// looked for in PATH, a relative path begins in the directory in which the program called cadre::init.
  std::vector<std::string> command = {};
  /// Variables of its environment besides those that this process has, with placeholders in the values. Default: none.
  std::map<std::string, std::string> environment = {};
  /// Its working directory, with placeholders: "{CADRE_TRIAL_DIR}" is the trial's own. Default: that of the trials.
  std::string working_directory = {};
  /// Metrics in its standard output, by name: regular expressions (ECMAScript), the first group of which is the value;
  /// without a group, the whole match. The first 4,096 bytes of each line are searched, and the last match in a line
  /// counts. Each line that has the experiment's metric makes a report, with the last values of the others; without
  /// a metric, each line that has any. Default: none.
  std::map<std::string, std::string> metric_patterns = {};
  /// A file with metrics, with placeholders, which is read while it grows: CSV with names in its first line (.csv), one
  /// JSON document per line (.jsonl, .json), or TensorBoard's events: a file with "tfevents" in its name, or a
  /// directory with such files. A relative path begins in the working directory. Each row makes a report; events do as
  /// lines of metric_patterns do. Rows that were there before the program was started do not count. Default: none.
  std::string metrics_file = {};
  /// Signal that asks the program for a checkpoint, "SIGUSR1" for example, if it cannot be asked through the descriptor
  /// CADRE_REPORT_FD. Default: none.
  std::optional<std::string> checkpoint_signal = {};
  /// Time that a program which was told to stop has to end by itself, 0 or more; then it is killed, with all processes
  /// that it started.
  Seconds stop_patience = std::chrono::seconds(5);

  bool is_set() const { return !command.empty(); }  ///< returns true if there is a program
  bool operator==(const Program&) const = default;  ///< compares the members
};

}  // namespace cadre::tune
