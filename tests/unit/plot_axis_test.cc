#include "view/plot_axis.h"

#include <gtest/gtest.h>

namespace cadre::view {
namespace {

using Scale = PlotAxis::Scale;

std::string labels(const PlotAxis& axis, int count = 6, bool whole = false) {
  const PlotAxis::Ticks ticks = axis.ticks(count, whole);
  std::string text;
  for (const PlotAxis::Tick& tick : ticks.ticks) {
    EXPECT_GE(tick.position, 0) << tick.label;
    EXPECT_LE(tick.position, 1) << tick.label;
    text += tick.label + " ";
  }
  return text + ticks.factor;
}

TEST(PlotAxis, TicksAreRound) {
  EXPECT_EQ(labels({0, 1, Scale::linear}), "0.0 0.2 0.4 0.6 0.8 1.0 ");
  EXPECT_EQ(labels({1, 100, Scale::linear}), "0 20 40 60 80 100 ");
  EXPECT_EQ(labels({-0.031, 0.042, Scale::linear}), "−0.02 0.00 0.02 0.04 ");
  EXPECT_EQ(labels({0.98, 0.991, Scale::linear}), "0.980 0.982 0.984 0.986 0.988 0.990 ");
}

TEST(PlotAxis, WholeNumbersHaveNoTicksBetweenThem) {
  EXPECT_EQ(labels({1, 3, Scale::linear}, 6, true), "1 2 3 ");
  EXPECT_EQ(labels({1, 3, Scale::linear}), "1.0 1.5 2.0 2.5 3.0 ");
}

TEST(PlotAxis, LargeAndSmallNumbersShareAFactor) {
  EXPECT_EQ(labels({0, 3e6, Scale::linear}), "0 1 2 3 ×10⁶");
  EXPECT_EQ(labels({-2e-7, 0, Scale::linear}), "−2.0 −1.5 −1.0 −0.5 0.0 ×10⁻⁷");
  EXPECT_EQ(labels({123'450, 123'480, Scale::linear}), "123450 123460 123470 123480 ");
  EXPECT_EQ(labels({0, 20'000, Scale::linear}), "0 5000 10000 15000 20000 ");
}

TEST(PlotAxis, ASingleNumberIsInTheMiddle) {
  for (const double value : {0.0, 0.1, -5e10, 1e300}) {
    const PlotAxis axis(value, value, Scale::linear);
    EXPECT_DOUBLE_EQ(axis.position_of(value), 0.5);
    EXPECT_GE(axis.ticks(6, false).ticks.size(), 2u);
  }
  EXPECT_DOUBLE_EQ(PlotAxis(3, 3, Scale::logarithmic).position_of(3), 0.5);
}

TEST(PlotAxis, ALogarithmicAxisHasPowersOfTenOrWhatIsRoundBetweenThem) {
  EXPECT_EQ(labels({0.01, 100, Scale::logarithmic}), "0.01 0.1 1 10 100 ");
  EXPECT_EQ(labels({1e-12, 1, Scale::logarithmic}), "10⁻¹² 10⁻⁹ 10⁻⁶ 10⁻³ 10⁰ ");
  EXPECT_EQ(labels({0.15, 3, Scale::logarithmic}), "0.2 0.5 1 2 ");
  EXPECT_EQ(labels({0.0015, 0.06, Scale::logarithmic}), "0.002 0.005 0.01 0.02 0.05 ");
  EXPECT_EQ(labels({0.0008, 0.06, Scale::logarithmic}), "0.001 0.002 0.005 0.01 0.02 0.05 ");
  EXPECT_EQ(labels({3e-7, 3e-6, Scale::logarithmic}), "5×10⁻⁷ 10⁻⁶ 2×10⁻⁶ ");
  EXPECT_EQ(labels({150'000, 3e6, Scale::logarithmic}), "2×10⁵ 5×10⁵ 10⁶ 2×10⁶ ");
  EXPECT_EQ(labels({2.2, 2.7, Scale::logarithmic}), "2.2 2.3 2.4 2.5 2.6 2.7 ");
  const PlotAxis axis(0.01, 100, Scale::logarithmic);
  EXPECT_DOUBLE_EQ(axis.position_of(1), 0.5);
}

}  // namespace
}  // namespace cadre::view
