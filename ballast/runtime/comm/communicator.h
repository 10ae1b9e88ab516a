// A group of ranks that exchange tensors: the only way anything crosses ranks. One implementation a backend file
// (gloo.cpp now); a group of one is an ordinary group whose collectives return at once, so no caller asks for sizes.
//
// Every wait is bounded by the group's time-out; when it passes, a RunError says what was waited for, how long and for
// whom. A wait is reported to the WaitObserver, which gives back the core lease, marks the status board and records the
// span. One thread uses a communicator at a time. All members must issue the same collectives in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

// A peer did not answer in time or is gone. Told apart from other failures because it is mostly a consequence: the rank
// it names is where to look.
class CommunicationError : public RunError {
 public:
  CommunicationError(const std::string& what, std::vector<int> ranks, bool was_timeout)
      : RunError(what), lost_ranks(std::move(ranks)), timed_out(was_timeout) {}

  std::vector<int> lost_ranks;  // global; empty where not known
  bool timed_out;               // false: the connection ended
};

// Told around every blocking wait, on the thread that waits. A wait that fails has no end: the rank is about to stop
// and should neither take its core again nor forget what it waited for.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void wait_begins(std::string_view what) = 0;  // "all_reduce over dp_cp, 4 ranks"
  virtual void wait_ends() = 0;
};

// A send or receive under way. The tensor it was given must live until wait() has returned.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual void wait() = 0;  // throws RunError on time-out or a lost peer
};

enum class ReduceOp { sum, max };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // within this group
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // axis, for messages: "cp", "dp_cp", "world"

  // In place.
  virtual void all_reduce(at::Tensor tensor, ReduceOp op = ReduceOp::sum) = 0;
  virtual void broadcast(at::Tensor tensor, int root) = 0;

  // local_RX: this rank's rows[rank()] rows of any shape X -> all ranks' rows in rank order, sum(rows) of them. Row
  // counts may differ and may be 0; every rank passes the same `rows`. The result may share local_RX's memory.
  virtual at::Tensor all_gather_rows(const at::Tensor& local_RX, const std::vector<std::int64_t>& rows) = 0;
  // The reverse: full_RX with sum(rows) rows on every rank -> the sum over ranks of this rank's rows, added in rank
  // order, so that the result is the same bits every time. The result may share full_RX's memory.
  virtual at::Tensor reduce_scatter_rows(const at::Tensor& full_RX, const std::vector<std::int64_t>& rows) = 0;

  // Asynchronous; both sides know shape and type from the plan. One tag is first in, first out. Contiguous tensors.
  // Empty tensors are not sent: the transfer is complete at once on both sides.
  virtual std::unique_ptr<Transfer> send(const at::Tensor& tensor, int to, std::uint32_t tag) = 0;
  virtual std::unique_ptr<Transfer> receive(at::Tensor tensor, int from, std::uint32_t tag) = 0;

  virtual void barrier() = 0;
};

}  // namespace ballast
