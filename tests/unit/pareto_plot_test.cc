#include "tune/plot/pareto_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cadre/error.h"
#include "cadre/tune/plot.h"
#include "support/message_of.h"
#include "support/xml.h"

namespace cadre::tune {
namespace {

using test_support::message_of;
using test_support::XmlElement;
using test_support::XmlReader;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

XmlElement picture(const ParetoPlot& plot) { return XmlReader::read(to_svg(plot)); }

std::vector<std::string> texts_of(const XmlElement& svg) {
  std::vector<std::string> texts;
  for (const XmlElement& text : svg.all("text")) texts.push_back(text.text);
  return texts;
}

std::vector<std::string> titles_in(const XmlElement& svg, const std::string& group) {
  std::vector<std::string> titles;
  for (const XmlElement& circle : svg.all("g", group).at(0).all("circle"))
    titles.push_back(circle.all("title").at(0).text);
  return titles;
}

// Returns the numbers of a path that has H and V only after its beginning: those of H are x, those of V are y.
struct Steps {
  std::string directions;
  std::vector<double> x;
  std::vector<double> y;

  explicit Steps(const std::string& path) {
    for (std::size_t at = 0; (at = path.find_first_of("HV", at)) != path.npos; ++at) {
      directions += path[at];
      (path[at] == 'H' ? x : y).push_back(std::stod(path.substr(at + 1)));
    }
  }
};

const ParetoPlot three{.title = "mine",
                       .x = {.name = "loss"},
                       .y = {.name = "latency"},
                       .trials = {{"a", 1, 30, true}, {"b", 3, 10, true}, {"c", 2, 20, true}, {"d", 3, 30, false}}};

TEST(ParetoPlot, EachTrialIsAPointWithItsLabelAndTheFrontIsAboveTheOthers) {
  const XmlElement svg = picture(three);
  EXPECT_THAT(titles_in(svg, "best"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(titles_in(svg, "others"), ElementsAre("d"));
  for (const char* text : {"mine", "loss (min)", "latency (min)", "Pareto front: 3 trials", "1 other trial"})
    EXPECT_THAT(texts_of(svg), ::testing::Contains(text));
  const std::string text = to_svg(three);
  EXPECT_LT(text.find("class=\"others\""), text.find("class=\"best\""));
}

TEST(ParetoPlot, TheLineGoesInStepsFromTheBestToTheWorstOfTheFirstMetric) {
  const auto steps = [](Mode x, Mode y, std::vector<ParetoTrial> trials) {
    ParetoPlot plot = three;
    plot.x.mode = x;
    plot.y.mode = y;
    plot.trials = std::move(trials);
    return Steps(picture(plot).all("path", "front").at(0).attributes.at("d"));
  };
  const Steps small = steps(Mode::min, Mode::min, three.trials);
  EXPECT_EQ(small.directions, "HVHVHVH");  // from a trial first to what it beats, then to the next
  EXPECT_TRUE(std::ranges::is_sorted(small.x));
  EXPECT_EQ(small.x.back(), 400);                // beaten: all to the right
  EXPECT_TRUE(std::ranges::is_sorted(small.y));  // pixels count downwards
  // Large values of both are good: the line begins at the right, and ends at the left edge.
  const Steps large =
      steps(Mode::max, Mode::max, {{"a", 1, 30, true}, {"b", 3, 10, true}, {"c", 2, 20, true}, {"d", 1, 10, false}});
  EXPECT_TRUE(std::ranges::is_sorted(large.x, std::ranges::greater()));
  EXPECT_EQ(large.x.back(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(large.y, std::ranges::greater()));
}

TEST(ParetoPlot, ValuesThatAnAxisDoesNotHaveAreLeftOut) {
  ParetoPlot plot = three;
  plot.x.logarithmic = true;
  plot.trials.push_back({"zero", 0, 1, true});
  plot.trials.push_back({"huge", std::numeric_limits<double>::max(), 1, false});
  const XmlElement svg = picture(plot);
  EXPECT_THAT(titles_in(svg, "best"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(titles_in(svg, "others"), ElementsAre("d"));
  plot.trials.clear();
  EXPECT_THAT(texts_of(picture(plot)), ::testing::Contains("no trials to show"));
}

TEST(ParetoPlot, ASingleTrialIsAFront) {
  ParetoPlot plot = three;
  plot.trials = {{"a", 1, 1, true}};
  const XmlElement svg = picture(plot);
  EXPECT_THAT(titles_in(svg, "others"), IsEmpty());
  EXPECT_THAT(texts_of(svg), ::testing::Contains("Pareto front: 1 trial"));
}

ResultGrid grid_of_two() {
  std::vector<Result> results(3);
  for (std::size_t i = 0; i < results.size(); ++i) results[i].trial_id = "0000" + std::to_string(i);
  results[0].metrics = {{"loss", 0.5}, {"latency", 2}};
  results[0].sampled = {{"model/width", 3}};
  results[1].metrics = {{"loss", 0.6}, {"latency", 3}};
  results[2].metrics = {{"loss", 0.4}};
  return {"dir/mine", results, minimize("loss")};
}

TEST(ParetoSvg, ShowsTheTrialsOfAnExperiment) {
  const XmlElement svg = XmlReader::read(pareto_svg(grid_of_two(), {"loss", minimize("latency")}));
  EXPECT_THAT(titles_in(svg, "best"), ElementsAre("00000 width=3: loss=0.5, latency=2"));
  EXPECT_THAT(titles_in(svg, "others"), ElementsAre("00001: loss=0.6, latency=3"));
  EXPECT_THAT(texts_of(svg), ::testing::Contains("mine"));
}

TEST(ParetoSvg, NeedsTwoMetrics) {
  EXPECT_THAT(message_of<InvalidArgument>([&] { pareto_svg(grid_of_two(), {"loss"}, {.logarithmic = {"nothing"}}); }),
              ::testing::AllOf(HasSubstr("it needs 2 metrics, not 1"), HasSubstr("\"nothing\" is not one")));
}

}  // namespace
}  // namespace cadre::tune
