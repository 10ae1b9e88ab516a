#include "ballast/runtime/comm/router.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "ballast/runtime/comm/proxy.h"
#include "ballast/runtime/comm/route_group.h"

namespace ballast {
namespace {

using Clock = std::chrono::steady_clock;

// What a receive and the header meant for it have in common: origin, channel, number of parts, part.
using Place = std::tuple<int, std::uint64_t, int, int>;

// A part on its way into a tensor of this rank's user.
struct Arriving {
  at::Tensor bytes;
  Place place;
  bool announced = false;  // its header is here and the receives of its chunks are posted
  std::vector<RouteGroup::Work> chunks = {};
  std::string error = {};
  int from = 0;  // the last hop's sender and tag, once announced
  int tag = 0;
};

std::string of_proxy(int rank, std::string_view what) {
  return "proxy rank " + std::to_string(rank) + ": " + std::string(what);
}

}  // namespace

// What messages and the listener share.
class Router::Core {
 public:
  Core(c10::intrusive_ptr<c10d::ProcessGroupGloo> c10d_group, Routing the_routing, int rank, Seconds timeout)
      : routing(std::move(the_routing)),
        group(std::move(c10d_group), rank),
        timeout_(timeout),
        exceptions_at_start_(std::uncaught_exceptions()),
        proxy_(group, routing.chunk_bytes),
        listener_([this] { listen(); }) {}

