#include "ballast/runtime/comm/router.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"
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
  RoutedPart way;
  bool announced = false;  // its header is here and the receives of its chunks are posted
  std::vector<RouteGroup::Work> chunks = {};
  std::string error = {};  // why it will never be announced
  int tag = 0;             // of the chunks, once announced
};

// A header or a chunk on its way to a proxy of this rank's node.
struct Departing {
  RouteGroup::Work work;
  int proxy = 0;
};

std::string of_proxy(int rank, std::string_view what) {
  return "proxy rank " + std::to_string(rank) + ": " + std::string(what);
}

bool is_past(Clock::time_point deadline) { return Clock::now() + std::chrono::milliseconds(10) >= deadline; }

// Queues by place: none is empty.
template <class T>
T take_first(std::map<Place, std::deque<T>>& queues, typename std::map<Place, std::deque<T>>::iterator queue) {
  T first = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) queues.erase(queue);
  return first;
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
        proxy_(group, routing.chunk_bytes) {
    for (int peer = 0; peer < group.size(); ++peer) {
      if (peer != rank) listeners_.emplace_back([this, peer] { listen(peer); });
    }
  }

  ~Core() {
    if (!gave_up_a_message && std::uncaught_exceptions() <= exceptions_at_start_) group.leave_together(timeout_);
    group.stop();
    for (std::thread& listener : listeners_) listener.join();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const Routing routing;
  RouteGroup group;
  // A message failed or was not waited for. Gloo does not go on with a connection on which it was receiving into what
  // is no longer there, and does not see it end either.
  std::atomic<bool> gave_up_a_message = false;

  Bytes forwarded_bytes() const { return proxy_.forwarded_bytes(); }

  void expect(const std::shared_ptr<Arriving>& part) {
    const std::lock_guard lock(mutex_);
    const auto early = early_.find(part->place);
    if (early == early_.end()) {
      expected_[part->place].push_back(part);
      return;
    }
    let_arrive(part, take_first(early_, early));
  }

  void forget(const std::shared_ptr<Arriving>& part) {
    const std::lock_guard lock(mutex_);
    std::erase(arriving_, part);
    const auto expected = expected_.find(part->place);
    if (expected == expected_.end()) return;
    std::erase(expected->second, part);
    if (expected->second.empty()) expected_.erase(expected);
  }

  // `sends` stays where it is, and as it is, until it is forgotten.
  void watch(const std::vector<Departing>& sends) {
    const std::lock_guard lock(mutex_);
    departing_.push_back(&sends);
    for (const int rank : lost_) abort_sends(sends, rank);
  }

  void forget(const std::vector<Departing>& sends) {
    const std::lock_guard lock(mutex_);
    std::erase(departing_, &sends);
  }

  // Throws CommunicationError: of the rank on the part's way that is gone, or of all on it where none has answered.
  void wait(const Arriving& part, Clock::time_point deadline) {
    {
      std::unique_lock lock(mutex_);
      announced_.wait_until(lock, deadline,
                            [&] { return part.announced || !part.error.empty() || lost_on_the_way(part) >= 0; });
      if (!part.error.empty()) throw RunError(part.error);
      if (!part.announced) throw not_received(part, "a part was not announced");
    }
    for (const RouteGroup::Work& chunk : part.chunks) {
      std::string why = "a part has not come";
      try {
        if (chunk->wait(left_until(deadline))) continue;
      } catch (const std::exception& error) {
        why = of_proxy(part.way.receiver_proxy, first_line_of(error));
      }
      const std::lock_guard lock(mutex_);
      if (lost_on_the_way(part) < 0 && !is_past(deadline)) {
        throw CommunicationError(why, {part.way.receiver_proxy}, false);
      }
      throw not_received(part, why);
    }
    group.say_received(part.way.receiver_proxy, part.tag);
  }

  // Of all ranks the first that is gone; -1: none.
  int first_lost() {
    const std::lock_guard lock(mutex_);
    return lost_.empty() ? -1 : lost_.front();
  }

 private:
  void listen(int peer) {
    try {
      for (RouteHeader header; group.next_header(peer, header);) take(header);
    } catch (const std::exception&) {
      lose(peer);
    }
  }

  // When its connection ends, what goes over a rank is lost, though some of it may be past that rank already. Gloo
  // itself would tell most of those who wait, but not of what its I/O thread was sending at that moment.
  void lose(int rank) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(rank);
    for (const std::shared_ptr<Arriving>& part : arriving_) {
      if (lost_on_the_way(*part) < 0) continue;
      for (const RouteGroup::Work& chunk : part->chunks) chunk->abort();
    }
    for (const std::vector<Departing>* sends : departing_) abort_sends(*sends, rank);
    announced_.notify_all();
  }

  static void abort_sends(const std::vector<Departing>& sends, int proxy) {
    for (const Departing& send : sends) {
      if (send.proxy == proxy) send.work->abort();
    }
  }

  std::set<int> ranks_before(const Arriving& part) const {
    std::set<int> ranks = {std::get<0>(part.place), part.way.sender_proxy, part.way.receiver_proxy};
    ranks.erase(group.rank());
    return ranks;
  }

  // The first that was lost, or -1. REQUIRES: mutex_ is held.
  int lost_on_the_way(const Arriving& part) const {
    const std::set<int> ranks = ranks_before(part);
    for (const int rank : lost_) {
      if (ranks.contains(rank)) return rank;
    }
    return -1;
  }

  // REQUIRES: mutex_ is held.
  CommunicationError not_received(const Arriving& part, const std::string& why) const {
    if (const int rank = lost_on_the_way(part); rank >= 0) {
      return {"rank " + std::to_string(rank) + ", over which a part comes, is gone", {rank}, false};
    }
    const std::set<int> ranks = ranks_before(part);
    return {why, {ranks.begin(), ranks.end()}, true};
  }

  void take(const RouteHeader& header) {
    if (header.kind == RouteHeaderKind::received) {
      proxy_.take_received(header);
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
    let_arrive(take_first(expected_, expected), header);
  }

  // REQUIRES: mutex_ is held.
  void let_arrive(const std::shared_ptr<Arriving>& part, const RouteHeader& header) {
    announced_.notify_all();
    if (lost_on_the_way(*part) >= 0) return;
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
    part->tag = header.tag;
    part->announced = true;
    arriving_.push_back(part);
  }

  Seconds timeout_;
  int exceptions_at_start_;
  std::mutex mutex_;  // of what follows, up to the proxy
  std::condition_variable announced_;
  std::vector<int> lost_ = {};                                       // ranks whose connections have ended, in order
  std::map<Place, std::deque<std::shared_ptr<Arriving>>> expected_;  // receives without a header yet
  std::map<Place, std::deque<RouteHeader>> early_;                   // headers without a receive yet
  std::vector<std::shared_ptr<Arriving>> arriving_;                  // announced
  std::vector<const std::vector<Departing>*> departing_;
  Proxy proxy_;
  std::vector<std::thread> listeners_;  // last: they use all of the above
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
    core_.watch(sends_);
  }
  ~SentMessage() override {
    if (!done_) core_.gave_up_a_message = true;
    core_.forget(sends_);
  }
  SentMessage(const SentMessage&) = delete;
  SentMessage& operator=(const SentMessage&) = delete;

  void wait(std::chrono::milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    direct_->wait(timeout);
    for (const Departing& send : sends_) wait(send, deadline);
    done_ = true;
  }

 private:
  void post(const RouteHeader& header, const at::Tensor& bytes) {
    const int proxy = header.sender_proxy;
    try {
      sends_.push_back({core_.group.send_header(header, proxy), proxy});
      for (const at::Tensor& chunk : bytes.split(core_.routing.chunk_bytes)) {
        sends_.push_back({core_.group.send(chunk, proxy, header.tag), proxy});
      }
    } catch (const std::exception& error) {
      core_.gave_up_a_message = true;
      throw CommunicationError(of_proxy(proxy, first_line_of(error)), {proxy}, false);
    }
  }

  static void wait(const Departing& send, Clock::time_point deadline) {
    std::string why = "it is gone";
    try {
      if (send.work->wait(left_until(deadline))) return;
    } catch (const std::exception& error) {
      why = first_line_of(error);
    }
    throw CommunicationError(of_proxy(send.proxy, why), {send.proxy}, is_past(deadline));
  }

  Core& core_;
  std::unique_ptr<Message> direct_;
  std::vector<Departing> sends_;
  bool done_ = false;
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
          Arriving{.bytes = bytes.slice(0, part.begin, part.end), .place = {from, channel, parts, k}, .way = part}));
      core_.expect(parts_.back());
    }
  }
  ~ReceivedMessage() override {
    if (!done_) core_.gave_up_a_message = true;
    for (const std::shared_ptr<Arriving>& part : parts_) core_.forget(part);
  }
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;

  void wait(std::chrono::milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    direct_->wait(timeout);
    for (const std::shared_ptr<Arriving>& part : parts_) core_.wait(*part, deadline);
    done_ = true;
  }

 private:
  Core& core_;
  std::unique_ptr<Message> direct_;
  std::vector<std::shared_ptr<Arriving>> parts_;
  bool done_ = false;
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

int Router::first_lost() const { return core_->first_lost(); }

Bytes Router::forwarded_bytes() const { return core_->forwarded_bytes(); }

}  // namespace ballast
