// An axis of a plot: the range that it shows, the positions of values, and round ticks.
#pragma once

#include <string>
#include <vector>

namespace cadre::view {

class PlotAxis {
 public:
  enum class Scale { linear, logarithmic };

  // Shows the range from `lowest` to `highest`, with a margin on both sides. Both must be finite, at most 1e300 in
  // size, and positive on a logarithmic axis.
  PlotAxis(double lowest, double highest, Scale scale);

  // Returns the position of a value: 0 at the axis's lower end, 1 at its upper end.
  double position_of(double value) const;

  struct Tick {
    double position = 0;
    std::string label = {};  // UTF-8
  };
  // About `count` ticks, at least one, at 1, 2 or 5 times powers of ten; `whole`: only whole numbers.
  struct Ticks {
    std::vector<Tick> ticks = {};
    std::string factor = {};  // factor of all labels, as "×10⁶"; empty: 1
  };
  Ticks ticks(int count, bool whole) const;

 private:
  Ticks linear_ticks(int count, bool whole) const;
  Ticks logarithmic_ticks(int count) const;
  double shown(double value) const;

  Scale scale_;
  double begin_ = 0;  // ends of the shown range; logarithms on a logarithmic axis
  double end_ = 1;
};

}  // namespace cadre::view
