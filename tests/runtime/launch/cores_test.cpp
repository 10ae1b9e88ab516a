#include "ballast/runtime/launch/cores.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <thread>

#include "ballast/base/error.h"

namespace ballast {
namespace {

TEST(Cores, AreSharedOutEvenlyWhereThereAreEnough) {
  LaunchSpec spec;
  EXPECT_EQ(share_cores({0, 1}, 1, 2, spec).cores, std::vector<int>{1});
  EXPECT_EQ(share_cores({2, 3, 6, 7, 9}, 0, 2, spec).cores, (std::vector<int>{2, 3}));
  EXPECT_EQ(share_cores({2, 3, 6, 7, 9}, 1, 2, spec).cores, (std::vector<int>{6, 7, 9}));
  EXPECT_EQ(share_cores({2, 3, 6, 7, 9}, 1, 2, spec).threads, 3);
  EXPECT_FALSE(share_cores({0, 1}, 1, 2, spec).leased);
}

TEST(Cores, TakeTurnsUnderALeaseWhereThereAreMoreRanks) {
  LaunchSpec spec;
  const CoreShare share = share_cores({0, 1}, 2, 4, spec);
  EXPECT_EQ(share.cores, std::vector<int>{0});
  EXPECT_TRUE(share.leased);
  EXPECT_EQ(share.threads, 1);
  spec.lease = "off";
  EXPECT_FALSE(share_cores({0, 1}, 2, 4, spec).leased);
  spec.lease = "on";
  EXPECT_TRUE(share_cores({0, 1}, 0, 1, spec).leased);
}

TEST(Cores, ObeyTheThreadsAndPinningTheUserStates) {
  LaunchSpec spec;
  spec.threads = 3;
  spec.pin = false;
  const CoreShare share = share_cores({0, 1, 2, 3}, 0, 2, spec);
  EXPECT_EQ(share.threads, 3);
  EXPECT_FALSE(share.pinned);
}

TEST(Cores, SayHowTheyAreShared) {
  LaunchSpec spec;
  EXPECT_EQ(to_string(share_cores({0, 1}, 2, 4, spec)),
            "4 ranks on 2 cores: rank 2 shares core 0 with 1 other under a lease, 1 thread, pinned");
  EXPECT_EQ(to_string(share_cores({0, 1}, 1, 2, spec)), "2 ranks on 2 cores: rank 1 has core 1, 1 thread, pinned");
  EXPECT_EQ(to_string(share_cores({4, 5}, 0, 1, spec)), "1 rank on 2 cores: rank 0 has cores 4, 5, 2 threads, pinned");
}

TEST(Cores, AreAllUsedAndNoneIsOverloaded) {
  rc::check("each core serves as many ranks as any other, up to one", [] {
    const int num_cores = *rc::gen::inRange(1, 17);
    const int num_ranks = *rc::gen::inRange(1, 33);
    std::vector<int> cores;
    for (int i = 0; i < num_cores; ++i) cores.push_back(2 * i);
    std::vector<int> load(static_cast<std::size_t>(2 * num_cores), 0);
    for (int rank = 0; rank < num_ranks; ++rank) {
      const CoreShare share = share_cores(cores, rank, num_ranks, {});
      RC_ASSERT(!share.cores.empty());
      for (const int core : share.cores) ++load[static_cast<std::size_t>(core)];
    }
    int least = num_ranks;
    int most = 0;
    for (const int core : cores) {
      least = std::min(least, load[static_cast<std::size_t>(core)]);
      most = std::max(most, load[static_cast<std::size_t>(core)]);
    }
    RC_ASSERT(least >= 1);
    RC_ASSERT(most - least <= 1);
  });
}

TEST(Cores, AreCutToTheCgroupsQuota) {
  EXPECT_EQ(cores_of_quota("max 100000"), 0);
  EXPECT_EQ(cores_of_quota(""), 0);
  EXPECT_EQ(cores_of_quota("250000 100000"), 2);
  EXPECT_EQ(cores_of_quota("50000 100000"), 1);
}

TEST(Cores, CanBePinnedTo) {
  const std::vector<int> before = allowed_cores();
  ASSERT_FALSE(before.empty());
  std::vector<int> inside;
  std::thread([&] {
    pin_this_thread({before.back()});
    inside = allowed_cores();
  }).join();
  EXPECT_EQ(inside, std::vector<int>{before.back()});
  EXPECT_EQ(allowed_cores(), before) << "other threads keep theirs";
  EXPECT_THROW(pin_this_thread({100000}), RunError);
}

}  // namespace
}  // namespace ballast
