// The group that routed parts travel in, and what travels: headers, under one tag, and chunks, each part under a tag of
// its own on each hop. See router.h. Any thread may call any function.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

enum class RouteHeaderKind : std::int32_t {
  part,      // announces a part, whose chunks follow under `tag`
  received,  // to a proxy: I have all of the part you sent me under `tag`
};

// Ranks are global; the same bytes on all hops but for `from` and `tag`.
struct RouteHeader {
  RouteHeaderKind kind = RouteHeaderKind::part;
  std::int32_t from = 0;  // the sender of this hop
  std::int32_t tag = 0;
  std::int32_t origin = 0;
  std::int32_t sender_proxy = 0;
  std::int32_t receiver_proxy = 0;
  std::int32_t destination = 0;
  std::int32_t parts = 0;  // of the message
  std::int32_t part = 0;
  std::uint64_t channel = 0;
  std::int64_t bytes = 0;  // of the part
};

class RouteGroup {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  RouteGroup(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const;

  // All give back at once; waiting may throw what Gloo throws.
  Work send(at::Tensor bytes, int to, int tag);
  Work receive(at::Tensor bytes, int from, int tag);
  Work send_header(const RouteHeader& header, int to);
  // Tells `to` that this rank has the part it sent under `tag`. Not waited for, nor an error where `to` is gone.
  void say_received(int to, int tag);
  // A tag for a part's chunks.
  int draw_tag();

  // Waits for the next header from a rank; throws where its connection ends. False where the group is stopped.
  bool next_header(int from, RouteHeader& header);
  // Waits without a time-out, since in Gloo a wait that expires ends connections. False where the group is stopped or
  // the work was aborted.
  bool wait(const Work& work);
  // Ends all waits of the two functions above, now and later.
  void stop();
  bool stopped();

  // A barrier in which whoever is gone counts as there.
  void leave_together(Seconds timeout);

 private:
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int rank_;
  std::atomic<std::uint32_t> tags_drawn_ = 0;
  std::mutex posting_;  // c10d's groups count what they post, and do not lock
  std::mutex mutex_;    // of what follows
  bool stopped_ = false;
  std::vector<c10d::Work*> waited_for_ = {};
  std::deque<Work> notes_ = {};  // the last ones sent
};

std::string first_line_of(const std::exception& error);
// What is left of a time-out; at least a moment, in which what is done proves it.
std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline);

}  // namespace ballast
