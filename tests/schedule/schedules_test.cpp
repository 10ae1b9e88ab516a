// 1F1B, interleaved 1F1B and their lowering over every small pipeline: P 1 to 8, V 1 to 4, N 1 to 20.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "ballast/schedule/all_forward_all_backward.h"
#include "ballast/schedule/bubble.h"
#include "ballast/schedule/interleaved.h"
#include "ballast/schedule/lowering.h"
#include "ballast/schedule/make_schedule.h"
#include "ballast/schedule/one_f_one_b.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

template <class Check>
void for_every_pipeline(const Check& check) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int virtual_stages = 1; virtual_stages <= 4; ++virtual_stages) {
      for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
        SCOPED_TRACE("P " + std::to_string(ranks) + " V " + std::to_string(virtual_stages) + " N " +
                     std::to_string(micro_batches));
        check(ranks, virtual_stages, micro_batches);
      }
    }
  }
}

// Time at which a schedule without sends ends where every F lasts 1 and every B 2.
int makespan(const Schedule& schedule) {
  std::map<std::tuple<int, ActionKind, int>, int> end;
  std::vector<std::size_t> next(schedule.ranks.size(), 0);
  std::vector<int> clock(schedule.ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      for (; next[rank] < schedule.ranks[rank].size(); ++next[rank], moved = true) {
        const auto [stage, kind, m] = schedule.ranks[rank][next[rank]];
        const bool forward = kind == ActionKind::F;
        const int neighbour = forward ? stage - 1 : stage + 1;
        int begin = clock[rank];
        if (neighbour >= 0 && neighbour < schedule.num_stages()) {
          const auto found = end.find({neighbour, kind, m});
          if (found == end.end()) break;
          begin = std::max(begin, found->second);
        }
        clock[rank] = end[{stage, kind, m}] = begin + (forward ? 1 : 2);
      }
    }
  }
  return *std::max_element(clock.begin(), clock.end());
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Schedules, RunEveryForwardAndBackwardOnceAndFinish) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    EXPECT_THAT(interleaved(ranks, virtual_stages, micro_batches).violations(), IsEmpty());
    EXPECT_THAT(one_f_one_b(ranks, micro_batches).violations(), IsEmpty());
  });
}

TEST(Schedules, FinishAndPairTheirMessagesWhenLowered) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    EXPECT_THAT(make_schedule({"interleaved", virtual_stages}, ranks, micro_batches).violations(), IsEmpty());
    EXPECT_THAT(make_schedule({"1f1b", 1}, ranks, micro_batches).violations(), IsEmpty());
  });
}

TEST(Schedules, RoundTripThroughText) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    const Schedule schedule = make_schedule({"interleaved", virtual_stages}, ranks, micro_batches);
    EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
  });
}

TEST(Schedules, OneFOneBKeepsAtMostTheRestOfThePipelineInFlight) {
  for_every_pipeline([](int ranks, int, int micro_batches) {
    const Schedule schedule = one_f_one_b(ranks, micro_batches);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(schedule.max_in_flight(rank), std::min(micro_batches, ranks - rank));
    }
  });
}

TEST(Schedules, InterleavedKeepsItsWarmUpAndOneMoreInFlight) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    const Schedule schedule = interleaved(ranks, virtual_stages, micro_batches);
    for (int rank = 0; rank < ranks; ++rank) {
      const int warmup = interleaved_warmup(ranks, virtual_stages, micro_batches, rank);
      EXPECT_EQ(schedule.max_in_flight(rank), std::min(micro_batches * virtual_stages, warmup + 1));
    }
  });
}

TEST(Schedules, BackwardsOfAStageFollowTheOrderOfItsForwards) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    const Schedule schedule = interleaved(ranks, virtual_stages, micro_batches);
    for (const auto& actions : schedule.ranks) {
      std::map<std::pair<int, ActionKind>, int> next;
      for (const Action& action : actions) EXPECT_EQ(action.micro_batch, (next[{action.stage, action.kind}]++));
    }
  });
}

TEST(Schedules, IdleExactlyAsTheBubbleFormulaSays) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    const double work = 3.0 * micro_batches * virtual_stages;
    EXPECT_NEAR(1 - work / makespan(interleaved(ranks, virtual_stages, micro_batches)),
                ideal_bubble_share(ranks, virtual_stages, micro_batches), 1e-12);
    EXPECT_NEAR(1 - 3.0 * micro_batches / makespan(one_f_one_b(ranks, micro_batches)),
                (ranks - 1.0) / (micro_batches + ranks - 1), 1e-12);
  });
}

// Every size of a round from depth-first to breadth-first.
template <class Check>
void for_every_round_size(const Check& check) {
  for_every_pipeline([&](int ranks, int virtual_stages, int micro_batches) {
    for (int round = ranks; round <= std::max(ranks, micro_batches); ++round) {
      SCOPED_TRACE("round of " + std::to_string(round));
      check(ranks, virtual_stages, micro_batches, round);
    }
  });
}

TEST(FlexibleSchedule, FinishesAndIdlesNoMoreThanDepthFirstAtAnySizeOfItsRounds) {
  for_every_round_size([](int ranks, int virtual_stages, int micro_batches, int round) {
    const Schedule schedule = interleaved(ranks, virtual_stages, micro_batches, round);
    EXPECT_THAT(lower(schedule).violations(), IsEmpty());
    EXPECT_EQ(makespan(schedule), makespan(interleaved(ranks, virtual_stages, micro_batches)));
  });
}

