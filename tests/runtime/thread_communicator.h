// Communicators of N ranks that are N threads of the test, over shared memory: collectives by the definition, for tests
// of what stands on a communicator. Point to point is not needed here and asserts.
#pragma once

#include <ATen/ATen.h>

#include <barrier>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast::testing {

struct ThreadGroup {
  explicit ThreadGroup(int size) : barrier(size), slots(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<at::Tensor> slots;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->slots.size()); }
  const std::string& name() const override { return name_; }

  void all_reduce(at::Tensor tensor, ReduceOp op) override {
    const auto all = exchange(tensor.clone());
    tensor.copy_(all[0]);
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (op == ReduceOp::sum)
        tensor.add_(all[r]);
      else
        tensor.copy_(at::maximum(tensor, all[r]));
    }
  }
  void broadcast(at::Tensor tensor, int root) override {
    tensor.copy_(exchange(tensor.clone())[static_cast<std::size_t>(root)]);
  }
  at::Tensor all_gather_rows(const at::Tensor& local_RX, const std::vector<std::int64_t>& rows) override {
    BALLAST_ASSERT(local_RX.size(0) == rows[static_cast<std::size_t>(rank_)], "rows");
    return at::cat(exchange(local_RX.clone()), 0);
  }
  at::Tensor reduce_scatter_rows(const at::Tensor& full_RX, const std::vector<std::int64_t>& rows) override {
    const auto all = exchange(full_RX.clone());
    const auto begin = std::accumulate(rows.begin(), rows.begin() + rank_, std::int64_t{0});
    at::Tensor sum = all[0].narrow(0, begin, rows[static_cast<std::size_t>(rank_)]).clone();
    for (std::size_t r = 1; r < all.size(); ++r) sum.add_(all[r].narrow(0, begin, sum.size(0)));
    return sum;
  }
  std::unique_ptr<Transfer> send(const at::Tensor&, int, std::uint32_t) override { no_transfers(); }
  std::unique_ptr<Transfer> receive(at::Tensor, int, std::uint32_t) override { no_transfers(); }
  void barrier() override { group_->barrier.arrive_and_wait(); }

 private:
  [[noreturn]] static void no_transfers() { assertion_failed("send", __FILE__, __LINE__, "collectives only"); }
  std::vector<at::Tensor> exchange(at::Tensor mine) {
    group_->slots[static_cast<std::size_t>(rank_)] = std::move(mine);
    group_->barrier.arrive_and_wait();
    std::vector<at::Tensor> all = group_->slots;
    group_->barrier.arrive_and_wait();
    return all;
  }
  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  std::string name_ = "cp";
};

// Runs `body` once a rank, each in its own thread.
inline void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  const auto group = std::make_shared<ThreadGroup>(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadCommunicator communicator(group, rank);
      body(communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ballast::testing
