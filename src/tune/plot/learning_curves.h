// Draws learning curves as an SVG file with a panel for each metric and a line for each trial. Plain values in, text
// out: no I/O, no clock, and the same values always give the same text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"

namespace cadre::tune {

struct CurvePoint {
  double x = 0;  // not positive on a logarithmic axis: left out, like y
  double y = 0;  // NaN, infinite, beyond 1e300, or not positive on a logarithmic axis: a gap in the line
};

// A trial's results from its beginning, or from an exploit, up to the next exploit.
struct CurveSegment {
  std::string donor = {};  // id of the trial that it continues from; empty: begins anew
  double x = 0;            // of the donor's checkpoint; unused without a donor
  // For each metric of the picture the points in the order of their reports, without results that lack the metric. To
  // connect the line to the donor's, the first point must be the donor's result at its checkpoint.
  std::vector<std::vector<CurvePoint>> series = {};
};

struct TrialCurves {
  std::string id = {};                      // "00003"
  std::string label = {};                   // in the legend
  std::vector<CurveSegment> segments = {};  // each drawn as its own line
  std::optional<double> score = {};         // for ranking; default: the last value of the first metric
};

struct CurveMetric {
  std::string name = {};
  bool logarithmic = false;
};

struct LearningCurves {
  std::string title = {};                     // empty: none
  std::string x_name = "training_iteration";  // name of the x axis
  bool logarithmic_x = false;
  std::vector<CurveMetric> metrics = {};  // one panel each
  std::optional<Mode> mode = {};          // direction of the first metric, or of the scores; empty: unknown
  std::vector<TrialCurves> trials = {};

  // Up to kMostColoured trials have a colour and a line in the legend. If there are more, only the kHighlighted best
  // ones by score do (without a mode the first ones), and the others are grey.
  static constexpr std::size_t kMostColoured = 12;
  static constexpr std::size_t kHighlighted = 6;
};

// Returns a whole SVG document in UTF-8. Texts may contain anything; characters that XML does not allow are replaced. A
// metric without values to show has a panel that says so. Throws InvalidArgument if a segment does not have one series
// for each metric.
std::string to_svg(const LearningCurves& curves);

}  // namespace cadre::tune
