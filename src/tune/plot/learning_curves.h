// Learning curves as a picture: an SVG file with a panel for each metric and a line for each trial. Plain values in,
// text out: no I/O, no clock, and the same values always give the same text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"

namespace cadre::tune {

struct CurvePoint {
  double x = 0;
  double y = 0;  // NaN, infinite, beyond 1e300, or not positive where the axis is logarithmic: a gap in the line
};

// What a trial reported from its beginning, or from an exploit, up to the next exploit.
struct CurveSegment {
  std::string donor = {};  // id of the trial that it continues from; empty: it begins anew
  double x = 0;            // of the donor's checkpoint; without a donor it means nothing
  // For each metric of the picture the points in the order of their reports. Results that lack the metric are left out.
  // A line begins where the donor was when the donor's result at its checkpoint is given as the first point.
  std::vector<std::vector<CurvePoint>> series = {};
};

struct TrialCurves {
  std::string id = {};                      // "00003"
  std::string label = {};                   // in the legend
  std::vector<CurveSegment> segments = {};  // each is a line of its own
  std::optional<double> score = {};         // what it is ranked by; default: the last value of the first metric
};

struct CurveMetric {
  std::string name = {};
  bool logarithmic = false;
};

struct LearningCurves {
  std::string title = {};                     // empty: none
  std::string x_name = "training_iteration";  // what x is
  std::vector<CurveMetric> metrics = {};      // a panel each
  std::optional<Mode> mode = {};              // what is good of the first metric, or of the scores; empty: nobody knows
  std::vector<TrialCurves> trials = {};

  // Up to kMostColoured trials have a colour and a line in the legend. If there are more, the kHighlighted best ones by
  // their scores have, or the first ones without a mode, and the others are grey.
  static constexpr std::size_t kMostColoured = 12;
  static constexpr std::size_t kHighlighted = 6;
};

// A whole SVG document in UTF-8. Text may hold anything; what XML cannot carry is replaced. A metric without a value
// that can be shown has a panel that says so. Throws InvalidArgument when a segment has not one series for each metric.
std::string to_svg(const LearningCurves& curves);

}  // namespace cadre::tune
