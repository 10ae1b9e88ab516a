// Scales that bring predicted parts to what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ballast/calibrate/fit.h"

namespace ballast {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(FitScales, FindsTheScaleOfEachPartThatSamplesTellApart) {
  std::vector<FitSample> samples;
  for (int i = 1; i <= 10; ++i) {
    const double linear = i;
    const double attention = 0.1 * i * i;
    samples.push_back({.measured = 1.2 * linear + 0.8 * attention, .parts = {linear, attention, 0}});
  }
  EXPECT_THAT(fit_scales(samples), ElementsAre(DoubleNear(1.2, 0.01), DoubleNear(0.8, 0.02), DoubleNear(1, 1e-9)));
  EXPECT_LT(mean_relative_error(samples, fit_scales(samples)), 0.005);
  EXPECT_GT(mean_relative_error(samples, {1, 1, 1}), 0.05);
}

TEST(FitScales, MovesPartsTogetherThatSamplesDoNotTellApart) {
  const std::vector<FitSample> samples = {{3, {1, 1}}, {6, {2, 2}}, {9, {3, 3}}};
  EXPECT_THAT(fit_scales(samples), ElementsAre(DoubleNear(1.5, 0.01), DoubleNear(1.5, 0.01)));
}

TEST(FitScales, StaysWithinAFifthAndFiveAndLeavesNothingAlone) {
  EXPECT_THAT(fit_scales({{100, {1}}, {200, {2}}}), ElementsAre(5));
  EXPECT_THAT(fit_scales({{0, {1}}}), ElementsAre(1)) << "nothing measured";
  EXPECT_TRUE(fit_scales({}).empty());
}

}  // namespace
}  // namespace ballast
