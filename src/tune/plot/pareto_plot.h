// Draws trials by two metrics as an SVG picture, with those on the Pareto front as a step line. Plain values in, text
// out: no I/O, no clock, and the same values always give the same text.
#pragma once

#include <string>
#include <vector>

#include "cadre/checkpoint_config.h"

namespace cadre::tune {

struct ParetoAxis {
  std::string name = {};
  Mode mode = Mode::min;
  bool logarithmic = false;
};

struct ParetoTrial {
  std::string label = {};  // shown where the pointer rests
  double x = 0;            // beyond 1e300, or not positive on a logarithmic axis: not shown
  double y = 0;
  bool is_on_front = false;
};

struct ParetoPlot {
  std::string title = {};  // empty: none
  ParetoAxis x = {};
  ParetoAxis y = {};
  std::vector<ParetoTrial> trials = {};
};

// Returns a whole SVG document in UTF-8. Texts may contain anything; characters that XML does not allow are replaced.
std::string to_svg(const ParetoPlot& plot);

}  // namespace cadre::tune
