#include "ballast/runtime/launch/post_mortem.h"

#include <gtest/gtest.h>

#include <csignal>

#include "ballast/base/error.h"

namespace ballast {
namespace {

using How = RankEnd::How;

RankEnd end_of(int rank, How how, int code, RankOutcome outcome, const std::string& error = "", Seconds at = 0,
               std::vector<int> lost = {}) {
  RankEnd end;
  end.rank = rank;
  end.pid = 1000 + rank;
  end.how = how;
  end.code = code;
  end.at = at;
  end.report = {outcome, "step 4: 1F3", error, std::move(lost), at};
  return end;
}

std::string first_of(const PostMortem& result) { return result.lines.at(result.lines.size() - 3); }

TEST(PostMortem, IsSilentWhereAllFinished) {
  const PostMortem result = examine({end_of(0, How::exited, 0, RankOutcome::finished)});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.lines.empty());
}

TEST(PostMortem, PutsCausesBeforeConsequencesWhateverCameFirst) {
  const RankEnd lost = end_of(0, How::exited, 1, RankOutcome::lost_peer, "no answer from rank 3", 1, {3});
  const RankEnd stopped = end_of(1, How::stopped, 0, RankOutcome::running, "", 2);
  const RankEnd silent = end_of(2, How::exited, 7, RankOutcome::running, "", 3);
  const RankEnd own = end_of(3, How::exited, 1, RankOutcome::own_error, "the loss is not finite", 4);
  const RankEnd killed = end_of(4, How::killed, SIGSEGV, RankOutcome::running, "", 5);
  EXPECT_NE(first_of(examine({lost, stopped, silent, own, killed})).find("rank 4"), std::string::npos);
  EXPECT_NE(first_of(examine({lost, stopped, silent, own})).find("rank 3"), std::string::npos);
  EXPECT_NE(first_of(examine({lost, stopped, silent})).find("rank 2"), std::string::npos);
  EXPECT_NE(first_of(examine({lost, stopped})).find("rank 1"), std::string::npos);
  EXPECT_NE(first_of(examine({lost})).find("rank 0"), std::string::npos);
}

TEST(PostMortem, EndsWithActionAndErrorOfTheFirst) {
  const PostMortem result = examine({end_of(0, How::exited, 1, RankOutcome::own_error, "disk is full", 9),
                                     end_of(1, How::exited, 1, RankOutcome::own_error, "disk is full too", 8)});
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.lines.size(), 4U);
  EXPECT_EQ(result.lines[0], "rank 0 (pid 1000) failed with exit code 1: disk is full");
  EXPECT_EQ(result.lines[1], "rank 1 (pid 1001) failed first: it failed with exit code 1");
  EXPECT_EQ(result.lines[2], "its last action: step 4: 1F3");
  EXPECT_EQ(result.lines[3], "its error: disk is full too");
}

TEST(PostMortem, ShowsWhatTheRankThatDidNotAnswerWasDoing) {
  const PostMortem result = examine({end_of(0, How::exited, 1, RankOutcome::lost_peer, "no answer from rank 1", 1, {1}),
                                     end_of(1, How::running, 0, RankOutcome::running)});
  EXPECT_EQ(result.lines.at(0), "rank 1 (pid 1001) is still running, last action: step 4: 1F3");
}

TEST(PostMortem, GivesAUsersFaultAsOneLine) {
  const PostMortem result = examine({end_of(0, How::exited, 2, RankOutcome::user_error, "run.toml: no such key", 1),
                                     end_of(1, How::exited, 2, RankOutcome::user_error, "run.toml: no such key", 2)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.lines, std::vector<std::string>{"run.toml: no such key"});
}

TEST(PostMortem, DoesNotFloodThePersonWithConsequences) {
  std::vector<RankEnd> ends = {end_of(0, How::killed, SIGKILL, RankOutcome::running)};
  for (int rank = 1; rank < 100; ++rank)
    ends.push_back(end_of(rank, How::exited, 1, RankOutcome::lost_peer, "lost", 1));
  EXPECT_LE(examine(ends).lines.size(), 12U);
}

TEST(StatusBoard, KeepsWhatEachRankSaidLast) {
  StatusBoard board = StatusBoard::create(2);
  EXPECT_EQ(board.read(1), RankReport{});
  board.at_action(1, "step 1: F");
  board.at_action(1, "step 2: " + std::string(1000, 'x'));
  board.end(1, RankOutcome::lost_peer, "no answer", {0, 4});
  const RankReport report = board.read(1);
  EXPECT_EQ(report.action.substr(0, 9), "step 2: x") << "cut to the room there is";
  EXPECT_EQ(report.outcome, RankOutcome::lost_peer);
  EXPECT_EQ(report.error, "no answer");
  EXPECT_EQ(report.lost_ranks, (std::vector<int>{0, 4}));
  EXPECT_EQ(board.read(0), RankReport{});
}

TEST(StatusBoard, RefusesADescriptorThatIsNone) { EXPECT_THROW(StatusBoard::attach(0, 3), UserError); }

}  // namespace
}  // namespace ballast
