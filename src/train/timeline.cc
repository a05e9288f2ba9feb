#include "train/timeline.h"

#include <algorithm>
#include <string_view>

#include "view/plot_axis.h"
#include "view/svg.h"

namespace cadre::train {
namespace {

using Kind = TimelineSpan::Kind;
using view::svg::append;
using view::svg::escaped;
using view::svg::pixels;

// ---- Layout. Lengths are pixels.

constexpr double kWidth = 900;
constexpr double kLeft = 110;  // names of lanes
constexpr double kRight = 20;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kTitleHeight = 40;
constexpr double kRowHeight = 20;
constexpr double kBarHeight = 15;
constexpr double kLaneGap = 12;
constexpr double kAxisHeight = 46;
constexpr double kFontSize = 12;
constexpr double kLabelSize = 10;
constexpr int kTicks = 8;

// Colours of Okabe and Ito, distinguishable with any colour vision.
std::string_view colour_of(Kind kind) {
  switch (kind) {
    case Kind::training:
      return "#0072b2";
    case Kind::upload:
      return "#e69f00";
    case Kind::validation:
      return "#009e73";
    case Kind::failed:
      break;
  }
  return "#d55e00";
}

// A span with its row: the first that is free when the span begins.
struct Placed {
  const TimelineSpan* span = nullptr;
  std::size_t row = 0;
};
std::vector<Placed> place(const TimelineLane& lane) {
  std::vector<Placed> placed;
  for (const TimelineSpan& span : lane.spans) placed.push_back({&span});
  std::ranges::stable_sort(placed, {}, [](const Placed& one) { return one.span->begin; });
  std::vector<double> free_from;  // by row
  for (Placed& one : placed) {
    const auto row = std::ranges::find_if(free_from, [&](double end) { return end <= one.span->begin; });
    one.row = static_cast<std::size_t>(row - free_from.begin());
    if (row == free_from.end()) free_from.push_back(0);
    free_from[one.row] = one.span->end;
  }
  return placed;
}

// Shortens a label to a width; keeps the number after the last underscore, in which names of checkpoints differ.
std::string label_within(double width, const std::string& label) {
  const auto fits = [&](const std::string& text) { return view::svg::width_of(text, kLabelSize) <= width; };
  if (fits(label)) return label;
  if (const std::size_t underscore = label.rfind('_'); underscore != label.npos) {
    const std::size_t digits = label.find_first_not_of('0', underscore + 1);
    if (const std::string number = label.substr(std::min(digits, label.size() - 1)); fits(number)) return number;
  }
  const std::string text = view::svg::shortened(label, width, kLabelSize);
  return text.size() > 5 ? text : "";
}

class Picture {
 public:
  explicit Picture(const Timeline& timeline)
      : timeline_(timeline), axis_(0, std::max(timeline.duration, 1e-3), view::PlotAxis::Scale::linear) {}

  std::string draw() {
    double y = kTitleHeight;
    for (const TimelineLane& lane : timeline_.lanes) y = draw_lane(lane, y) + kLaneGap;
    draw_axis(y);
    std::string title;
    append(title, "<text x=\"{}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n", kLeft,
           escaped(timeline_.title));
    return view::svg::document(kWidth, y + kAxisHeight, kFontSize, timeline_.title, title + body_);
  }

 private:
  double x_of(double seconds) const { return kLeft + axis_.position_of(seconds) * kPlotWidth; }

  // Returns the y coordinate of its end.
  double draw_lane(const TimelineLane& lane, double y) {
    const std::vector<Placed> placed = place(lane);
    std::size_t rows = 1;
    for (const Placed& one : placed) rows = std::max(rows, one.row + 1);
    const double bottom = y + static_cast<double>(rows) * kRowHeight;
    append(body_, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\"/>\n", kLeft, pixels(y),
           kPlotWidth, pixels(bottom - y));
    append(body_, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 10, pixels(y + 14),
           escaped(lane.name));
    if (placed.empty())
      append(body_, "<text x=\"{}\" y=\"{}\" fill=\"#808080\" font-size=\"{}\">none</text>\n", kLeft + 6,
             pixels(y + 14), kLabelSize);
    for (const auto& [span, row] : placed) draw(*span, y + static_cast<double>(row) * kRowHeight);
    return bottom;
  }

  void draw(const TimelineSpan& span, double y) {
    const double x = x_of(span.begin);
    const double width = std::max(x_of(span.end) - x, 1.5);
    append(body_, "<g><title>{}: {:.3f} s to {:.3f} s</title>", escaped(span.label), span.begin, span.end);
    append(body_, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>", pixels(x),
           pixels(y + (kRowHeight - kBarHeight) / 2), pixels(width), kBarHeight, colour_of(span.kind));
    if (const std::string text = label_within(width - 8, span.label); !text.empty())
      append(body_, "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"white\">{}</text>", pixels(x + 4), pixels(y + 14),
             kLabelSize, escaped(text));
    body_ += "</g>\n";
  }

  void draw_axis(double y) {
    for (const double report : timeline_.reports)
      append(body_,
             "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#404040\" stroke-width=\"0.6\" "
             "stroke-dasharray=\"2,2\"/>\n",
             pixels(x_of(report)), kTitleHeight, pixels(y - kLaneGap));
    append(body_, "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"black\"/>\n", kLeft, pixels(y),
           kLeft + kPlotWidth, pixels(y));
    const auto [ticks, factor] = axis_.ticks(kTicks, /*whole=*/false);
    for (const view::PlotAxis::Tick& tick : ticks) {
      const double x = kLeft + tick.position * kPlotWidth;
      append(body_, "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"black\"/>\n", pixels(x), pixels(y),
             pixels(y + 4));
      append(body_, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", pixels(x), pixels(y + 17),
             tick.label);
    }
    append(body_, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">seconds{}{}; dashed: reports</text>\n",
           pixels(kLeft + kPlotWidth / 2), pixels(y + 36), factor.empty() ? "" : " ", factor);
  }

  const Timeline& timeline_;
  view::PlotAxis axis_;
  std::string body_ = {};
};

}  // namespace

std::string to_svg(const Timeline& timeline) { return Picture(timeline).draw(); }

}  // namespace cadre::train
