#include "tune/plot/pareto_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>
#include <string_view>

#include "control/objective.h"
#include "view/plot_panel.h"
#include "view/svg.h"

namespace cadre::tune {

namespace svg = view::svg;

namespace {

constexpr std::string_view kFrontColour = view::kPlotColours[0];
constexpr double kFrontRadius = 3.5;
constexpr double kOtherRadius = 2.5;

bool is_shown(double value, const ParetoAxis& axis) {
  constexpr double most = 1e300;
  return std::abs(value) <= most && (!axis.logarithmic || value > 0);
}

view::PlotAxis axis_of(const std::vector<ParetoTrial>& trials, double ParetoTrial::* value, const ParetoAxis& axis) {
  const auto [lowest, highest] = std::ranges::minmax(trials | std::views::transform(value));
  return {lowest, highest, axis.logarithmic ? view::PlotAxis::Scale::logarithmic : view::PlotAxis::Scale::linear};
}

std::string name_of(const ParetoAxis& axis) { return fmt::format("{} ({})", axis.name, control::to_string(axis.mode)); }

// Returns the border between what the front's trials beat and what nothing beats: from the edge of the panel to the
// first one, in steps to the last one, and to another edge. `front` must be in the order of x, best first.
std::string border_of(const std::vector<view::Pixel>& front, const ParetoPlot& plot) {
  const double worst_x = plot.x.mode == Mode::min ? view::kPlotWidth : 0;
  const double worst_y = plot.y.mode == Mode::min ? 0 : view::kPlotHeight;
  std::string path = fmt::format("M{},{}", svg::pixels(front.front().x), svg::pixels(worst_y));
  for (const view::Pixel& pixel : front) svg::append(path, "H{}V{}", svg::pixels(pixel.x), svg::pixels(pixel.y));
  svg::append(path, "H{}", svg::pixels(worst_x));
  return path;
}

void append_front(std::string& out, const std::vector<view::Pixel>& front, const ParetoPlot& plot) {
  if (front.empty()) return;
  const std::string border = border_of(front, plot);
  const double worst_y = plot.y.mode == Mode::min ? 0 : view::kPlotHeight;
  svg::append(out, "<path class=\"beaten\" d=\"{}V{}Z\" fill=\"{}\" fill-opacity=\"0.06\"/>\n", border,
              svg::pixels(worst_y), kFrontColour);
  svg::append(out, "<path class=\"front\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", border,
              kFrontColour);
}

void append_trials(std::string& out, const std::vector<ParetoTrial>& trials, const view::PanelAxes& axes, bool front) {
  svg::append(out, "<g class=\"{}\" fill=\"{}\">\n", front ? "best" : "others",
              front ? kFrontColour : view::kPaleColour);
  for (const ParetoTrial& trial : trials) {
    if (trial.is_on_front != front) continue;
    const view::Pixel pixel = axes.pixel_of(trial.x, trial.y);
    svg::append(out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{}</title></circle>\n", svg::pixels(pixel.x),
                svg::pixels(pixel.y), front ? kFrontRadius : kOtherRadius, svg::escaped(trial.label));
  }
  out += "</g>\n";
}

void append_panel_of(std::string& out, const ParetoPlot& plot, const std::vector<ParetoTrial>& trials) {
  if (trials.empty()) {
    view::append_empty_axes(out, "no trials to show");
  } else {
    const view::PanelAxes axes{.x = axis_of(trials, &ParetoTrial::x, plot.x),
                               .y = axis_of(trials, &ParetoTrial::y, plot.y)};
    std::vector<view::Pixel> front;
    for (const ParetoTrial& trial : trials) {
      if (trial.is_on_front) front.push_back(axes.pixel_of(trial.x, trial.y));
    }
    std::ranges::sort(front, {}, &view::Pixel::x);
    if (plot.x.mode == Mode::max) std::ranges::reverse(front);
    view::append_axes(out, axes);
    append_front(out, front, plot);
    append_trials(out, trials, axes, false);
    append_trials(out, trials, axes, true);
  }
  view::append_axis_names(out, name_of(plot.x), name_of(plot.y));
}

struct ParetoLegend {
  std::string front;
  std::string others;

  explicit ParetoLegend(const std::vector<ParetoTrial>& trials) {
    const auto on_front = std::ranges::count(trials, true, &ParetoTrial::is_on_front);
    const auto rest = std::ssize(trials) - on_front;
    front = fmt::format("Pareto front: {} {}", on_front, on_front == 1 ? "trial" : "trials");
    if (rest > 0) others = fmt::format("{} other {}", rest, rest == 1 ? "trial" : "trials");
  }

  double width() const {
    return view::kLegendSample +
           std::max(svg::width_of(front, view::kPlotFontSize), svg::width_of(others, view::kPlotFontSize));
  }
  void append(std::string& out) const {
    double y = view::kLegendLine / 2;
    svg::append(out, "<g class=\"entry\"><path d=\"M0,{0}h22\" stroke=\"{1}\" stroke-width=\"1.8\"/>", svg::pixels(y),
                kFrontColour);
    append_entry(out, y, kFrontColour, kFrontRadius, front);
    if (others.empty()) return;
    y += view::kLegendLine;
    out += "<g class=\"entry\">";
    append_entry(out, y, view::kPaleColour, kOtherRadius, others);
  }

 private:
  static void append_entry(std::string& out, double y, std::string_view colour, double radius,
                           const std::string& label) {
    svg::append(out, "<circle cx=\"11\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>", svg::pixels(y), radius, colour);
    svg::append(out, "<text x=\"{}\" y=\"{}\" dy=\"0.35em\">{}</text></g>\n", view::kLegendSample, svg::pixels(y),
                svg::escaped(label));
  }
};

}  // namespace

std::string to_svg(const ParetoPlot& plot) {
  std::vector<ParetoTrial> trials;
  std::ranges::copy_if(plot.trials, std::back_inserter(trials), [&](const ParetoTrial& trial) {
    return is_shown(trial.x, plot.x) && is_shown(trial.y, plot.y);
  });
  const ParetoLegend legend(trials);
  const double top = view::kPlotBorder + (plot.title.empty() ? 0 : view::kPlotTitleHeight) + view::kPlotTop;
  const double left = view::kPlotBorder + view::kPlotLeft;
  const double legend_x = left + view::kPlotWidth + view::kPlotRight + view::kPlotBorder;
  const double width = legend_x + legend.width() + view::kPlotBorder;

  std::string content;
  view::append_plot_title(content, plot.title, width);
  svg::append(content, "<g class=\"panel\" transform=\"translate({},{})\">\n", left, top);
  append_panel_of(content, plot, trials);
  content += "</g>\n";
  svg::append(content, "<g class=\"legend\" transform=\"translate({},{})\">\n", legend_x, top);
  legend.append(content);
  content += "</g>\n";
  return svg::document(width, top + view::kPlotHeight + view::kPlotBottom + view::kPlotBorder, view::kPlotFontSize,
                       plot.title.empty() ? "Pareto front" : plot.title, content);
}

}  // namespace cadre::tune
