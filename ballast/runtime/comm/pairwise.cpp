#include "ballast/runtime/comm/pairwise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "ballast/base/digest.h"
#include "ballast/base/error.h"

namespace ballast {
namespace {

using Clock = std::chrono::steady_clock;

// Tags below this are the caller's; those from here on belong to collectives.
constexpr std::uint32_t kCollectiveTags = 1U << 30;
// Up to here an all-reduce sends whole tensors in one phase instead of parts in two: latency counts, not bytes.
constexpr std::int64_t kOnePhaseBytes = 16 * 1024;

at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, at::kByte);
}

std::vector<std::int64_t> even_parts(std::int64_t count, int parts) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < parts; ++i) sizes.push_back(count * (i + 1) / parts - count * i / parts);
  return sizes;
}

bool is_half(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }

// parts in rank order, all of one shape -> their sum or maximum in `out`, which may be one of them. parts[spare], none
// of the caller's, is overwritten: no further memory is touched.
void combine(const at::Tensor& out, std::vector<at::Tensor> parts, std::size_t spare, ReduceOp op) {
  const auto apply = [op](at::Tensor into, const at::Tensor& a, const at::Tensor& b) {
    if (op == ReduceOp::sum) {
      at::add_out(into, a, b);
    } else {
      at::maximum_out(into, a, b);
    }
  };
  const bool half = is_half(out.scalar_type());
  if (half) {
    for (at::Tensor& part : parts) part = part.to(at::kFloat);
  }
  at::Tensor total = parts[0];
  const at::Tensor last = half ? parts[spare] : out;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const at::Tensor into = i + 1 == parts.size() ? last : parts[spare];
    apply(into, total, parts[i]);
    total = into;
  }
  if (half) out.copy_(last);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

// What a backend says, in short: some append a stack trace, and Gloo puts its source file before and advice after.
std::string in_short(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.starts_with("[/")) text.remove_prefix(std::min(text.size(), text.find("] ") + 2));
  return std::string(text.substr(0, text.find(". This is typically caused by")));
}

}  // namespace

// The messages of one phase of an operation, waited for together under one deadline.
class PairwiseCommunicator::Exchange {
 public:
  Exchange(PairwiseCommunicator& group, std::string what)
      : group_(group), what_(std::move(what)), posted_at_(Clock::now()) {}

  void send(const at::Tensor& tensor, int to, std::uint32_t tag) { post(tensor, to, tag, true); }
  void receive(const at::Tensor& tensor, int from, std::uint32_t tag) { post(tensor, from, tag, false); }

  void wait() {
    if (posted_.empty()) return;
    if (group_.observer_ != nullptr) group_.observer_->wait_begins(what_);
    const Clock::time_point deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(group_.timeout_));
    const Clock::time_point began = Clock::now();
    for (std::size_t i = 0; i < posted_.size(); ++i) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      try {
        posted_[i].message->wait(std::max(left, std::chrono::milliseconds(1)));
      } catch (const std::exception& error) {
        fail(i, std::chrono::duration<double>(Clock::now() - began).count(), error);
      }
    }
    posted_.clear();
    if (group_.observer_ != nullptr) group_.observer_->wait_ends();
  }

 private:
  struct Posted {
    std::unique_ptr<Message> message;
    at::Tensor tensor;  // keeps the storage alive
    int peer;
    bool is_send;
  };

  void post(const at::Tensor& tensor, int peer, std::uint32_t tag, bool is_send) {
    if (tensor.numel() == 0) return;
    BALLAST_ASSERT(tensor.is_contiguous(), "messages are contiguous");
    try {
      const at::Tensor bytes = as_bytes(tensor);
      posted_.push_back({is_send ? group_.post_send(bytes, peer, tag) : group_.post_receive(bytes, peer, tag), tensor,
                         peer, is_send});
    } catch (const std::exception& error) {
      posted_.push_back({nullptr, tensor, peer, is_send});
      fail(posted_.size() - 1, std::chrono::duration<double>(Clock::now() - posted_at_).count(), error);
    }
  }

  // Who is to blame for a message: whom the error names, else its peer. Global ranks.
  std::vector<int> suspects(std::size_t at, const std::exception& error) const {
    const auto* known = dynamic_cast<const CommunicationError*>(&error);
    if (known != nullptr && !known->lost_ranks.empty()) return known->lost_ranks;
    return {group_.members_[static_cast<std::size_t>(posted_[at].peer)]};
  }

  [[noreturn]] void fail(std::size_t at, double waited, const std::exception& error) {
    const bool timed_out = waited >= group_.timeout_ - 0.01;
    std::vector<int> lost = suspects(at, error);
    if (timed_out) {
      // Whoever else has not answered by now is as suspect as the first.
      for (std::size_t i = at + 1; i < posted_.size(); ++i) {
        try {
          posted_[i].message->wait(std::chrono::milliseconds(1));
        } catch (const std::exception& other) {
          for (const int rank : suspects(i, other)) lost.push_back(rank);
        }
      }
      std::sort(lost.begin(), lost.end());
      lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
    }
    std::string ranks = lost.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < lost.size(); ++i) ranks += (i > 0 ? ", " : "") + std::to_string(lost[i]);
    std::string verdict;
    if (timed_out) {
      verdict = "no answer from " + ranks + " within " + seconds_text(waited);
    } else {
      verdict = "lost " + ranks + " after " + seconds_text(waited) + " (" + in_short(error.what()) + ")";
      // When one rank ends, its peers end of that: the first is where to look.
      if (const int first = group_.first_lost(); first >= 0 && first != lost[0]) {
        verdict += ", and rank " + std::to_string(first) + " before";
        lost.insert(lost.begin(), first);
      }
    }
    throw CommunicationError(what_ + ": " + verdict, lost, timed_out);
  }

  PairwiseCommunicator& group_;
  std::string what_;
  Clock::time_point posted_at_;
  std::vector<Posted> posted_;
};