  ~Core() {
    if (failed_ || std::uncaught_exceptions() > exceptions_at_start_) {
      group.leave_alone(failed_rank_ < 0 ? group.rank() : failed_rank_.load());
    } else {
      group.leave_together(timeout_);
    }
    group.stop();
    listener_.join();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const Routing routing;
  RouteGroup group;

  Bytes forwarded_bytes() const { return proxy_.forwarded_bytes(); }

  // Notes that a message failed; gives the reason for its user: where a rank is known to have failed, that and not what
  // came of it.
  std::string reason(const std::exception& error) {
    failed_ = true;
    return failed_rank_ < 0 ? first_line_of(error) : rank_failed();
  }

  void expect(const std::shared_ptr<Arriving>& part) {
    const std::lock_guard lock(mutex_);
    const auto early = early_.find(part->place);
    if (early == early_.end()) {
      expected_[part->place].push_back(part);
      return;
    }
    const RouteHeader header = early->second.front();
    early->second.pop_front();
    if (early->second.empty()) early_.erase(early);
    let_arrive(part, header);
  }

  void forget(const std::shared_ptr<Arriving>& part) {
    const std::lock_guard lock(mutex_);
    if (part->announced) arriving_.erase({part->from, part->tag});
    const auto expected = expected_.find(part->place);
    if (expected == expected_.end()) return;
    std::erase(expected->second, part);
    if (expected->second.empty()) expected_.erase(expected);
  }

  void wait(const Arriving& part, Clock::time_point deadline) {
    {
      std::unique_lock lock(mutex_);
      const bool in_time = announced_.wait_until(
          lock, deadline, [&] { return part.announced || !part.error.empty() || !failure_.empty(); });
      if (!part.error.empty()) throw RunError(part.error);
      if (!part.announced) throw RunError(in_time ? failure_ : "a part of the message was not announced");
    }
    for (const RouteGroup::Work& chunk : part.chunks) {
      bool done = false;
      try {
        done = chunk->wait(left_until(deadline));
      } catch (const std::exception& error) {
        throw RunError(of_proxy(part.from, first_line_of(error)));
      }
      const std::lock_guard lock(mutex_);
      if (!done) throw RunError(part.error);
    }
    group.note(RouteHeaderKind::received, part.from, part.tag);
  }

 private:
  void listen() {
    try {
      for (RouteHeader header; group.next_header(header);) take(header);
    } catch (const std::exception& error) {
      // A rank that is gone has left a header behind, and Gloo gives nobody else's before it.
      fail("routing ended: " + first_line_of(error));
    }
  }

  // Nothing more is announced, or not all of it: waits for that end.
  void fail(std::string why) {
    failed_ = true;
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = std::move(why);
    announced_.notify_all();
  }

  std::string rank_failed() const {
    return "rank " + std::to_string(failed_rank_) + " has failed and routes nothing any more";
  }

  void take(const RouteHeader& header) {
    if (header.kind == RouteHeaderKind::received) {
      proxy_.take_received(header);
    } else if (header.kind == RouteHeaderKind::lost) {
      if (!proxy_.take_lost(header)) take_lost(header);
    } else if (header.kind == RouteHeaderKind::left) {
      if (failed_rank_ < 0) failed_rank_ = header.lost_rank;
      fail(rank_failed());
    } else if (header.destination != group.rank()) {
      proxy_.pass_on(header);
    } else {
      take_for_user(header);
    }
  }

  void take_for_user(const RouteHeader& header) {
    const std::lock_guard lock(mutex_);
    const Place place = {header.origin, header.channel, header.parts, header.part};
    const auto expected = expected_.find(place);
    if (expected == expected_.end()) {
      early_[place].push_back(header);
      return;
    }
    const std::shared_ptr<Arriving> part = expected->second.front();
    expected->second.pop_front();
    if (expected->second.empty()) expected_.erase(expected);
    let_arrive(part, header);
  }

  // REQUIRES: mutex_ is held.
  void let_arrive(const std::shared_ptr<Arriving>& part, const RouteHeader& header) {
    announced_.notify_all();
    if (header.kind == RouteHeaderKind::lost) {
      part->error = of_proxy(header.from, "lost rank " + std::to_string(header.lost_rank));
      return;
    }
    if (header.bytes != part->bytes.numel()) {
      part->error = of_proxy(header.from, std::to_string(header.bytes) + " bytes are sent where " +
                                              std::to_string(part->bytes.numel()) + " are received");
      return;
    }
    try {
      for (const at::Tensor& chunk : part->bytes.split(routing.chunk_bytes)) {
        part->chunks.push_back(group.receive(chunk, header.from, header.tag));
      }
    } catch (const std::exception& error) {
      part->error = of_proxy(header.from, first_line_of(error));
      return;
    }
    part->from = header.from;
    part->tag = header.tag;
    part->announced = true;
    arriving_[{header.from, header.tag}] = part;
  }

  void take_lost(const RouteHeader& note) {
    const std::lock_guard lock(mutex_);
    if (const auto found = arriving_.find({note.from, note.tag}); found != arriving_.end()) {
      found->second->error = of_proxy(note.from, "lost rank " + std::to_string(note.lost_rank));
      for (const RouteGroup::Work& chunk : found->second->chunks) chunk->abort();
      return;
    }
    for (auto& [place, headers] : early_) {
      for (RouteHeader& header : headers) {
        if (header.from == note.from && header.tag == note.tag) header = note;
      }
    }
  }

  Seconds timeout_;
  int exceptions_at_start_;
  std::atomic<bool> failed_ = false;   // a message here or a rank elsewhere
  std::atomic<int> failed_rank_ = -1;  // the first, where one has said so
  std::mutex mutex_;                   // of what follows, up to the proxy
  std::condition_variable announced_;
  std::string failure_;                                              // why not every header comes any more
  std::map<Place, std::deque<std::shared_ptr<Arriving>>> expected_;  // receives without a header yet
  std::map<Place, std::deque<RouteHeader>> early_;                   // headers without a receive yet
  std::map<std::pair<int, int>, std::shared_ptr<Arriving>> arriving_;
  Proxy proxy_;
  std::thread listener_;  // last: it uses all of the above
};

class Router::SentMessage final : public Message {
 public:
  SentMessage(Core& core, const at::Tensor& bytes, int to, std::uint64_t channel, std::unique_ptr<Message> direct)
      : core_(core), direct_(std::move(direct)) {
    const int origin = core_.group.rank();
    const int parts = core_.routing.proxies(origin, to, bytes.numel());
    for (int k = 1; k < parts; ++k) {
      const RoutedPart part = core_.routing.part(origin, to, bytes.numel(), k);
      const RouteHeader header = {.from = origin,
                                  .tag = core_.group.draw_tag(),
                                  .origin = origin,
                                  .sender_proxy = part.sender_proxy,
                                  .receiver_proxy = part.receiver_proxy,
                                  .destination = to,
                                  .parts = parts,
                                  .part = k,
                                  .channel = channel,
                                  .bytes = part.end - part.begin};
      post(header, bytes.slice(0, part.begin, part.end));
    }
  }

