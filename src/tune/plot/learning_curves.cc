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
#include "view/svg.h"

namespace cadre::tune {

namespace svg = view::svg;
using svg::append;
using svg::pixels;
using view::PlotAxis;

namespace {

// ---- Appearance. Lengths are pixels.

constexpr double kPlotWidth = 400;
constexpr double kPlotHeight = 260;
constexpr double kLeft = 66;  // margin of a panel for tick labels and the metric's name
constexpr double kRight = 14;
constexpr double kTop = 24;
constexpr double kBottom = 48;
constexpr double kBorder = 10;
constexpr double kTitleHeight = 26;
constexpr double kFontSize = 12;
constexpr double kTitleSize = 15;
constexpr double kLegendLine = 19;
constexpr double kLegendSample = 30;
constexpr double kLongestLabel = 340;
constexpr double kWidthOfBold = 1.15;  // relative to regular text
constexpr int kTicks = 6;

struct LineStyle {
  std::string_view colour;
  std::string_view dashes;  // empty: none
  double width = 1.8;
  double marker = 5;  // from its centre to a corner
};

// Okabe and Ito's colours, which people with any colour vision can distinguish, without black and yellow (too pale on
// white); then the same colours dashed.
constexpr std::array<std::string_view, 6> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
constexpr std::string_view kDashes = "5,2.5";
constexpr LineStyle kOther{.colour = "#c4c4c4", .dashes = "", .width = 1, .marker = 3.5};
static_assert(LearningCurves::kMostColoured <= 2 * kColours.size() && LearningCurves::kHighlighted <= kColours.size());

LineStyle style_of(std::size_t number) {
  return {.colour = kColours[number % kColours.size()], .dashes = number < kColours.size() ? "" : kDashes};
}

// ---- Lines

struct Pixel {
  double x = 0;
  double y = 0;
};
using Line = std::vector<Pixel>;

bool can_be_shown(const CurvePoint& point, bool logarithmic) {
  constexpr double most = 1e300;
  return std::abs(point.x) <= most && std::abs(point.y) <= most && (!logarithmic || point.y > 0);
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
    for (auto it = chosen.begin(); it != std::unique(it, chosen.end()) && it != chosen.end(); ++it)
      kept.push_back(**it);
    begin = end;
  }
  return kept;
}

struct Panel {
  const LearningCurves& curves;
  std::size_t metric = 0;
  std::optional<PlotAxis> x = {};  // empty: nothing to show
  std::optional<PlotAxis> y = {};
  bool whole_x = true;

