#include "ballast/io/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ballast {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

std::string repaired(std::string text) {
  repair_utf8(text);
  return text;
}

TEST(RepairUtf8, LeavesValidTextAlone) {
  for (const std::string text : {"", "plain ASCII, more than eight bytes", "caf\xc3\xa9", "\xe2\x82\xac",
                                 "\xf0\x9f\x9a\xa2", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    std::string copy = text;
    EXPECT_EQ(repair_utf8(copy), 0) << text;
    EXPECT_EQ(copy, text);
  }
}

TEST(RepairUtf8, ReplacesEachBrokenSequence) {
  const std::string r = kReplacement;
  EXPECT_EQ(repaired("caf\xe9 noir, s'il vous pla\xeet"), "caf" + r + " noir, s'il vous pla" + r + "t");
  EXPECT_EQ(repaired("\x80"), r);                          // a continuation without a beginning
  EXPECT_EQ(repaired("\xe2\x82"), r);                      // cut short by the end
  EXPECT_EQ(repaired("\xe2\x82x"), r + "x");               // cut short by another character
  EXPECT_EQ(repaired("\xc0\xaf"), r + r);                  // overlong
  EXPECT_EQ(repaired("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(repaired("\xf4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
}

TEST(RepairUtf8, GivesValidTextFromAnyBytes) {
  rc::check([](std::string bytes) {
    std::string once = bytes;
    const std::int64_t replaced = repair_utf8(once);
    RC_ASSERT((replaced == 0) == (once == bytes));
    std::string twice = once;
    RC_ASSERT(repair_utf8(twice) == 0);
    RC_ASSERT(twice == once);
  });
}

}  // namespace
}  // namespace ballast
