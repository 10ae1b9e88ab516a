// Collectives made of messages between pairs of ranks. A backend that can send and receive bytes derives from this and
// has all of Communicator. Gloo's own collectives are not used because these
//   - add in rank order, whatever the size, so a sum has the same bits on every rank and in every run;
//   - know from whom each message comes, so an error names the rank that did not answer;
//   - move rows of uneven counts straight to where they belong, without padding, and any type as bytes.
// Every member sends to every other at once: each rank moves (n-1)/n of the data once a phase, as a ring does, with one
// latency instead of n-1. bfloat16 and float16 are summed in float32 and rounded once.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast {

// A message of raw bytes under way.
class Message {
 public:
  virtual ~Message() = default;
  // Throws any std::exception on time-out or a lost peer; the caller adds what the message was for. A
  // CommunicationError where another than the peer is to blame.
  virtual void wait(std::chrono::milliseconds timeout) = 0;
};

class PairwiseCommunicator : public Communicator {
 public:
  // `members`: global ranks in group order, at least 2; `rank`: this rank's place among them. `observer` may be null
  // and else outlives the communicator.
  PairwiseCommunicator(std::string name, std::vector<int> members, int rank, Seconds timeout, WaitObserver* observer);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  const std::string& name() const override { return name_; }

  void all_reduce(at::Tensor tensor, ReduceOp op) override;
  void broadcast(at::Tensor tensor, int root) override;
  at::Tensor all_gather_rows(const at::Tensor& local_RX, const std::vector<std::int64_t>& rows) override;
  at::Tensor reduce_scatter_rows(const at::Tensor& full_RX, const std::vector<std::int64_t>& rows) override;
  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int to, std::uint32_t tag) override;
  std::unique_ptr<Transfer> receive(at::Tensor tensor, int from, std::uint32_t tag) override;
  void barrier() override;

 protected:
  // bytes: one-dimensional, contiguous, uint8, not empty; kept alive by the caller until the wait has returned.
  // `tag` < 2^31; messages of one sender and tag arrive in order.
  virtual std::unique_ptr<Message> post_send(at::Tensor bytes, int to, std::uint32_t tag) = 0;
  virtual std::unique_ptr<Message> post_receive(at::Tensor bytes, int from, std::uint32_t tag) = 0;
  // The first of all global ranks that is known to be gone, or -1.
  virtual int first_lost() const { return -1; }

 private:
  friend class PairwiseTransfer;
  class Exchange;

  std::string describe(std::string_view operation) const;  // "all_reduce over dp_cp, ranks 0, 1, 2, 3"
  std::uint32_t next_collective_tag(std::string_view operation, std::int64_t bytes);
  // Of parts in rank order, one that was received and so may be overwritten: the first, or the second on rank 0.
  std::size_t spare() const { return rank_ == 0 ? 1 : 0; }
  void all_reduce_flat(at::Tensor flat, ReduceOp op);

  std::string name_;
  std::vector<int> members_;
  int rank_;
  Seconds timeout_;
  WaitObserver* observer_;
  std::uint32_t sequence_ = 0;
};

}  // namespace ballast
