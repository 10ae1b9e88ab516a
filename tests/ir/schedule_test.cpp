#include "ballast/ir/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(const std::string& text) {
  try {
    parse_schedule(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Violations violations_of(const std::string& text) { return parse_schedule(text).violations(); }

const char* const kTwoStages =
    "schedule 1f1b ranks 2 virtual_stages 1 micro_batches 1\n"
    "0F0 0SEND_F0 0RECV_B0 0B0\n"
    "1RECV_F0 1F0 1B0 1SEND_B0\n";

TEST(Action, ReadsAsPyTorchWritesIt) {
  EXPECT_EQ(parse_action("3SEND_F12"), (Action{.stage = 3, .kind = ActionKind::SEND_F, .micro_batch = 12}));
  EXPECT_EQ(to_string(Action{.stage = 2, .kind = ActionKind::B, .micro_batch = 0}), "2B0");
}

TEST(Action, RefusesWhatIsNone) {
  for (const char* text : {"", "F", "2F", "F0", "2G0", "2f0", "-1F0", "2F-1", "2 F0", "99999999999F0"}) {
    EXPECT_THROW(parse_action(text), UserError) << text;
  }
}

TEST(Schedule, RoundTripsThroughText) {
  const Schedule schedule = parse_schedule(kTwoStages);
  EXPECT_EQ(to_string(schedule), kTwoStages);
  EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
  EXPECT_THAT(schedule.violations(), IsEmpty());
}

TEST(Schedule, RefusesTextThatIsNoSchedule) {
  EXPECT_THAT(refusal(""), HasSubstr("not the header"));
  EXPECT_THAT(refusal("schedule 1f1b ranks 0 virtual_stages 1 micro_batches 1\n"), HasSubstr("ranks = \"0\""));
  EXPECT_THAT(refusal("schedule 1f1b ranks 1 virtual_stages 1 micro_batches x\n"), HasSubstr("micro_batches = \"x\""));
  EXPECT_THAT(refusal("schedule 1f1b ranks 2 virtual_stages 1 micro_batches 1\n0F0 0B0\n"), HasSubstr("given for 1"));
  EXPECT_THAT(refusal("schedule 1f1b ranks 1 virtual_stages 1 micro_batches 1\n0F0 0Q0\n"), HasSubstr("0Q0"));
}

TEST(Schedule, NamesAnActionThatIsMissingDoubledOrMisplaced) {
  EXPECT_THAT(violations_of("schedule s ranks 1 virtual_stages 1 micro_batches 1\n0F0 0F0\n"),
              ElementsAre("0F0 is there 2 times", "0B0 is missing"));
  EXPECT_THAT(
      violations_of("schedule s ranks 2 virtual_stages 1 micro_batches 1\n1F0 1B0\n0F0 0B0\n"),
      ElementsAre(HasSubstr("1F0: the stage lives on rank 1"), HasSubstr("1B0"), HasSubstr("0F0"), HasSubstr("0B0")));
  EXPECT_THAT(violations_of("schedule s ranks 1 virtual_stages 1 micro_batches 1\n0F0 0B0 1F0 0B7\n"),
              ElementsAre(HasSubstr("1F0: no such stage"), HasSubstr("0B7: no such micro-batch")));
}

TEST(Schedule, NamesAMessageWithoutItsOtherSide) {
  EXPECT_THAT(violations_of("schedule s ranks 2 virtual_stages 1 micro_batches 1\n"
                            "0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1B0 1SEND_B0\n"),
              ElementsAre("1RECV_F0 is missing"));
  EXPECT_THAT(violations_of("schedule s ranks 1 virtual_stages 2 micro_batches 1\n0F0 0SEND_F0 1F0 1B0 0B0\n"),
              ElementsAre("0SEND_F0 has no other side"));
}

TEST(Schedule, NamesWhoWaitsForWhatInADeadlock) {
  EXPECT_THAT(
      violations_of("schedule s ranks 2 virtual_stages 1 micro_batches 2\n"
                    "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n"),
      ElementsAre("never finishes: rank 0 waits at 0B0 for 1B0", "never finishes: rank 1 waits at 1F1 for 0F1"));
}

TEST(Schedule, AReceiveAfterItsUseNeverFinishes) {
  EXPECT_THAT(violations_of("schedule s ranks 2 virtual_stages 1 micro_batches 1\n"
                            "0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1RECV_F0 1B0 1SEND_B0\n"),
              ElementsAre(HasSubstr("rank 0 waits at 0RECV_B0"), HasSubstr("rank 1 waits at 1F0 for 1RECV_F0")));
}

TEST(Schedule, IsNotSizedByANumberItDoesNotKeep) {
  EXPECT_THAT(violations_of("schedule s ranks 1 virtual_stages 2000000000 micro_batches 2000000000\n0F0 0B0\n"),
              ElementsAre(HasSubstr("2 actions, fewer than")));
}

}  // namespace
}  // namespace ballast
