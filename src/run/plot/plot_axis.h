// An axis of a plot: which part of the numbers it shows, where they lie on it, and round ticks.
#pragma once

#include <string>
#include <vector>

namespace cadre::run {

class PlotAxis {
 public:
  enum class Scale { linear, logarithmic };

  // Shows everything from `lowest` to `highest` with a margin on both sides. Both must be finite and at most 1e300 in
  // size, and on a logarithmic axis positive.
  PlotAxis(double lowest, double highest, Scale scale);

  // Where a value lies: 0 at the axis's lower end, 1 at its upper end.
  double position_of(double value) const;

  struct Tick {
    double position = 0;
    std::string label = {};  // UTF-8
  };
  // About `count` of them, at least one, at 1, 2 or 5 times powers of ten; `whole` keeps to whole numbers.
  struct Ticks {
    std::vector<Tick> ticks = {};
    std::string factor = {};  // what all labels are to be multiplied by, as "×10⁶"; empty: nothing
  };
  Ticks ticks(int count, bool whole) const;

 private:
  Ticks linear_ticks(int count, bool whole) const;
  Ticks logarithmic_ticks(int count) const;
  double shown(double value) const;

  Scale scale_;
  double begin_ = 0;  // of what is shown; on a logarithmic axis their logarithms
  double end_ = 1;
};

}  // namespace cadre::run
