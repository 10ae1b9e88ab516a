#include "ballast/base/error.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> packers{"plain", "next-fit", "fixed-greedy", "wlb"};
  EXPECT_EQ(nearest_name("plian", packers), "plain");
  EXPECT_EQ(nearest_name("wbl", packers), "wlb");
  EXPECT_EQ(nearest_name("fixed-gredy", packers), "fixed-greedy");
}

TEST(NearestName, GuessesNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("optimal", {"plain", "wlb"}), "");
  EXPECT_EQ(nearest_name("", {"plain"}), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(RequireValid, NamesThePlaceAndTheFirstRuleBroken) {
  require_valid({}, "plan");
  try {
    require_valid({"first", "second"}, "plan");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "plan: first");
  }
}

}  // namespace
}  // namespace ballast
