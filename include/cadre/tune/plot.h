/// \file
/// Learning curves of an experiment, and Pareto fronts, as pictures in SVG or PNG.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::tune {

/// Options of a picture of learning curves.
struct PlotOptions {
  /// Metrics to plot, one panel each. Default: the experiment's metric; if it has none, the first four numbers that
  /// trials report themselves. "config/lr" is the parameter lr that each result was reported with, that is its
  /// schedule.
  std::vector<std::string> metrics = {};
  /// Metrics with a logarithmic axis, and x if it is to have one. The axis of a parameter is always logarithmic if the
  /// search space draws it logarithmically, or if its largest value is at least 50 times its smallest one.
  std::vector<std::string> logarithmic = {};
  /// Horizontal axis: this or another number of every result, such as "time_total_s"
  std::string x = "training_iteration";
  std::string title = {};  ///< default: the experiment's name
};

/// Returns an SVG document with a panel for each metric and a line for each trial. A line ends at an exploit, and a new
/// line begins at the donor's checkpoint: for a metric at the donor's value, for a parameter at the explored one. Up to
/// 12 trials are coloured. If there are more, the 6 best by the last value of the first metric are coloured and the
/// others are grey; if the first metric is a parameter, the experiment's metric decides; if no direction is known, the
/// first 6 trials are coloured. Results without x or the metric, NaN and infinities are left out. Reads all results.
/// Throws InvalidArgument for a metric or an x that no result has, with the available names, and for a logarithmic one
/// that is not plotted; StorageError if results cannot be read.
std::string to_svg(const ResultGrid& results, const PlotOptions& options = {});

/// Writes the same picture to a file, as SVG or PNG by its ending: "curves.svg", "curves.png". A PNG has two pixels for
/// each of the SVG's. The file is replaced atomically: after an error it is unchanged. Throws InvalidArgument, too, for
/// another ending; StorageError, too, if the file cannot be written; and for a PNG NotFound if librsvg, which draws it,
/// is not installed, with the name of its package. It is loaded with the first PNG, and nothing else needs it.
void write_plot(const ResultGrid& results, const std::filesystem::path& file, const PlotOptions& options = {});

/// One trial of an experiment, for a picture with trials of several experiments.
struct ComparedTrial {
  std::string label;     ///< name in the legend
  ResultGrid results;    ///< all results of its experiment
  std::string trial_id;  ///< id of the trial in that experiment
};

/// Returns an SVG document as above with a line for each of these trials; the title and the default metrics are those
/// of the first trial's experiment. Reads all results of all of these experiments. Throws InvalidArgument, too, if
/// there are no trials, and for an id that its experiment does not have.
std::string to_svg(const std::vector<ComparedTrial>& trials, const PlotOptions& options = {});

/// Writes the same picture to a file, as above.
void write_plot(const std::vector<ComparedTrial>& trials, const std::filesystem::path& file,
                const PlotOptions& options = {});

/// Options of a picture of a Pareto front.
struct ParetoPlotOptions {
  Scope scope = Scope::last;                  ///< the value of a trial's metric
  std::vector<std::string> logarithmic = {};  ///< metrics with a logarithmic axis
  std::string title = {};                     ///< default: the experiment's name
};

/// Returns an SVG document with a point for each trial: the first metric to the right, the second one upwards. The
/// trials of ResultGrid::pareto_front are coloured, and a step line separates what they beat from what none has
/// reached. Each point has a title with the trial's id, its values and its hyper-parameters. Trials without a finite
/// number for both, or without a positive one on a logarithmic axis, are left out. Throws what pareto_front() does, and
/// InvalidArgument unless there are two metrics, or for a logarithmic one that is not among them.
std::string pareto_svg(const ResultGrid& results, const std::vector<Objective>& metrics,
                       const ParetoPlotOptions& options = {});

/// Writes the same picture to a file, as SVG or PNG by its ending; see write_plot().
void write_pareto_plot(const ResultGrid& results, const std::vector<Objective>& metrics,
                       const std::filesystem::path& file, const ParetoPlotOptions& options = {});

}  // namespace cadre::tune
