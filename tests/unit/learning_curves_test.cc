#include "tune/plot/learning_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cadre/error.h"
#include "support/message_of.h"
#include "support/xml.h"

namespace cadre::tune {
namespace {

using test_support::XmlElement;
using test_support::XmlReader;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TrialCurves trial(const std::string& id, std::vector<CurvePoint> points) {
  return {id, "trial " + id, {{.donor = {}, .x = 0, .series = {std::move(points)}}}};
}

LearningCurves curves(std::vector<TrialCurves> trials) { return {.metrics = {{"score"}}, .trials = std::move(trials)}; }

XmlElement picture(const LearningCurves& of) { return XmlReader::read(to_svg(of)); }

std::ptrdiff_t lines_in(const XmlElement& path) { return std::ranges::count(path.attributes.at("d"), 'M'); }

std::string title_of(const XmlElement& element) { return element.all("title").front().text; }

TEST(LearningCurves, AMetricIsAPanelAndATrialALineInEachAndInTheLegend) {
  LearningCurves two{.title = "experiment", .x_name = "time_total_s", .metrics = {{"score"}, {"loss"}}};
  for (const char* id : {"00000", "00001", "00002"}) {
    two.trials.push_back(trial(id, {{1, 2}, {2, 3}}));
    two.trials.back().segments[0].series.push_back({{1, 1}, {2, 0.5}});
  }
  const XmlElement svg = picture(two);
  EXPECT_EQ(svg.name, "svg");
  EXPECT_EQ(title_of(svg), "experiment");
  ASSERT_THAT(svg.all("g", "panel"), SizeIs(2));
  std::vector<std::string> texts;
  for (const XmlElement& text : svg.all("text")) texts.push_back(text.text);
  for (const char* text : {"experiment", "time_total_s", "score", "loss", "trial 00002"})
    EXPECT_THAT(texts, ::testing::Contains(text));
  for (const XmlElement& panel : svg.all("g", "panel")) {
    std::set<std::string> titles;
    std::set<std::string> colours;
    for (const XmlElement& line : panel.all("g", "trial")) {
      titles.insert(title_of(line));
      colours.insert(line.attributes.at("stroke"));
    }
    EXPECT_THAT(titles, ElementsAre("trial 00000", "trial 00001", "trial 00002"));
    EXPECT_THAT(colours, SizeIs(3));
    EXPECT_THAT(panel.all("path", "exploit"), IsEmpty());
  }
  EXPECT_THAT(svg.all("g", "legend").at(0).all("g", "entry"), SizeIs(3));
}

TEST(LearningCurves, AnExploitBreaksTheLineAndIsMarkedWhereItGoesOn) {
  LearningCurves one = curves({trial("00003", {{10, 1}, {20, 2}, {30, 3}})});
  one.trials[0].segments.push_back({"00001", 20, {{{20, 5}, {30, 6}}}});
  const XmlElement svg = picture(one);
  const XmlElement line = svg.all("g", "trial").at(0).all("path").at(0);
  EXPECT_EQ(lines_in(line), 2);
  const std::vector<XmlElement> marks = svg.all("path", "exploit");
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(title_of(marks[0]), "00003 continued from 00001 at 20");
  // The mark's tip is above the start of the second line.
  const std::string& lines = line.attributes.at("d");
  const std::string second = lines.substr(lines.rfind('M') + 1);
  const std::string& mark = marks[0].attributes.at("d");
  EXPECT_EQ(std::stod(mark.substr(1)), std::stod(second));
  EXPECT_LT(std::stod(mark.substr(mark.find(',') + 1)), std::stod(second.substr(second.find(',') + 1)));
  EXPECT_THAT(to_svg(one), HasSubstr("continued from another trial</text>"));
}

TEST(LearningCurves, WhatIsNoNumberIsAGapAndAPointAloneIsADot) {
  const XmlElement svg =
      picture(curves({trial("0", {{1, kNan}, {2, 1}, {3, 2}, {4, kInfinity}, {5, 3}, {6, kNan}, {7, 4}, {8, 5}}),
                      trial("1", {{1, 1}}), trial("2", {{1, kNan}}), trial("3", {})}));
  std::map<std::string, XmlElement> lines;
  for (const XmlElement& line : svg.all("g", "trial")) lines[title_of(line)] = line;
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines_in(lines.at("trial 0").all("path").at(0)), 2);
  EXPECT_THAT(lines.at("trial 0").all("circle"), SizeIs(1));
  EXPECT_THAT(lines.at("trial 1").all("path"), IsEmpty());
  EXPECT_THAT(lines.at("trial 1").all("circle"), SizeIs(1));
}

TEST(LearningCurves, ALogarithmicAxisLeavesOutWhatIsNotPositive) {
  LearningCurves one = curves({trial("0", {{1, 100}, {2, 1}, {3, 0}, {4, 0.01}, {5, 0.01}, {6, -1}})});
  one.metrics[0].logarithmic = true;
  const XmlElement line = picture(one).all("g", "trial").at(0).all("path").at(0);
  EXPECT_EQ(lines_in(line), 2);
  EXPECT_THAT(to_svg(one), HasSubstr(">0.01</text>"));
}

TEST(LearningCurves, TheHorizontalAxisMayBeLogarithmic) {
  LearningCurves one = curves({trial("0", {{0, 5}, {1, 1}, {10, 2}, {100, 3}})});
  one.logarithmic_x = true;
  const std::string d = picture(one).all("g", "trial").at(0).all("path").at(0).attributes.at("d");
  EXPECT_EQ(std::ranges::count(d, 'L'), 2);  // 0 is left out
  EXPECT_THAT(d, HasSubstr("L200,"));        // 10 is in the middle
}

TEST(LearningCurves, OfManyTrialsTheBestHaveColoursAndTheOthersAreGrey) {
  for (const Mode mode : {Mode::max, Mode::min}) {
    LearningCurves many{.metrics = {{"score"}}, .mode = mode};
    for (int i = 0; i < 20; ++i) {
      const double score = i;
      many.trials.push_back(trial(std::to_string(i), {{1, -score}, {2, score}, {3, kNan}}));
    }
    const XmlElement svg = picture(many);
    std::vector<std::string> legend;
    for (const XmlElement& entry : svg.all("g", "entry")) legend.push_back(title_of(entry));
    if (mode == Mode::max) {
      EXPECT_THAT(legend, ElementsAre("trial 19", "trial 18", "trial 17", "trial 16", "trial 15", "trial 14",
                                      "14 other trials"));
    } else {
      EXPECT_THAT(legend,
                  ElementsAre("trial 0", "trial 1", "trial 2", "trial 3", "trial 4", "trial 5", "14 other trials"));
    }
    std::map<std::string, int> colours;
    for (const XmlElement& line : svg.all("g", "trial")) ++colours[line.attributes.at("stroke")];
    EXPECT_THAT(colours, SizeIs(7));
    EXPECT_EQ(colours.at("#c4c4c4"), 14);
    EXPECT_EQ(title_of(svg.all("g", "trial").back()), legend.front());  // the best is on top
  }
}

TEST(LearningCurves, EachPointIsDrawnOnce) {
  const XmlElement line = picture(curves({trial("0", {{1, 1}, {2, 3}, {3, 2}})})).all("g", "trial").at(0);
  EXPECT_EQ(std::ranges::count(line.all("path").at(0).attributes.at("d"), ','), 3);
}

TEST(LearningCurves, OfThousandsOfPointsThoseStayThatCanBeSeen) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.37)});
  points[55'555].y = 10;
  points[33'333].y = -10;
  const XmlElement svg = picture(curves({trial("0", std::move(points))}));
  const std::string d = svg.all("g", "trial").at(0).all("path").at(0).attributes.at("d");
  const std::ptrdiff_t kept = std::ranges::count(d, ',');
  EXPECT_LE(kept, 4 * 400);
  EXPECT_GE(kept, 2 * 300);
  std::vector<double> heights;
  for (std::size_t comma = d.find(','); comma != d.npos; comma = d.find(',', comma + 1))
    heights.push_back(std::stod(d.substr(comma + 1)));
  // The two outliers are the ends of the axis, apart from its margins.
  EXPECT_NEAR(std::ranges::min(heights), 260 * 0.04 / 1.08, 0.1);
  EXPECT_NEAR(std::ranges::max(heights), 260 * 1.04 / 1.08, 0.1);
}

TEST(LearningCurves, TextMayHoldAnything) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace): text with a NUL
  const std::string wild = "<a href=\"x\">&amp;'\0\x1f\n\t\xff\xef\xbf\xbf"s + "caf\xc3\xa9]]>";
  LearningCurves one = curves({trial(wild, {{1, 2}, {2, 3}})});
  one.title = one.x_name = one.metrics[0].name = one.trials[0].label = wild;
  one.trials[0].segments.push_back({wild, 1, {{{1, 1}}}});
  const XmlElement svg = picture(one);
  EXPECT_THAT(title_of(svg), HasSubstr("<a href=\"x\">&amp;'"));
  EXPECT_THAT(title_of(svg), HasSubstr("caf\xc3\xa9]]>"));
  EXPECT_THAT(svg.all("a"), IsEmpty());
  LearningCurves long_names = curves({trial(std::string(1000, 'x'), {{1, 2}})});
  long_names.metrics[0].name = std::string(1000, 'y');
  const std::string text = to_svg(long_names);
  EXPECT_THAT(text, HasSubstr("x…</text>"));
  EXPECT_THAT(text, HasSubstr("y…</text>"));
}