class PairwiseTransfer final : public Transfer {
 public:
  explicit PairwiseTransfer(PairwiseCommunicator::Exchange exchange) : exchange_(std::move(exchange)) {}
  void wait() override { exchange_.wait(); }

 private:
  PairwiseCommunicator::Exchange exchange_;
};

PairwiseCommunicator::PairwiseCommunicator(std::string name, std::vector<int> members, int rank, Seconds timeout,
                                           WaitObserver* observer)
    : name_(std::move(name)), members_(std::move(members)), rank_(rank), timeout_(timeout), observer_(observer) {
  BALLAST_ASSERT(members_.size() >= 2, "a group of one needs no network: make_solo_communicator");
  BALLAST_ASSERT(rank_ >= 0 && rank_ < size(), "rank within the group");
}

std::string PairwiseCommunicator::describe(std::string_view operation) const {
  std::string text = std::string(operation) + " over " + name_ + ", ranks ";
  for (std::size_t i = 0; i < members_.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(members_[i]);
  return text;
}

// A collective's tag holds its place in the sequence and a digest of what it is: ranks that disagree on either wait for
// each other until the time-out, which is reported, instead of mixing up their bytes.
std::uint32_t PairwiseCommunicator::next_collective_tag(std::string_view operation, std::int64_t bytes) {
  const std::uint64_t what = digest(std::string(operation) + std::to_string(bytes));
  return kCollectiveTags | (sequence_++ & 0x3fffU) << 16 | static_cast<std::uint32_t>(what & 0xffffU);
}

void PairwiseCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  const at::NoGradGuard no_grad;
  if (tensor.numel() == 0) return;
  if (tensor.is_contiguous()) {
    all_reduce_flat(tensor.view({-1}), op);
  } else {
    const at::Tensor copy = tensor.contiguous();
    all_reduce_flat(copy.view({-1}), op);
    tensor.copy_(copy);
  }
}

void PairwiseCommunicator::all_reduce_flat(at::Tensor flat, ReduceOp op) {
  if (static_cast<std::int64_t>(flat.nbytes()) > kOnePhaseBytes) {
    // The tensor's rows are its elements: each rank sums one part of them, then all gather the parts.
    const std::vector<std::int64_t> parts = even_parts(flat.numel(), size());
    std::vector<at::Tensor> pieces = flat.split_with_sizes(parts);
    const std::uint32_t tag = next_collective_tag("all_reduce", flat.nbytes());
    Exchange reduce(*this, describe("all_reduce"));
    std::vector<at::Tensor> mine(pieces.size(), pieces[static_cast<std::size_t>(rank_)]);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      mine[static_cast<std::size_t>(peer)] = at::empty_like(pieces[static_cast<std::size_t>(rank_)]);
      reduce.receive(mine[static_cast<std::size_t>(peer)], peer, tag);
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) reduce.send(pieces[static_cast<std::size_t>(peer)], peer, tag);
    }
    reduce.wait();
    combine(pieces[static_cast<std::size_t>(rank_)], mine, spare(), op);
    Exchange gather(*this, describe("all_reduce"));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) gather.receive(pieces[static_cast<std::size_t>(peer)], peer, tag);
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) gather.send(pieces[static_cast<std::size_t>(rank_)], peer, tag);
    }
    gather.wait();
    return;
  }
  const std::uint32_t tag = next_collective_tag("all_reduce", flat.nbytes());
  Exchange exchange(*this, describe("all_reduce"));
  std::vector<at::Tensor> all(members_.size(), flat);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    all[static_cast<std::size_t>(peer)] = at::empty_like(flat);
    exchange.receive(all[static_cast<std::size_t>(peer)], peer, tag);
    exchange.send(flat, peer, tag);
  }
  exchange.wait();
  combine(flat, all, spare(), op);
}

