#include "tune/plot/learning_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "cadre/error.h"
#include "view/plot_axis.h"
#include "view/plot_panel.h"
#include "view/svg.h"

namespace cadre::tune {

namespace svg = view::svg;
using svg::append;
using svg::pixels;
using view::Pixel;
using view::PlotAxis;

namespace {

// ---- Appearance. Lengths are pixels.

constexpr double kLongestLabel = 340;

struct LineStyle {
  std::string_view colour;
  std::string_view dashes;  // empty: none
  double width = 1.8;
  double marker = 5;  // from its centre to a corner
};

// For lines beyond the number of colours.
constexpr std::string_view kDashes = "5,2.5";
constexpr LineStyle kOther{.colour = view::kPaleColour, .dashes = "", .width = 1, .marker = 3.5};
static_assert(LearningCurves::kMostColoured <= 2 * view::kPlotColours.size() &&
              LearningCurves::kHighlighted <= view::kPlotColours.size());

LineStyle style_of(std::size_t number) {
  return {.colour = view::kPlotColours[number % view::kPlotColours.size()],
          .dashes = number < view::kPlotColours.size() ? "" : kDashes};
}

// ---- Lines

using Line = std::vector<Pixel>;

bool can_be_shown(double value, bool logarithmic) {
  constexpr double most = 1e300;
  return std::abs(value) <= most && (!logarithmic || value > 0);
}

// Keeps, of consecutive points in the same column of pixels, the first, the lowest, the highest and the last.
Line without_what_nobody_sees(const Line& line) {
  Line kept;
  for (auto begin = line.begin(); begin != line.end();) {
    const auto end = std::find_if(begin, line.end(),
                                  [&](const Pixel& pixel) { return std::floor(pixel.x) != std::floor(begin->x); });
    const auto [lowest, highest] =
        std::minmax_element(begin, end, [](const Pixel& a, const Pixel& b) { return a.y < b.y; });
    std::array chosen{begin, lowest, highest, std::prev(end)};
    std::ranges::sort(chosen);
    const auto [repeated, last] = std::ranges::unique(chosen);
    for (auto it = chosen.begin(); it != repeated; ++it) kept.push_back(**it);
    begin = end;
  }
  return kept;
}

struct Panel {
  const LearningCurves& curves;
  std::size_t metric = 0;
  std::optional<view::PanelAxes> axes = {};  // empty: nothing to show