TEST(LearningCurves, AValueOfAMegabyteIsCutInTheLegend) {
  LearningCurves one = curves({trial("00000", {{1, 2}, {2, 3}})});
  one.trials[0].label = "00000 prompt=" + std::string(std::size_t{1} << 20, 'a');  // by the square: an hour
  EXPECT_THAT(to_svg(one), HasSubstr("aaa…</text>"));
}

TEST(LearningCurves, WhereThereIsNothingThePictureSaysSo) {
  EXPECT_THAT(to_svg(tune::LearningCurves{}), HasSubstr("no metrics to show"));
  EXPECT_THAT(to_svg(curves({})), HasSubstr("no trials to show"));
  for (const LearningCurves& empty :
       {curves({trial("0", {})}), curves({trial("0", {{1, kNan}, {kNan, 1}, {1, 1e301}})}),
        curves({{.id = "0", .label = "0", .segments = {}}})}) {
    EXPECT_THAT(picture(empty).all("g", "trial"), IsEmpty());
    EXPECT_THAT(to_svg(empty), HasSubstr("no values of score to show"));
  }
}

TEST(LearningCurves, EveryNumberIsInsideThePictureHoweverLargeOrAlike) {
  for (const std::vector<CurvePoint>& points : std::vector<std::vector<CurvePoint>>{{{0, -1e300}, {1, 1e300}},
                                                                                    {{-1e300, 0}, {1e300, 1}},
                                                                                    {{1, 5e-324}, {2, 0}},
                                                                                    {{7, 7}, {7, 7}},
                                                                                    {{1, 1}, {2, 1 + 1e-15}},
                                                                                    {{0, 0}, {0, 0}},
                                                                                    {{1e18, 1}, {1e18 + 256, 2}}}) {
    for (const bool logarithmic : {false, true}) {
      LearningCurves one = curves({trial("0", points)});
      one.metrics[0].logarithmic = logarithmic;
      const std::string text = to_svg(one);
      for (const char* no_number : {"nan", "inf"}) EXPECT_THAT(text, ::testing::Not(HasSubstr(no_number)));
      for (const XmlElement& path : XmlReader::read(text).all("path")) {
        const std::string& d = path.attributes.at("d");
        for (std::size_t at = 0; (at = d.find_first_of("ML,", at)) != d.npos; ++at) {
          EXPECT_GE(std::stod(d.substr(at + 1)), 0) << d;
          EXPECT_LE(std::stod(d.substr(at + 1)), 400) << d;
        }
      }
    }
  }
}

TEST(LearningCurves, ASegmentWithoutASeriesForEachMetricIsAnError) {
  LearningCurves wrong = curves({trial("00007", {{1, 2}})});
  wrong.metrics.push_back({"loss"});
  EXPECT_THAT(test_support::message_of<InvalidArgument>([&] { to_svg(wrong); }),
              HasSubstr("a segment of trial 00007 has 1 series for 2 metrics"));
}

}  // namespace
}  // namespace cadre::tune
