// Communicators of N ranks that are N threads of the test, over shared memory: collectives by the definition, for tests
// of what stands on a communicator. A send is through only when its receiver has waited for it, which is as little as a
// backend promises: an order of waits that could stand still does so here, and fails.
#pragma once

#include <ATen/ATen.h>

#include <barrier>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast::testing {

struct ThreadGroup {
  explicit ThreadGroup(int size) : barrier(size), slots(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<at::Tensor> slots;

  struct Letter {
    at::Tensor tensor;
    bool taken = false;
  };
  using Address = std::tuple<int, int, std::uint32_t>;  // from, to, tag
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Address, std::deque<std::shared_ptr<Letter>>> letters;
};

class ThreadTransfer final : public Transfer {
 public:
  // `letter`: what is sent; empty for a receive into `tensor`.
  ThreadTransfer(std::shared_ptr<ThreadGroup> group, ThreadGroup::Address address, at::Tensor tensor,
                 std::shared_ptr<ThreadGroup::Letter> letter)
      : group_(std::move(group)), address_(address), tensor_(std::move(tensor)), letter_(std::move(letter)) {}

  void wait() override {
    if (tensor_.numel() == 0) return;
    std::unique_lock lock(group_->mutex);
    const auto wait_for = [&](auto&& condition) {
      if (!group_->changed.wait_for(lock, std::chrono::seconds(20), condition)) {
        const auto [from, to, tag] = address_;
        assertion_failed("wait", __FILE__, __LINE__,
                         "message " + std::to_string(from) + " to " + std::to_string(to) + " stands still");
      }
    };
    if (letter_) return wait_for([&] { return letter_->taken; });
    auto& box = group_->letters[address_];
    wait_for([&] { return !box.empty(); });
    tensor_.copy_(box.front()->tensor);
    box.front()->taken = true;
    box.pop_front();
    group_->changed.notify_all();
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  ThreadGroup::Address address_;
  at::Tensor tensor_;
  std::shared_ptr<ThreadGroup::Letter> letter_;
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
  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int to, std::uint32_t tag) override {
    BALLAST_ASSERT(tensor.is_contiguous(), "messages are contiguous");
    const ThreadGroup::Address address{rank_, to, tag};
    auto letter = std::make_shared<ThreadGroup::Letter>(ThreadGroup::Letter{tensor});
    const std::lock_guard lock(group_->mutex);
    if (tensor.numel() > 0) group_->letters[address].push_back(letter);
    group_->changed.notify_all();
    return std::make_unique<ThreadTransfer>(group_, address, tensor, letter);
  }
  std::unique_ptr<Transfer> receive(at::Tensor tensor, int from, std::uint32_t tag) override {
    BALLAST_ASSERT(tensor.is_contiguous(), "messages are contiguous");
    return std::make_unique<ThreadTransfer>(group_, ThreadGroup::Address{from, rank_, tag}, tensor, nullptr);
  }
  void barrier() override { group_->barrier.arrive_and_wait(); }

 private:
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