  bool logarithmic() const { return curves.metrics[metric].logarithmic; }
  bool shows(const CurvePoint& point) const {
    return can_be_shown(point.x, curves.logarithmic_x) && can_be_shown(point.y, logarithmic());
  }
  // Returns the parts of a segment between gaps.
  std::vector<Line> lines_of(const CurveSegment& segment) const {
    std::vector<Line> lines(1);
    for (const CurvePoint& point : segment.series[metric]) {
      if (shows(point)) {
        lines.back().push_back(axes->pixel_of(point.x, point.y));
      } else if (!lines.back().empty()) {
        lines.emplace_back();
      }
    }
    if (lines.back().empty()) lines.pop_back();
    return lines;
  }
};

PlotAxis::Scale scale_of(bool logarithmic) {
  return logarithmic ? PlotAxis::Scale::logarithmic : PlotAxis::Scale::linear;
}

Panel make_panel(const LearningCurves& curves, std::size_t metric) {
  Panel panel{.curves = curves, .metric = metric};
  std::vector<CurvePoint> points;
  for (const TrialCurves& trial : curves.trials) {
    for (const CurveSegment& segment : trial.segments)
      std::ranges::copy_if(segment.series[metric], std::back_inserter(points),
                           [&](const CurvePoint& point) { return panel.shows(point); });
  }
  if (points.empty()) return panel;
  const auto [left, right] = std::ranges::minmax(points | std::views::transform(&CurvePoint::x));
  const auto [lowest, highest] = std::ranges::minmax(points | std::views::transform(&CurvePoint::y));
  panel.axes.emplace(view::PanelAxes{
      .x = {left, right, scale_of(curves.logarithmic_x)},
      .y = {lowest, highest, scale_of(panel.logarithmic())},
      .whole_x = std::ranges::all_of(points, [](const CurvePoint& point) { return point.x == std::floor(point.x); })});
  return panel;
}

// ---- Drawing

// Returns the path of a triangle around a point.
std::string triangle(Pixel at, double size) {
  return fmt::format("M{},{}l{},{}h{}Z", pixels(at.x), pixels(at.y - size), pixels(size * 0.9), pixels(size * 1.6),
                     pixels(-size * 1.8));
}

void append_trial(std::string& out, const Panel& panel, const TrialCurves& trial, const LineStyle& style) {
  std::string lines;
  std::string dots;
  for (const CurveSegment& segment : trial.segments) {
    for (const Line& line : panel.lines_of(segment)) {
      if (line.size() == 1) {
        append(dots, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", pixels(line[0].x), pixels(line[0].y),
               style.width + 0.7);
        continue;
      }
      char command = 'M';
      for (const Pixel& pixel : without_what_nobody_sees(line)) {
        append(lines, "{}{},{}", command, pixels(pixel.x), pixels(pixel.y));
        command = 'L';
      }
    }
  }
  if (lines.empty() && dots.empty()) return;
  append(out, "<g class=\"trial\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\">\n<title>{}</title>\n", style.colour,
         style.width, svg::escaped(trial.label));
  if (!lines.empty()) {
    append(out, "<path d=\"{}\" stroke-linejoin=\"round\" stroke-linecap=\"{}\"", lines,
           style.dashes.empty() ? "round" : "butt");
    if (!style.dashes.empty()) append(out, " stroke-dasharray=\"{}\"", style.dashes);
    out += "/>\n";
  }
  if (!dots.empty()) append(out, "<g fill=\"{}\" stroke=\"none\">\n{}</g>\n", style.colour, dots);
  out += "</g>\n";
}

void append_exploits(std::string& out, const Panel& panel, const TrialCurves& trial, const LineStyle& style) {
  for (const CurveSegment& segment : trial.segments) {
    if (segment.donor.empty()) continue;
    const std::vector<Line> lines = panel.lines_of(segment);
    if (lines.empty()) continue;
    append(out,
           "<path class=\"exploit\" d=\"{}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.8\">"
           "<title>{} continued from {} at {}</title></path>\n",
           triangle(lines.front().front(), style.marker), style.colour, svg::escaped(trial.id),
           svg::escaped(segment.donor), segment.x);
  }
}

// The look of each trial, and the trials in the legend, in order.
struct Roles {
  std::vector<LineStyle> styles = {};
  std::vector<std::size_t> legend = {};
};

std::optional<double> last_value(const TrialCurves& trial) {
  if (trial.score) return trial.score;
  for (const CurveSegment& segment : trial.segments | std::views::reverse) {
    for (const CurvePoint& point : segment.series.front() | std::views::reverse) {
      if (std::isfinite(point.y)) return point.y;
    }
  }
  return std::nullopt;
}

Roles assign_roles(const LearningCurves& curves) {
  Roles roles{std::vector<LineStyle>(curves.trials.size(), kOther), std::vector<std::size_t>(curves.trials.size())};
  std::iota(roles.legend.begin(), roles.legend.end(), std::size_t{0});
  if (curves.trials.size() > LearningCurves::kMostColoured) {
    std::vector<double> scores;
    const double sign = !curves.mode ? 0 : *curves.mode == Mode::max ? 1 : -1;
    for (const TrialCurves& trial : curves.trials) {
      const std::optional<double> value = last_value(trial);
      scores.push_back(value ? sign * *value : -std::numeric_limits<double>::infinity());
    }
    std::ranges::stable_sort(roles.legend, std::ranges::greater(), [&](std::size_t trial) { return scores[trial]; });
    roles.legend.resize(LearningCurves::kHighlighted);
  }
  for (std::size_t i = 0; i < roles.legend.size(); ++i) roles.styles[roles.legend[i]] = style_of(i);
  return roles;
}

// Returns the trials with those outside the legend first, and the best last, on top.
std::vector<std::size_t> drawing_order(const Roles& roles) {
  std::vector<std::size_t> order;
  for (std::size_t trial = 0; trial < roles.styles.size(); ++trial) {
    if (std::ranges::find(roles.legend, trial) == roles.legend.end()) order.push_back(trial);
  }
  std::ranges::copy(roles.legend | std::views::reverse, std::back_inserter(order));
  return order;
}

void append_panel(std::string& out, const LearningCurves& curves, std::size_t metric, const Roles& roles) {
  const Panel panel = make_panel(curves, metric);
  const std::string& name = curves.metrics[metric].name;
  if (panel.axes) {
    view::append_axes(out, *panel.axes);
  } else {
    const std::string shown = svg::shortened(name, view::kPlotWidth / 2, view::kPlotFontSize);
    view::append_empty_axes(out, "no values of " + shown + " to show");
  }
  view::append_axis_names(out, curves.x_name, name);
  if (!panel.axes) return;
  const std::vector<std::size_t> order = drawing_order(roles);
  for (const std::size_t trial : order) append_trial(out, panel, curves.trials[trial], roles.styles[trial]);
  for (const std::size_t trial : order) append_exploits(out, panel, curves.trials[trial], roles.styles[trial]);
}

struct LegendEntry {
  std::string label;
  LineStyle style;
  bool is_marker = false;
};

std::vector<LegendEntry> legend_of(const LearningCurves& curves, const Roles& roles) {
  std::vector<LegendEntry> entries;
  for (const std::size_t trial : roles.legend) entries.push_back({curves.trials[trial].label, roles.styles[trial]});
  if (const std::size_t others = curves.trials.size() - roles.legend.size(); others > 0)
    entries.push_back({fmt::format("{} other trials", others), kOther});
  const bool any_exploit = std::ranges::any_of(curves.trials, [](const TrialCurves& trial) {
    return std::ranges::any_of(trial.segments, [](const CurveSegment& segment) { return !segment.donor.empty(); });
  });
  if (any_exploit) entries.push_back({"continued from another trial", {.colour = "#444", .dashes = ""}, true});
  return entries;
}

double legend_width(const std::vector<LegendEntry>& legend) {
  double width = 0;
  for (const LegendEntry& entry : legend)
    width = std::max(
        width, view::kLegendSample +
                   svg::width_of(svg::shortened(entry.label, kLongestLabel, view::kPlotFontSize), view::kPlotFontSize));
  return width;
}

void append_legend(std::string& out, const std::vector<LegendEntry>& legend) {
  double y = view::kLegendLine / 2;
  for (const auto& [label, style, is_marker] : legend) {
    append(out, "<g class=\"entry\"><title>{}</title>", svg::escaped(label));
    if (is_marker) {
      append(out, "<path d=\"{}\" fill=\"{}\"/>", triangle({11, y}, style.marker), style.colour);
    } else {
      append(out, "<path d=\"M0,{}h22\" stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>", pixels(y),
             style.colour, style.width, style.dashes.empty() ? "none" : style.dashes);
    }
    append(out, "<text x=\"{}\" y=\"{}\" dy=\"0.35em\">{}</text></g>\n", view::kLegendSample, pixels(y),
           svg::escaped(svg::shortened(label, kLongestLabel, view::kPlotFontSize)));
    y += view::kLegendLine;
  }
}

void check(const LearningCurves& curves) {
  for (const TrialCurves& trial : curves.trials) {
    for (const CurveSegment& segment : trial.segments) {
      if (segment.series.size() != curves.metrics.size())
        throw InvalidArgument(fmt::format("learning curves: a segment of trial {} has {} series for {} metrics",
                                          trial.id, segment.series.size(), curves.metrics.size()));
    }
  }
}

}  // namespace

std::string to_svg(const LearningCurves& curves) {
  check(curves);
  const std::string title = curves.title.empty() ? "Learning curves" : curves.title;
  if (curves.metrics.empty() || curves.trials.empty()) {
    std::string content;
    append(content, "<text x=\"50%\" y=\"50%\" text-anchor=\"middle\" fill=\"#777\">{}</text>\n",
           curves.metrics.empty() ? "no metrics to show" : "no trials to show");
    return svg::document(view::kPlotWidth, view::kPlotHeight, view::kPlotFontSize, title, content);
  }
  const Roles roles = assign_roles(curves);
  const std::vector<LegendEntry> legend = legend_of(curves, roles);
  const std::size_t count = curves.metrics.size();
  const std::size_t columns = count == 1 ? 1 : count <= 4 ? 2 : 3;
  const std::size_t rows = (count + columns - 1) / columns;
  const double panel_width = view::kPlotLeft + view::kPlotWidth + view::kPlotRight;
  const double panel_height = view::kPlotTop + view::kPlotHeight + view::kPlotBottom;
  const double top = view::kPlotBorder + (curves.title.empty() ? 0 : view::kPlotTitleHeight);
  const double legend_x = view::kPlotBorder + panel_width * static_cast<double>(columns) + view::kPlotBorder;
  const double legend_height = view::kPlotTop + view::kLegendLine * static_cast<double>(legend.size());

  const double width = legend_x + legend_width(legend) + view::kPlotBorder;

  std::string content;
  view::append_plot_title(content, curves.title, width);
  for (std::size_t metric = 0; metric < count; ++metric) {
    const std::size_t row = metric / columns;
    append(content, "<g class=\"panel\" transform=\"translate({},{})\">\n",
           view::kPlotBorder + view::kPlotLeft + panel_width * static_cast<double>(metric % columns),
           top + view::kPlotTop + panel_height * static_cast<double>(row));
    append_panel(content, curves, metric, roles);
    content += "</g>\n";
  }
  append(content, "<g class=\"legend\" transform=\"translate({},{})\">\n", legend_x, top + view::kPlotTop);
  append_legend(content, legend);
  content += "</g>\n";
  return svg::document(width,
                       top + std::max(panel_height * static_cast<double>(rows), legend_height) + view::kPlotBorder,
                       view::kPlotFontSize, title, content);
}

}  // namespace cadre::tune
