#include "ballast/runtime/comm/mesh.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ballast/runtime/comm/thread_ranks.h"

namespace ballast {
namespace {

// The members of a group, learnt by asking them.
std::vector<int> members_of(Communicator& group, int rank) {
  const at::Tensor all = group.all_gather_rows(at::full({1}, rank, at::kLong),
                                               std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), 1));
  std::vector<int> members;
  for (std::int64_t i = 0; i < all.numel(); ++i) members.push_back(static_cast<int>(all[i].item<std::int64_t>()));
  return members;
}

class MeshOf : public testing::TestWithParam<ParallelDims> {};

TEST_P(MeshOf, GroupsHoldTheRanksTheirAxesName) {
  const ParallelDims dims = GetParam();
  run_thread_mesh(dims, [&](Mesh& mesh) {
    EXPECT_EQ(mesh.at, dims.coordinate(mesh.rank));
    EXPECT_EQ(static_cast<int>(members_of(*mesh.world, mesh.rank).size()), dims.world_size());
    EXPECT_EQ(members_of(*mesh.cp, mesh.rank), dims.cp_group(mesh.rank));
    EXPECT_EQ(members_of(*mesh.dp_cp, mesh.rank), dims.dp_cp_group(mesh.rank));
    EXPECT_EQ(members_of(*mesh.pp, mesh.rank), dims.pp_group(mesh.rank));
    EXPECT_EQ(mesh.pp->rank(), mesh.at.pp);
    EXPECT_EQ(mesh.cp->rank(), mesh.at.cp);
    const bool at_an_end = mesh.at.pp == 0 || mesh.at.pp == dims.pp - 1;
    EXPECT_EQ(members_of(*mesh.tied, mesh.rank), at_an_end ? dims.tied_group(mesh.rank) : std::vector<int>{mesh.rank});
    EXPECT_EQ(mesh.dp_cp->name(), "dp_cp");
  });
}

INSTANTIATE_TEST_SUITE_P(Dims, MeshOf,
                         testing::Values(ParallelDims{1, 1, 1}, ParallelDims{2, 1, 1}, ParallelDims{1, 4, 1},
                                         ParallelDims{1, 1, 3}, ParallelDims{2, 2, 2}, ParallelDims{1, 4, 2}),
                         [](const auto& instance) {
                           return "dp" + std::to_string(instance.param.dp) + "pp" + std::to_string(instance.param.pp) +
                                  "cp" + std::to_string(instance.param.cp);
                         });

TEST(ThreadRanks, RethrowTheErrorThatCameFirst) {
  try {
    run_thread_mesh({.dp = 3, .pp = 1, .cp = 1}, [](Mesh& mesh) {
      mesh.world->barrier();
      if (mesh.rank == 1) throw std::logic_error("rank 1 broke");
      mesh.world->barrier();  // ends because rank 1's connections do
    });
    FAIL() << "an error of a rank was lost";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "rank 1 broke");
  }
}

}  // namespace
}  // namespace ballast