  void wait(std::chrono::milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    try {
      direct_->wait(timeout);
      for (const Send& send : sends_) wait(send, deadline);
    } catch (const std::exception& error) {
      throw RunError(core_.reason(error));
    }
  }

 private:
  struct Send {
    RouteGroup::Work work;
    int proxy = 0;
  };

  void post(const RouteHeader& header, const at::Tensor& bytes) {
    const int proxy = header.sender_proxy;
    try {
      sends_.push_back({core_.group.send_header(header, proxy), proxy});
      for (const at::Tensor& chunk : bytes.split(core_.routing.chunk_bytes)) {
        sends_.push_back({core_.group.send(chunk, proxy, header.tag), proxy});
      }
    } catch (const std::exception& error) {
      throw RunError(core_.reason(RunError(of_proxy(proxy, first_line_of(error)))));
    }
  }

  static void wait(const Send& send, Clock::time_point deadline) {
    try {
      send.work->wait(left_until(deadline));
    } catch (const std::exception& error) {
      throw RunError(of_proxy(send.proxy, first_line_of(error)));
    }
  }

  Core& core_;
  std::unique_ptr<Message> direct_;
  std::vector<Send> sends_;
};

class Router::ReceivedMessage final : public Message {
 public:
  ReceivedMessage(Core& core, const at::Tensor& bytes, int from, std::uint64_t channel, std::unique_ptr<Message> direct)
      : core_(core), direct_(std::move(direct)) {
    const int rank = core_.group.rank();
    const int parts = core_.routing.proxies(from, rank, bytes.numel());
    for (int k = 1; k < parts; ++k) {
      const RoutedPart part = core_.routing.part(from, rank, bytes.numel(), k);
      parts_.push_back(std::make_shared<Arriving>(
          Arriving{.bytes = bytes.slice(0, part.begin, part.end), .place = {from, channel, parts, k}}));
      core_.expect(parts_.back());
    }
  }
  ~ReceivedMessage() override {
    for (const std::shared_ptr<Arriving>& part : parts_) core_.forget(part);
  }
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;

  void wait(std::chrono::milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    try {
      direct_->wait(timeout);
      for (const std::shared_ptr<Arriving>& part : parts_) core_.wait(*part, deadline);
    } catch (const std::exception& error) {
      throw RunError(core_.reason(error));
    }
  }

 private:
  Core& core_;
  std::unique_ptr<Message> direct_;
  std::vector<std::shared_ptr<Arriving>> parts_;
};

Router::Router(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, Routing routing, int rank, Seconds timeout)
    : core_(std::make_unique<Core>(std::move(group), std::move(routing), rank, timeout)) {}
Router::~Router() = default;

int Router::proxies(int peer, Bytes bytes) const { return core_->routing.proxies(core_->group.rank(), peer, bytes); }

Bytes Router::direct_bytes(int peer, Bytes bytes) const {
  return core_->routing.part(core_->group.rank(), peer, bytes, 0).end;
}

std::unique_ptr<Message> Router::send(const at::Tensor& bytes, int to, std::uint64_t channel,
                                      std::unique_ptr<Message> direct) {
  return std::make_unique<SentMessage>(*core_, bytes, to, channel, std::move(direct));
}

std::unique_ptr<Message> Router::receive(const at::Tensor& bytes, int from, std::uint64_t channel,
                                         std::unique_ptr<Message> direct) {
  return std::make_unique<ReceivedMessage>(*core_, bytes, from, channel, std::move(direct));
}

Bytes Router::forwarded_bytes() const { return core_->forwarded_bytes(); }

}  // namespace ballast
