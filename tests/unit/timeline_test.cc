#include "train/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cadre::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = TimelineSpan::Kind;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Timeline, HasALaneForEachAndSpansInTheirColours) {
  const std::string svg =
      to_svg({.title = "run",
              .duration = 10,
              .reports = {2, 4},
              .lanes = {{"training", {{Kind::training, 0, 9, "attempt 1"}}},
                        {"uploads", {}},
                        {"validations",
                         {{Kind::validation, 2, 5, "checkpoint_000000"}, {Kind::failed, 6, 9, "checkpoint_000001"}}}}});
  EXPECT_THAT(svg,
              AllOf(HasSubstr(">training<"), HasSubstr(">uploads<"), HasSubstr(">none<"), HasSubstr("#0072b2"),
                    HasSubstr("#009e73"), HasSubstr("#d55e00"), HasSubstr("checkpoint_000001: 6.000 s to 9.000 s")));
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2u) << "one for each report";
}

TEST(Timeline, SpansAtTheSameTimeAreBelowEachOther) {
  const auto height = [](double second_begins) {
    const std::string svg = to_svg(
        {.duration = 4,
         .lanes = {{"validations", {{Kind::validation, 0, 2, "a"}, {Kind::validation, second_begins, 4, "b"}}}}});
    return std::stod(svg.substr(svg.find("height=\"") + 8));
  };
  EXPECT_EQ(height(1) - height(2), 20) << "another row";
}

TEST(Timeline, ANarrowSpanSaysWhatItsNameDoesNotShareWithOthers) {
  const std::string svg = to_svg({.duration = 100,
                                  .lanes = {{"validations",
                                             {{Kind::validation, 0, 8, "checkpoint_000123"},
                                              {Kind::validation, 50, 50, "checkpoint_000124"},
                                              {Kind::validation, 60, 66, "checkpoint_000000"},
                                              {Kind::training, 70, 76, "attempt 1: 2 workers"}}}}});
  EXPECT_THAT(svg, AllOf(HasSubstr(">123<"), Not(HasSubstr(">124<")), HasSubstr("checkpoint_000124: 50.000 s"),
                         HasSubstr(">0</text></g>"), HasSubstr(">att…<")));
}

TEST(Timeline, TextIsEscapedAndAnEmptyRunIsAPicture) {
  EXPECT_THAT(to_svg({.title = "a<b>&c"}), AllOf(HasSubstr("a&lt;b&gt;&amp;c"), Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace cadre::train
