// A training run over time as a picture: an SVG file with a lane for each thing that goes on. Plain values in, text
// out: no I/O, no clock, and the same values always give the same text.
#pragma once

#include <string>
#include <vector>

namespace cadre::train {

struct TimelineSpan {
  enum class Kind { training, upload, validation, failed };
  Kind kind = Kind::training;
  double begin = 0;  // seconds since the run's beginning
  double end = 0;
  std::string label = {};  // what is said of it where there is room, and when the mouse is on it
};

struct TimelineLane {
  std::string name = {};
  // Those that overlap are drawn in rows below each other.
  std::vector<TimelineSpan> spans = {};
};

struct Timeline {
  std::string title = {};
  double duration = 0;                   // seconds
  std::vector<double> reports = {};      // when: seconds since the beginning
  std::vector<TimelineLane> lanes = {};  // from top to bottom; those without spans say so
};

// A whole SVG document in UTF-8. Text may hold anything; what XML cannot carry is replaced.
std::string to_svg(const Timeline& timeline);

}  // namespace cadre::train