  bool logarithmic() const { return curves.metrics[metric].logarithmic; }
  Pixel pixel_of(const CurvePoint& point) const {
    return {x->position_of(point.x) * kPlotWidth, (1 - y->position_of(point.y)) * kPlotHeight};
  }
  // Returns the parts of a segment between gaps.
  std::vector<Line> lines_of(const CurveSegment& segment) const {
    std::vector<Line> lines(1);
    for (const CurvePoint& point : segment.series[metric]) {
      if (can_be_shown(point, logarithmic())) {
        lines.back().push_back(pixel_of(point));
      } else if (!lines.back().empty()) {
        lines.emplace_back();
      }
    }
    if (lines.back().empty()) lines.pop_back();
    return lines;
  }
};

Panel make_panel(const LearningCurves& curves, std::size_t metric) {
  Panel panel{.curves = curves, .metric = metric};
  std::vector<CurvePoint> points;
  for (const TrialCurves& trial : curves.trials) {
    for (const CurveSegment& segment : trial.segments)
      std::ranges::copy_if(segment.series[metric], std::back_inserter(points),
                           [&](const CurvePoint& point) { return can_be_shown(point, panel.logarithmic()); });
  }
  if (points.empty()) return panel;
  const auto [left, right] = std::ranges::minmax(points | std::views::transform(&CurvePoint::x));
  const auto [lowest, highest] = std::ranges::minmax(points | std::views::transform(&CurvePoint::y));
  panel.x.emplace(left, right, PlotAxis::Scale::linear);
  panel.y.emplace(lowest, highest, panel.logarithmic() ? PlotAxis::Scale::logarithmic : PlotAxis::Scale::linear);
  panel.whole_x = std::ranges::all_of(points, [](const CurvePoint& point) { return point.x == std::floor(point.x); });
  return panel;
}

// ---- Drawing

// Returns the path of a triangle around a point.
std::string triangle(Pixel at, double size) {
  return fmt::format("M{},{}l{},{}h{}Z", pixels(at.x), pixels(at.y - size), pixels(size * 0.9), pixels(size * 1.6),
                     pixels(-size * 1.8));
}

void append_axes(std::string& out, const Panel& panel) {
  const PlotAxis::Ticks x = panel.x->ticks(kTicks, panel.whole_x);
  const PlotAxis::Ticks y = panel.y->ticks(kTicks, false);
  std::string grid;
  std::string axes = fmt::format("M0,0V{}H{}", kPlotHeight, kPlotWidth);
  std::string labels;
  for (const PlotAxis::Tick& tick : y.ticks) {
    const std::string at = pixels((1 - tick.position) * kPlotHeight);
    append(grid, "M0,{}h{}", at, kPlotWidth);
    append(axes, "M0,{}h-4", at);
    append(labels, "<text x=\"-8\" y=\"{}\" dy=\"0.35em\" text-anchor=\"end\">{}</text>\n", at, tick.label);
  }
  for (const PlotAxis::Tick& tick : x.ticks) {
    const std::string at = pixels(tick.position * kPlotWidth);
    append(axes, "M{},{}v4", at, kPlotHeight);
    append(labels, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at, kPlotHeight + 18, tick.label);
  }
  if (!y.factor.empty()) append(labels, "<text x=\"0\" y=\"-8\">{}</text>\n", y.factor);
  if (!x.factor.empty())
    append(labels, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kPlotWidth, kPlotHeight + 36, x.factor);
  append(out, "<path class=\"grid\" d=\"{}\" stroke=\"#e8e8e8\" fill=\"none\"/>\n", grid);
  append(out, "<path class=\"axes\" d=\"{}\" stroke=\"#444\" fill=\"none\"/>\n", axes);
  append(out, "<g class=\"ticks\" font-size=\"11\" fill=\"#444\">\n{}</g>\n", labels);
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
  if (panel.x) {
    append_axes(out, panel);
  } else {
    append(out, "<path class=\"axes\" d=\"M0,0V{}H{}\" stroke=\"#444\" fill=\"none\"/>\n", kPlotHeight, kPlotWidth);
    append(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#777\">no values of {} to show</text>\n",
           kPlotWidth / 2, kPlotHeight / 2, svg::escaped(svg::shortened(name, kPlotWidth / 2, kFontSize)));
  }
  append(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kPlotWidth / 2, kPlotHeight + 37,
         svg::escaped(svg::shortened(curves.x_name, kPlotWidth / 2, kFontSize)));
  append(out, "<text transform=\"translate({},{}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", 16 - kLeft,
         kPlotHeight / 2, svg::escaped(svg::shortened(name, kPlotHeight, kFontSize)));
  if (!panel.x) return;
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
    width = std::max(width,
                     kLegendSample + svg::width_of(svg::shortened(entry.label, kLongestLabel, kFontSize), kFontSize));
  return width;
}

void append_legend(std::string& out, const std::vector<LegendEntry>& legend) {
  double y = kLegendLine / 2;
  for (const auto& [label, style, is_marker] : legend) {
    append(out, "<g class=\"entry\"><title>{}</title>", svg::escaped(label));
    if (is_marker) {
      append(out, "<path d=\"{}\" fill=\"{}\"/>", triangle({11, y}, style.marker), style.colour);
    } else {
      append(out, "<path d=\"M0,{}h22\" stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>", pixels(y),
             style.colour, style.width, style.dashes.empty() ? "none" : style.dashes);
    }
    append(out, "<text x=\"{}\" y=\"{}\" dy=\"0.35em\">{}</text></g>\n", kLegendSample, pixels(y),
           svg::escaped(svg::shortened(label, kLongestLabel, kFontSize)));
    y += kLegendLine;
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
    return svg::document(kPlotWidth, kPlotHeight, kFontSize, title, content);
  }
  const Roles roles = assign_roles(curves);
  const std::vector<LegendEntry> legend = legend_of(curves, roles);
  const std::size_t count = curves.metrics.size();
  const std::size_t columns = count == 1 ? 1 : count <= 4 ? 2 : 3;
  const std::size_t rows = (count + columns - 1) / columns;
  const double panel_width = kLeft + kPlotWidth + kRight;
  const double panel_height = kTop + kPlotHeight + kBottom;
  const double top = kBorder + (curves.title.empty() ? 0 : kTitleHeight);
  const double legend_x = kBorder + panel_width * static_cast<double>(columns) + kBorder;
  const double legend_height = kTop + kLegendLine * static_cast<double>(legend.size());

  const double width = legend_x + legend_width(legend) + kBorder;

  std::string content;
  if (!curves.title.empty())
    append(content, "<text x=\"{}\" y=\"{}\" font-size=\"{}\" font-weight=\"bold\">{}</text>\n", kBorder + kLeft,
           kBorder + kTitleHeight - 8, kTitleSize,
           svg::escaped(svg::shortened(curves.title, (width - kBorder - kLeft) / kWidthOfBold, kTitleSize)));
  for (std::size_t metric = 0; metric < count; ++metric) {
    const std::size_t row = metric / columns;
    append(content, "<g class=\"panel\" transform=\"translate({},{})\">\n",
           kBorder + kLeft + panel_width * static_cast<double>(metric % columns),
           top + kTop + panel_height * static_cast<double>(row));
    append_panel(content, curves, metric, roles);
    content += "</g>\n";
  }
  append(content, "<g class=\"legend\" transform=\"translate({},{})\">\n", legend_x, top + kTop);
  append_legend(content, legend);
  content += "</g>\n";
  return svg::document(width, top + std::max(panel_height * static_cast<double>(rows), legend_height) + kBorder,
                       kFontSize, title, content);
}

}  // namespace cadre::tune
