// Real processes: ranks that work, that are stopped cleanly, that die in every way. The bounds are the product's
// requirements (1 s, time-out + 5 s) with room for a busy machine; the times themselves are printed.
#include "ballast/runtime/launch/launcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/launch/subprocess.h"

namespace ballast {
namespace {

using testing_support::Subprocess;

Subprocess start(int num_ranks, double timeout, const std::string& mode, int faulty_rank = -1) {
  return Subprocess(
      {BALLAST_RANKS_PROGRAM, std::to_string(num_ranks), std::to_string(timeout), mode, std::to_string(faulty_rank)});
}

std::vector<std::string> last_lines(const std::string& text, std::size_t count) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  lines.resize(count);
  return lines;
}

// Whether `errors` blame `rank`: its peers wait for its message or, where they share its core, for the core it holds.
bool waited_for(int rank, const std::string& errors) {
  const std::string name = "rank " + std::to_string(rank);
  return errors.find("no answer from " + name + " within 2.") != std::string::npos ||
         errors.find("core lease: " + name + " has held the core for over 2 s") != std::string::npos;
}

void expect_no_rank_left(const Subprocess& program) {
  EXPECT_TRUE(program.wait_until_group_is_gone(5)) << "ranks outlived their launcher";
}

TEST(Launcher, RunsRanksToTheirEnd) {
  for (const int num_ranks : {1, 2, 5}) {
    Subprocess program = start(num_ranks, 60, "run");
    EXPECT_EQ(program.wait(60), 0) << program.errors();
    EXPECT_NE(program.output().find("step 5\ndone: "), std::string::npos) << program.output();
    EXPECT_EQ(program.errors(), "");
    expect_no_rank_left(program);
  }
}

TEST(Launcher, RunsUnderTorchrun) {
  Subprocess program({BALLAST_TORCHRUN, "--standalone", "--no-python", "--nproc-per-node", "2", BALLAST_RANKS_PROGRAM,
                      "0", "60", "run"});
  EXPECT_EQ(program.wait(120), 0) << program.errors();
  EXPECT_NE(program.output().find("step 5\ndone: "), std::string::npos) << program.output() << program.errors();
}

TEST(Launcher, TakesTheRunDownWithinASecondOfAKilledRank) {
  Subprocess program = start(3, 60, "endless");
  ASSERT_TRUE(program.wait_for_output("step 3", 60)) << program.errors();
  const pid_t victim = program.child_with_environment("RANK=1");
  ASSERT_GT(victim, 0);
  const auto killed_at = std::chrono::steady_clock::now();
  kill(victim, SIGKILL);
  EXPECT_EQ(program.wait(30), 1);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - killed_at).count();
  std::printf("down %.3f s after the kill\n", seconds);
  EXPECT_LT(seconds, 3);
  const std::vector<std::string> lines = last_lines(program.errors(), 3);
  EXPECT_NE(lines[0].find("rank 1 (pid " + std::to_string(victim) + ") failed first: it was killed by signal 9"),
            std::string::npos)
      << program.errors();
  EXPECT_NE(lines[1].find("its last action: step "), std::string::npos) << program.errors();
  EXPECT_EQ(lines[2], "ballast: its error: none reported");
  expect_no_rank_left(program);
}

TEST(Launcher, NamesARankThatIsStoppedAfterTheTimeOut) {
  constexpr double kTimeout = 2;
  Subprocess program = start(3, kTimeout, "stop", 2);
  // Not "step 2": rank 2 may take the core it shares with rank 0, and stop with it, before rank 0 has printed that.
  ASSERT_TRUE(program.wait_for_output("step 1", 60)) << program.errors();
  const auto stopped_at = std::chrono::steady_clock::now();
  EXPECT_EQ(program.wait(60), 1);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - stopped_at).count();
  std::printf("down %.3f s after the stop, time-out %.1f s\n", seconds, kTimeout);
  EXPECT_LT(seconds, kTimeout + 5);
  const std::vector<std::string> lines = last_lines(program.errors(), 3);
  EXPECT_NE(lines[0].find("rank 2 (pid "), std::string::npos) << program.errors();
  EXPECT_NE(lines[0].find("is stopped"), std::string::npos) << program.errors();
  EXPECT_EQ(lines[1], "ballast: its last action: step 3: F");
  EXPECT_TRUE(waited_for(2, program.errors())) << program.errors();
  expect_no_rank_left(program);
}

TEST(Launcher, GivesUpALoneRankThatIsStopped) {
  Subprocess program = start(1, 1, "stop", 0);
  EXPECT_EQ(program.wait(60), 1);
  EXPECT_NE(program.errors().find("rank 0 (pid "), std::string::npos) << program.errors();
  expect_no_rank_left(program);
}

