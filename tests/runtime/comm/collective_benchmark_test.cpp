#include "ballast/runtime/comm/collective_benchmark.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ballast {
namespace {

TEST(CollectiveBenchmark, MeasuresEveryOperationAtEverySize) {
  const std::vector<CollectivePoint> points = measure_local_collectives(3, {4, 4096, 1 << 20}, 0.001);
  std::set<std::pair<std::string, Bytes>> seen;
  for (const CollectivePoint& point : points) {
    EXPECT_EQ(point.ranks, 3);
    EXPECT_GT(point.seconds, 0) << point.operation;
    seen.emplace(point.operation, point.bytes);
  }
  EXPECT_EQ(seen.size(), 12U);
  for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "send"}) {
    EXPECT_TRUE(seen.contains({operation, 1 << 20})) << operation;
  }
  HardwareProfile profile;
  profile.collectives = points;
  for (const std::string& violation : profile.violations()) {
    EXPECT_EQ(violation.find("collective"), std::string::npos) << violation;
  }
}

TEST(CollectiveBenchmark, HasNothingToMeasureAlone) {
  EXPECT_TRUE(measure_local_collectives(1, {4096}, 0.001).empty());
}

}  // namespace
}  // namespace ballast