TEST(FlexibleSchedule, NeverTakesLongerThanPaddingToWholeRounds) {
  for_every_round_size([](int ranks, int virtual_stages, int micro_batches, int round) {
    const int padded = (micro_batches + round - 1) / round * round;
    EXPECT_LE(makespan(interleaved(ranks, virtual_stages, micro_batches, round)),
              makespan(interleaved(ranks, virtual_stages, padded, round)));
  });
}

TEST(FlexibleSchedule, HoldsTheWarmUpOfItsFirstRoundAndOneMore) {
  for_every_round_size([](int ranks, int virtual_stages, int micro_batches, int round) {
    const Schedule schedule = interleaved(ranks, virtual_stages, micro_batches, round);
    for (int rank = 0; rank < ranks; ++rank) {
      const int warmup = interleaved_warmup(ranks, virtual_stages, micro_batches, rank, round);
      EXPECT_EQ(schedule.max_in_flight(rank), std::min(micro_batches * virtual_stages, warmup + 1));
    }
  });
}

TEST(AllForwardAllBackward, FinishesHoldsEverythingAndIdlesAsInterleavedDoes) {
  for_every_pipeline([](int ranks, int virtual_stages, int micro_batches) {
    const Schedule schedule = make_schedule({"all-forward-all-backward", virtual_stages}, ranks, micro_batches);
    EXPECT_THAT(schedule.violations(), IsEmpty());
    EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(schedule.max_in_flight(rank), micro_batches * virtual_stages);
    EXPECT_EQ(makespan(all_forward_all_backward(ranks, virtual_stages, micro_batches)),
              makespan(interleaved(ranks, virtual_stages, micro_batches)));
  });
}

TEST(Schedules, DepthFirstOnesFinishWhereSendsBlock) {
  for_every_pipeline([](int ranks, int, int micro_batches) {
    EXPECT_THAT(make_schedule({"1f1b", 1}, ranks, micro_batches).violations_where_sends_block(), IsEmpty());
  });
}

TEST(Schedules, AnOrderThatNeedsBufferedSendsIsFoundOut) {
  const Schedule wide = make_schedule({.name = "interleaved", .virtual_stages = 2, .round_size = 12}, 2, 12);
  EXPECT_THAT(wide.violations(), IsEmpty());
  EXPECT_THAT(wide.violations_where_sends_block(), Not(IsEmpty()))
      << "rank 1 sends a first micro-batch on long before rank 0 turns to its second stage";
}

TEST(Schedules, ARoundHoldsAsManyMicroBatchesAsRanksAndTheRestIsSpreadOverTheFirst) {
  EXPECT_EQ(interleaved_rounds(4, 8), (std::vector<int>{4, 4}));
  EXPECT_EQ(interleaved_rounds(4, 11), (std::vector<int>{6, 5}));
  EXPECT_EQ(interleaved_rounds(4, 3), (std::vector<int>{3}));
  EXPECT_EQ(interleaved_rounds(4, 7), (std::vector<int>{7}));
  EXPECT_EQ(interleaved_rounds(5, 10), (std::vector<int>{5, 5}));
}

TEST(Schedules, AreThoseOfTheGoldenFiles) {
  EXPECT_EQ(to_string(make_schedule({"1f1b", 1}, 4, 6)), golden("1f1b_p4_n6.txt"));
  EXPECT_EQ(to_string(make_schedule({"interleaved", 2}, 2, 4)), golden("interleaved_p2_v2_n4.txt"));
  EXPECT_EQ(to_string(make_schedule({"interleaved", 2}, 4, 5)), golden("interleaved_p4_v2_n5.txt"));
  EXPECT_EQ(to_string(make_schedule({"interleaved", 3}, 4, 2)), golden("interleaved_p4_v3_n2.txt"));
  EXPECT_EQ(to_string(make_schedule({"interleaved", 2, 5}, 4, 10)), golden("interleaved_p4_v2_n10_nc5.txt"));
  EXPECT_EQ(to_string(make_schedule({"interleaved", 2, 5}, 4, 12)), golden("interleaved_p4_v2_n12_nc5.txt"));
  EXPECT_EQ(to_string(make_schedule({"all-forward-all-backward", 2}, 2, 3)), golden("all_forward_p2_v2_n3.txt"));
}

TEST(Schedules, OfOneRankSendNothing) {
  const Schedule schedule = make_schedule({"interleaved", 3}, 1, 4);
  for (const Action& action : schedule.ranks[0]) {
    EXPECT_TRUE(action.kind == ActionKind::F || action.kind == ActionKind::B) << to_string(action);
  }
}

TEST(Schedules, RefuseNumbersBelowOneAndUnknownNames) {
  const auto refusal = [](const ScheduleSpec& spec, int ranks, int micro_batches) -> std::string {
    try {
      make_schedule(spec, ranks, micro_batches);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"1f1b", 1}, 2, 0), HasSubstr("micro-batches = 0"));
  EXPECT_THAT(refusal({"1f1b", 1}, 0, 1), HasSubstr("pipeline ranks = 0"));
  EXPECT_THAT(refusal({"interleaved", 0}, 2, 1), HasSubstr("virtual_stages = 0"));
  EXPECT_THAT(refusal({"1f1b", 2}, 2, 1), HasSubstr("needs name = \"interleaved\""));
  EXPECT_THAT(refusal({"interleaved", 2, 3}, 4, 8), HasSubstr("round_size = 3"));
  EXPECT_THAT(refusal({"interleavd", 2}, 2, 1), HasSubstr("did you mean \"interleaved\"?"));
}

}  // namespace
}  // namespace ballast
