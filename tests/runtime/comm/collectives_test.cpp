// Collectives of every group size and element type against plain arithmetic.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "ballast/runtime/comm/gloo.h"
#include "ballast/runtime/comm/thread_ranks.h"

namespace ballast {
namespace {

std::vector<int> ranks_below(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void run_group(int num_ranks, const std::function<void(Communicator&)>& body) {
  run_thread_ranks(num_ranks, [&](int rank, c10::intrusive_ptr<c10d::Store> store) {
    GlooNetwork network(store, {.address = "127.0.0.1", .timeout = 60, .observer = nullptr});
    body(*network.join("group", ranks_below(num_ranks), rank));
  });
}

// Small whole numbers, exact in every type: what rank r holds at element i.
double value_of(int rank, std::int64_t i) { return static_cast<double>((rank * 31 + i * 7) % 13) - 4; }

at::Tensor tensor_of(int rank, std::vector<std::int64_t> shape, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  double* data = tensor.data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) data[i] = value_of(rank, i);
  return tensor.to(type);
}

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kLong};

class Collectives : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  // `body` on every rank of a group, for every element type.
  void for_types(const std::function<void(Communicator& group, at::ScalarType type)>& body) const {
    run_group(size(), [&](Communicator& group) {
      for (const at::ScalarType type : kTypes) body(group, type);
    });
  }
};

TEST_P(Collectives, AllReduceAddsAndTakesTheMaximumOfAnyCount) {
  for_types([&](Communicator& group, at::ScalarType type) {
    for (const std::int64_t count : {0, 1, 7, 1000, 10001}) {
      at::Tensor sum = tensor_of(group.rank(), {count}, type);
      at::Tensor largest = sum.clone();
      group.all_reduce(sum);
      group.all_reduce(largest, ReduceOp::max);
      at::Tensor expected_sum = at::zeros({count}, at::kDouble);
      at::Tensor expected_max = at::full({count}, -100.0, at::kDouble);
      for (int rank = 0; rank < size(); ++rank) {
        const at::Tensor theirs = tensor_of(rank, {count}, at::kDouble);
        expected_sum += theirs;
        expected_max = at::maximum(expected_max, theirs);
      }
      EXPECT_TRUE(at::equal(sum.to(at::kDouble), expected_sum)) << count;
      EXPECT_TRUE(at::equal(largest.to(at::kDouble), expected_max)) << count;
      EXPECT_EQ(sum.scalar_type(), type);
    }
  });
}

TEST_P(Collectives, BroadcastCopiesFromEveryRoot) {
  for_types([&](Communicator& group, at::ScalarType type) {
    for (int root = 0; root < size(); ++root) {
      at::Tensor tensor = tensor_of(group.rank(), {3, 5}, type);
      group.broadcast(tensor, root);
      EXPECT_TRUE(at::equal(tensor, tensor_of(root, {3, 5}, type)));
    }
  });
}

TEST_P(Collectives, AllGatherPutsUnevenRowsInRankOrder) {
  for_types([&](Communicator& group, at::ScalarType type) {
    // Rows 0, 3, 6, ... also with nothing on the last rank, and with nothing anywhere.
    for (const int kind : {0, 1, 2}) {
      std::vector<std::int64_t> rows;
      for (int rank = 0; rank < size(); ++rank)
        rows.push_back(kind == 0 ? rank * 3 : kind == 1 ? size() - 1 - rank : 0);
      std::vector<at::Tensor> expected;
      for (int rank = 0; rank < size(); ++rank) {
        expected.push_back(tensor_of(rank, {rows[static_cast<std::size_t>(rank)], 2, 3}, type));
      }
      const at::Tensor all = group.all_gather_rows(expected[static_cast<std::size_t>(group.rank())], rows);
      EXPECT_TRUE(at::equal(all, at::cat(expected))) << kind;
    }
  });
}

TEST_P(Collectives, ReduceScatterLeavesEachRankTheSumOfItsRows) {
  for_types([&](Communicator& group, at::ScalarType type) {
    std::vector<std::int64_t> rows;
    for (int rank = 0; rank < size(); ++rank) rows.push_back(rank == 1 ? 0 : 2 * rank + 1);
    const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    const at::Tensor mine = group.reduce_scatter_rows(tensor_of(group.rank(), {total, 5}, type), rows);
    at::Tensor expected = at::zeros({total, 5}, at::kDouble);
    for (int rank = 0; rank < size(); ++rank) expected += tensor_of(rank, {total, 5}, at::kDouble);
    EXPECT_TRUE(
        at::equal(mine.to(at::kDouble), expected.split_with_sizes(rows)[static_cast<std::size_t>(group.rank())]));
    EXPECT_EQ(mine.scalar_type(), type);
  });
}

TEST_P(Collectives, ReduceScatterOfTheGatheredWholeIsSizeTimesTheRows) {
  for_types([&](Communicator& group, at::ScalarType type) {
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(size()), 2);
    const at::Tensor mine = tensor_of(group.rank(), {2, 4}, type);
    const at::Tensor back = group.reduce_scatter_rows(group.all_gather_rows(mine, rows), rows);
    EXPECT_TRUE(at::equal(back, mine * size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, testing::Values(1, 2, 3, 5, 8), testing::PrintToStringParamName());

TEST(CollectivesOfFractions, AddInRankOrderWithTheSameBitsOnEveryRankAtAnyCount) {
  constexpr int kRanks = 4;
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{50001}}) {
    std::vector<at::Tensor> inputs;
    for (int rank = 0; rank < kRanks; ++rank) {
      inputs.push_back(at::sin(at::arange(count, at::kFloat) * (rank + 0.37F)) * (rank == 2 ? 1e6F : 1.0F));
    }
    const at::Tensor expected = ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3];
    run_group(kRanks, [&](Communicator& group) {
      at::Tensor sum = inputs[static_cast<std::size_t>(group.rank())].clone();
      group.all_reduce(sum);
      EXPECT_TRUE(at::equal(sum, expected));
      const std::vector<std::int64_t> rows = {1, 0, count - 3, 2};
      const at::Tensor mine = group.reduce_scatter_rows(inputs[static_cast<std::size_t>(group.rank())], rows);
      EXPECT_TRUE(at::equal(mine, expected.split_with_sizes(rows)[static_cast<std::size_t>(group.rank())]));
    });
  }
}

TEST(CollectivesOfFractions, RoundBfloat16OnceAndNotAtEverySum) {
  run_group(8, [](Communicator& group) {
    // 256 + 1 is 256 in bfloat16: added one by one the ones would all be lost.
    at::Tensor tensor = at::full({3}, group.rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    group.all_reduce(tensor);
    EXPECT_EQ(tensor[0].item<float>(), at::full({1}, 263.0).to(at::kBFloat16).item<float>());
  });
}

TEST(CollectivesOfFractions, TakeTensorsThatAreNotContiguousOrNeedGradients) {
  run_group(2, [](Communicator& group) {
    at::Tensor base = at::arange(12, at::kDouble).view({3, 4}) * (group.rank() + 1);
    at::Tensor columns = base.t();
    group.all_reduce(columns);
    EXPECT_TRUE(at::equal(base, at::arange(12, at::kDouble).view({3, 4}) * 3));
    at::Tensor wants_gradient = at::ones({2, 2}).requires_grad_(true);
    const at::Tensor all = group.all_gather_rows(wants_gradient, {2, 2});
    EXPECT_FALSE(all.requires_grad());
    EXPECT_EQ(all.sum().item<float>(), 8);
  });
}

}  // namespace
}  // namespace ballast
