#include "ballast/runtime/launch/core_lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "ballast/runtime/comm/communicator.h"

namespace ballast {
namespace {

TEST(CoreLease, LetsOneRankComputeAtATime) {
  CoreLeases leases = CoreLeases::create(2);
  std::atomic<int> computing = 0;
  std::atomic<int> turns = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      for (int i = 0; i < 200; ++i) {
        leases.take(1, rank, 60);
        EXPECT_EQ(++computing, 1);
        std::this_thread::yield();
        --computing;
        ++turns;
        leases.give(1);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(turns, 800);
}

TEST(CoreLease, KeepsCoresApart) {
  CoreLeases leases = CoreLeases::create(2);
  leases.take(0, 0, 60);
  std::thread([&] {
    leases.take(1, 1, 60);
    leases.give(1);
  }).join();
  leases.give(0);
}

TEST(CoreLease, NamesTheHolderWhenATurnDoesNotCome) {
  CoreLeases leases = CoreLeases::create(1);
  leases.take(0, 5, 60);
  std::thread([&] {
    try {
      leases.take(0, 1, 0.1);
      ADD_FAILURE() << "two ranks hold one core";
    } catch (const CommunicationError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 5 has held the core"), std::string::npos) << error.what();
      EXPECT_EQ(error.lost_ranks, std::vector<int>{5});
    }
  }).join();
  leases.give(0);
  std::thread([&] {
    leases.take(0, 1, 60);  // a turn given up has left nothing locked
    leases.give(0);
  }).join();
}

TEST(CoreLease, IsFreedByTheDeathOfItsHolder) {
  CoreLeases leases = CoreLeases::create(1);
  const pid_t maker = getpid();
  const pid_t rank = fork();
  if (rank == 0) {
    CoreLeases own = CoreLeases::attach(maker, leases.fd(), 1);
    own.take(0, 3, 60);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(rank, &status, 0), rank);
  ASSERT_TRUE(WIFSIGNALED(status));
  leases.take(0, 0, 60);
  leases.give(0);
}

TEST(CoreLease, DoesNotLetAGreedyRankOvertakeOneThatWaits) {
  CoreLeases leases = CoreLeases::create(1);
  std::atomic<bool> served = false;
  leases.take(0, 0, 60);
  std::thread waiting([&] {
    leases.take(0, 1, 60);
    served = true;
    leases.give(0);
  });
  // Gives and takes at once, again and again: the other comes in between although it never finds the core free for
  // long.
  bool still_waiting = true;
  for (int i = 0; i < 1'000'000 && still_waiting; ++i) {
    leases.give(0);
    leases.take(0, 0, 60);
    still_waiting = !served;
  }
  leases.give(0);
  waiting.join();
  EXPECT_FALSE(still_waiting);
}

}  // namespace
}  // namespace ballast
