#include "view/plot_panel.h"

#include "view/svg.h"

namespace cadre::view {

using svg::append;
using svg::pixels;

namespace {

constexpr double kTitleSize = 15;
constexpr double kWidthOfBold = 1.15;  // relative to regular text
constexpr int kTicks = 6;

}  // namespace

void append_axes(std::string& out, const PanelAxes& axes) {
  const PlotAxis::Ticks x = axes.x.ticks(kTicks, axes.whole_x);
  const PlotAxis::Ticks y = axes.y.ticks(kTicks, axes.whole_y);
  std::string grid;
  std::string lines = fmt::format("M0,0V{}H{}", kPlotHeight, kPlotWidth);
  std::string labels;
  for (const PlotAxis::Tick& tick : y.ticks) {
    const std::string at = pixels((1 - tick.position) * kPlotHeight);
    append(grid, "M0,{}h{}", at, kPlotWidth);
    append(lines, "M0,{}h-4", at);
    append(labels, "<text x=\"-8\" y=\"{}\" dy=\"0.35em\" text-anchor=\"end\">{}</text>\n", at, tick.label);
  }
  for (const PlotAxis::Tick& tick : x.ticks) {
    const std::string at = pixels(tick.position * kPlotWidth);
    append(lines, "M{},{}v4", at, kPlotHeight);
    append(labels, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at, kPlotHeight + 18, tick.label);
  }
  if (!y.factor.empty()) append(labels, "<text x=\"0\" y=\"-8\">{}</text>\n", y.factor);
  if (!x.factor.empty())
    append(labels, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kPlotWidth, kPlotHeight + 36, x.factor);
  append(out, "<path class=\"grid\" d=\"{}\" stroke=\"#e8e8e8\" fill=\"none\"/>\n", grid);
  append(out, "<path class=\"axes\" d=\"{}\" stroke=\"#444\" fill=\"none\"/>\n", lines);
  append(out, "<g class=\"ticks\" font-size=\"11\" fill=\"#444\">\n{}</g>\n", labels);
}

void append_empty_axes(std::string& out, std::string_view text) {
  append(out, "<path class=\"axes\" d=\"M0,0V{}H{}\" stroke=\"#444\" fill=\"none\"/>\n", kPlotHeight, kPlotWidth);
  append(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#777\">{}</text>\n", kPlotWidth / 2,
         kPlotHeight / 2, svg::escaped(text));
}

void append_axis_names(std::string& out, std::string_view x, std::string_view y) {
  append(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kPlotWidth / 2, kPlotHeight + 37,
         svg::escaped(svg::shortened(x, kPlotWidth / 2, kPlotFontSize)));
  append(out, "<text transform=\"translate({},{}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", 16 - kPlotLeft,
         kPlotHeight / 2, svg::escaped(svg::shortened(y, kPlotHeight, kPlotFontSize)));
}

void append_plot_title(std::string& out, std::string_view title, double width) {
  if (title.empty()) return;
  const double left = kPlotBorder + kPlotLeft;
  append(out, "<text x=\"{}\" y=\"{}\" font-size=\"{}\" font-weight=\"bold\">{}</text>\n", left,
         kPlotBorder + kPlotTitleHeight - 8, kTitleSize,
         svg::escaped(svg::shortened(title, (width - left) / kWidthOfBold, kTitleSize)));
}

}  // namespace cadre::view
