// The look that plots with two axes share: the size of a panel, its axes, and colours.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "view/plot_axis.h"

namespace cadre::view {

// Lengths are pixels.
inline constexpr double kPlotWidth = 400;
inline constexpr double kPlotHeight = 260;
inline constexpr double kPlotLeft = 66;  // margin of a panel for tick labels and the vertical axis's name
inline constexpr double kPlotRight = 14;
inline constexpr double kPlotTop = 24;
inline constexpr double kPlotBottom = 48;
inline constexpr double kPlotBorder = 10;  // of the whole picture
inline constexpr double kPlotTitleHeight = 26;
inline constexpr double kPlotFontSize = 12;
inline constexpr double kLegendLine = 19;
inline constexpr double kLegendSample = 30;  // width of a line or mark before its label

// Okabe and Ito's colours, which people with any colour vision can distinguish, without black and yellow (too pale on
// white).
inline constexpr std::array<std::string_view, 6> kPlotColours{"#0072b2", "#d55e00", "#009e73",
                                                              "#cc79a7", "#e69f00", "#56b4e9"};
inline constexpr std::string_view kPaleColour = "#c4c4c4";  // of what is in the background

struct Pixel {
  double x = 0;
  double y = 0;
};

// The two axes of a panel; pixels count from its upper left corner. `whole_x`, `whole_y`: only whole numbers have
// ticks.
struct PanelAxes {
  PlotAxis x;
  PlotAxis y;
  bool whole_x = false;
  bool whole_y = false;

  Pixel pixel_of(double at_x, double at_y) const {
    return {x.position_of(at_x) * kPlotWidth, (1 - y.position_of(at_y)) * kPlotHeight};
  }
};

// Appends the axes with ticks and a grid.
void append_axes(std::string& out, const PanelAxes& axes);
// Appends the lines of axes without ticks, and a text between them.
void append_empty_axes(std::string& out, std::string_view text);
// Appends the names of the axes; any bytes.
void append_axis_names(std::string& out, std::string_view x, std::string_view y);
// Appends the title of a picture of this width; nothing if it is empty.
void append_plot_title(std::string& out, std::string_view title, double width);

}  // namespace cadre::view
