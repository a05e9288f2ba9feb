// A training run's timeline as an SVG file with a lane for each kind of work. Plain values in, text out: no I/O, no
// clock, and the same values always give the same text.
#pragma once

#include <string>
#include <vector>

namespace cadre::train {

struct TimelineSpan {
  enum class Kind { training, upload, validation, failed };
  Kind kind = Kind::training;
  double begin = 0;  // seconds since the start of the run
  double end = 0;
  std::string label = {};  // shown if there is room, and as a tooltip
};

struct TimelineLane {
  std::string name = {};
  // Overlapping spans are drawn in rows below each other.
  std::vector<TimelineSpan> spans = {};
};

struct Timeline {
  std::string title = {};
  double duration = 0;                   // seconds
  std::vector<double> reports = {};      // seconds since the start of the run
  std::vector<TimelineLane> lanes = {};  // from top to bottom; a lane without spans gets a note
};

// Returns a complete SVG document in UTF-8. Texts may contain anything; characters that XML does not allow are
// replaced.
std::string to_svg(const Timeline& timeline);

}  // namespace cadre::train
