/// \file
/// Learning curves of an experiment as a picture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::tune {

/// What a picture of learning curves shows.
struct PlotOptions {
  /// Metrics with a panel each. Default: the experiment's metric; if it has none, the first four numbers that trials
  /// report themselves. "config/lr" is the parameter lr that each result was reported with: its schedule.
  std::vector<std::string> metrics = {};
  /// Metrics whose axis is logarithmic. The axis of a parameter is so in any case when the search space draws it
  /// logarithmically, or when its largest value is 50 times its smallest one or more.
  std::vector<std::string> logarithmic = {};
  std::string x = "training_iteration";  ///< or another number of every result, as "time_total_s"
  std::string title = {};                ///< default: the experiment's name
};

/// An SVG document with a panel for each metric and a line for each trial. A line ends at an exploit, and a new one
/// begins at the donor's checkpoint: of a metric with the donor's value, of a parameter with the explored one. Up to 12
/// trials have a colour; of more the 6 best by the last value of the first metric have, or of the experiment's metric
/// where the first one is a parameter, or the first 6 where it is not known what is good, and the others are grey.
/// Results without x or the metric, NaN and infinities are left out. All results are read. Throws InvalidArgument for a
/// metric or an x that no result has, with the names that there are; StorageError.
std::string to_svg(const ResultGrid& results, const PlotOptions& options = {});

/// The same into a file, which is replaced in one step: after an error it is as it was. Throws StorageError, too, when
/// it cannot be written.
void write_svg(const ResultGrid& results, const std::filesystem::path& file, const PlotOptions& options = {});

/// One trial of an experiment, for a picture with trials of several.
struct ComparedTrial {
  std::string label;     ///< in the legend
  ResultGrid results;    ///< of the experiment
  std::string trial_id;  ///< one of its trials
};

/// The same with a line for each of these trials, in the title and the default of the metrics as the first one's
/// experiment. All results of all of these experiments are read. Throws InvalidArgument also without a trial, and for
/// an id that its experiment does not have.
std::string to_svg(const std::vector<ComparedTrial>& trials, const PlotOptions& options = {});

/// The same into a file, which is replaced in one step. Throws StorageError, too, when it cannot be written.
void write_svg(const std::vector<ComparedTrial>& trials, const std::filesystem::path& file,
               const PlotOptions& options = {});

}  // namespace cadre::tune