void PairwiseCommunicator::broadcast(at::Tensor tensor, int root) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = tensor.contiguous();
  const std::uint32_t tag = next_collective_tag("broadcast", whole.nbytes());
  Exchange exchange(*this, describe("broadcast"));
  if (rank_ == root) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) exchange.send(whole, peer, tag);
    }
  } else {
    exchange.receive(whole, root, tag);
  }
  exchange.wait();
  if (!whole.is_same(tensor)) tensor.copy_(whole);
}

at::Tensor PairwiseCommunicator::all_gather_rows(const at::Tensor& local_RX, const std::vector<std::int64_t>& rows) {
  const at::NoGradGuard no_grad;
  BALLAST_ASSERT(rows.size() == members_.size(), "rows: one count a rank");
  BALLAST_ASSERT(local_RX.dim() > 0 && local_RX.size(0) == rows[static_cast<std::size_t>(rank_)], "rows of this rank");
  std::vector<std::int64_t> shape = local_RX.sizes().vec();
  shape[0] = 0;
  for (const std::int64_t count : rows) shape[0] += count;
  at::Tensor full_RX = at::empty(shape, local_RX.options().requires_grad(false));
  const std::vector<at::Tensor> pieces = full_RX.split_with_sizes(rows);
  const at::Tensor local = local_RX.contiguous();

  const std::uint32_t tag = next_collective_tag("all_gather", full_RX.nbytes());
  Exchange exchange(*this, describe("all_gather"));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) exchange.receive(pieces[static_cast<std::size_t>(peer)], peer, tag);
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) exchange.send(local, peer, tag);
  }
  pieces[static_cast<std::size_t>(rank_)].copy_(local);
  exchange.wait();
  return full_RX;
}

at::Tensor PairwiseCommunicator::reduce_scatter_rows(const at::Tensor& full_RX, const std::vector<std::int64_t>& rows) {
  const at::NoGradGuard no_grad;
  BALLAST_ASSERT(rows.size() == members_.size(), "rows: one count a rank");
  const at::Tensor full = full_RX.contiguous();
  const std::vector<at::Tensor> pieces = full.split_with_sizes(rows);  // throws where rows do not add up
  const at::Tensor& own = pieces[static_cast<std::size_t>(rank_)];

  const std::uint32_t tag = next_collective_tag("reduce_scatter", full.nbytes());
  Exchange exchange(*this, describe("reduce_scatter"));
  std::vector<at::Tensor> parts(members_.size(), own);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    parts[static_cast<std::size_t>(peer)] = at::empty_like(own);
    exchange.receive(parts[static_cast<std::size_t>(peer)], peer, tag);
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) exchange.send(pieces[static_cast<std::size_t>(peer)], peer, tag);
  }
  exchange.wait();
  at::Tensor mine = at::empty_like(own);
  combine(mine, parts, spare(), ReduceOp::sum);
  return mine;
}

std::unique_ptr<Transfer> PairwiseCommunicator::send(const at::Tensor& tensor, int to, std::uint32_t tag) {
  BALLAST_ASSERT(to >= 0 && to < size() && to != rank_, "a send goes to another rank of the group");
  BALLAST_ASSERT(tag < kCollectiveTags, "tags of sends are below 2^30");
  const int peer = members_[static_cast<std::size_t>(to)];
  Exchange exchange(*this, "send to rank " + std::to_string(peer) + " over " + name_);
  exchange.send(tensor, to, tag);
  return std::make_unique<PairwiseTransfer>(std::move(exchange));
}

std::unique_ptr<Transfer> PairwiseCommunicator::receive(at::Tensor tensor, int from, std::uint32_t tag) {
  BALLAST_ASSERT(from >= 0 && from < size() && from != rank_, "a receive comes from another rank of the group");
  BALLAST_ASSERT(tag < kCollectiveTags, "tags of receives are below 2^30");
  const int peer = members_[static_cast<std::size_t>(from)];
  Exchange exchange(*this, "receive from rank " + std::to_string(peer) + " over " + name_);
  exchange.receive(tensor, from, tag);
  return std::make_unique<PairwiseTransfer>(std::move(exchange));
}

void PairwiseCommunicator::barrier() {
  const at::Tensor mine = at::zeros({1}, at::kByte);
  const at::Tensor theirs = at::zeros({size()}, at::kByte);
  const std::vector<at::Tensor> pieces = theirs.split(1);
  const std::uint32_t tag = next_collective_tag("barrier", 1);
  Exchange exchange(*this, describe("barrier"));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    exchange.receive(pieces[static_cast<std::size_t>(peer)], peer, tag);
    exchange.send(mine, peer, tag);
  }
  exchange.wait();
}

}  // namespace ballast