TEST(Launcher, NamesARankThatHangs) {
  Subprocess program = start(3, 2, "hang", 1);
  EXPECT_EQ(program.wait(60), 1);
  EXPECT_NE(program.errors().find("is still running, last action: step 3: F"), std::string::npos) << program.errors();
  EXPECT_TRUE(waited_for(1, last_lines(program.errors(), 1)[0])) << program.errors();
  expect_no_rank_left(program);
}

TEST(Launcher, PrintsTheErrorOfTheRankThatFailedAndNotOfThoseItLeftBehind) {
  Subprocess program = start(4, 60, "throw", 3);
  EXPECT_EQ(program.wait(60), 1);
  const std::vector<std::string> lines = last_lines(program.errors(), 3);
  EXPECT_NE(lines[0].find("rank 3 (pid "), std::string::npos) << program.errors();
  EXPECT_EQ(lines[1], "ballast: its last action: step 3: F");
  EXPECT_EQ(lines[2], "ballast: its error: the loss is not finite");
  expect_no_rank_left(program);
}

TEST(Launcher, NamesRanksThatLeaveWithoutAWord) {
  for (const auto& [mode, code] : {std::pair{"exit", 7}, {"leave", 0}}) {
    Subprocess program = start(2, 60, mode, 1);
    EXPECT_EQ(program.wait(60), 1);
    EXPECT_NE(last_lines(program.errors(), 3)[0].find("rank 1 (pid "), std::string::npos) << program.errors();
    EXPECT_NE(last_lines(program.errors(), 3)[0].find("exited with code " + std::to_string(code) + " before the end"),
              std::string::npos)
        << program.errors();
    expect_no_rank_left(program);
  }
}

TEST(Launcher, NamesTheSignalOfACrash) {
  Subprocess program = start(2, 60, "segfault", 0);
  EXPECT_EQ(program.wait(60), 1);
  EXPECT_NE(last_lines(program.errors(), 3)[0].find("killed by signal 11"), std::string::npos) << program.errors();
}

TEST(Launcher, AClosedSocketIsAnErrorOfTheRankAndNoSignal) {
  Subprocess program = start(2, 60, "closed-socket", 1);
  EXPECT_EQ(program.wait(60), 1);
  EXPECT_NE(program.errors().find("the socket was closed"), std::string::npos) << program.errors();
}

TEST(Launcher, ReportsRanksThatDisagreeOnTheNextCollective) {
  Subprocess program = start(2, 1, "mismatch", 1);
  EXPECT_EQ(program.wait(60), 1);
  EXPECT_NE(program.errors().find("no answer from rank"), std::string::npos) << program.errors();
  expect_no_rank_left(program);
}

TEST(Launcher, PrintsAUsersFaultOnceAndExitsWithTwo) {
  for (const std::string mode : {"user", "user-everywhere"}) {
    Subprocess program = start(3, 60, mode, 1);
    EXPECT_EQ(program.wait(60), 2);
    EXPECT_EQ(program.errors(), "ballast: run.toml: corpus = \"nowhere\": no such folder\n");
    expect_no_rank_left(program);
  }
}

TEST(Launcher, StopsCleanlyAfterTheStepWhenAsked) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Subprocess program = start(3, 60, "endless");
    ASSERT_TRUE(program.wait_for_output("step 2", 60)) << program.errors();
    kill(program.pid(), signal);
    EXPECT_EQ(program.wait(30), 0) << program.errors();
    EXPECT_NE(program.output().find("done: "), std::string::npos) << program.output();
    expect_no_rank_left(program);
  }
}

TEST(Launcher, EndsAtOnceWhenAskedTwice) {
  Subprocess program = start(2, 600, "hang", 1);
  ASSERT_TRUE(program.wait_for_output("step 2", 60)) << program.errors();
  kill(program.pid(), SIGINT);
  ASSERT_TRUE(program.wait_for_errors("stopping after this step", 30));
  kill(program.pid(), SIGINT);
  EXPECT_EQ(program.wait(30), 1);
  expect_no_rank_left(program);
}

TEST(Launcher, LeavesNoOrphanWhenItIsKilledItself) {
  Subprocess program = start(3, 600, "endless");
  ASSERT_TRUE(program.wait_for_output("step 2", 60)) << program.errors();
  kill(program.pid(), SIGKILL);
  program.wait(30);
  expect_no_rank_left(program);
}

}  // namespace
}  // namespace ballast
