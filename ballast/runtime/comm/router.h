// Carries the parts of messages between nodes that go over proxies (ir/routing.h), and is a proxy for the parts of
// other ranks' messages. One a rank, over a group of the whole world with connections of its own.
//
// A hop's sender announces a part with a header and sends its chunks under a tag that only they have (route_group.h).
// A thread for each other rank listens for its headers and posts the receives of the chunks at once: into the user's
// tensor where this rank is the receiver (an early header is held until the receive is posted), else into memory of the
// proxy, which passes chunks on as they arrive, so that the hops of a part overlap (proxy.h). None of the router's
// threads waits for what a user's thread must do first: a proxy makes progress whatever its own rank is waiting for.
//
// The listeners also see when a rank is gone, at once: then what is on its way over that rank is lost.
//
// Order: part k of n of all messages between the same two ranks takes the same way, and every hop is first in, first
// out. So the first header to arrive is of the first receive posted, and nobody counts.
//
// Any thread may send and receive, on one channel one at a time. Waits for messages end with their time-out, sooner
// where a rank on their way is lost.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>

#include "ballast/ir/routing.h"
#include "ballast/runtime/comm/pairwise.h"

namespace c10d {
class ProcessGroupGloo;
}

namespace ballast {

class Router {
 public:
  // `group`: all ranks of the world in their order, used for nothing else. REQUIRES: no violations in `routing`.
  Router(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, Routing routing, int rank, Seconds timeout);
  // Others' messages may go through this rank when its own are done: waits until all ranks leave or are gone, at most
  // for the time-out. Leaves at once where an exception unwinds this rank or a routed message failed or was given up.
  // Messages are destroyed before.
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Over how many proxies a message between this rank and that global one goes; 1: the router has nothing to do with
  // it.
  int proxies(int peer, Bytes bytes) const;
  // How much of such a message is part 0, from its start.
  Bytes direct_bytes(int peer, Bytes bytes) const;

  // A message over more than one proxy. `bytes`: the whole of it, as PairwiseCommunicator::post_send's. `direct`: part
  // 0, which the caller has posted on a connection of its own; it is waited for with the others. Messages of one pair
  // of ranks and one channel stay in order.
  std::unique_ptr<Message> send(const at::Tensor& bytes, int to, std::uint64_t channel,
                                std::unique_ptr<Message> direct);
  std::unique_ptr<Message> receive(const at::Tensor& bytes, int from, std::uint64_t channel,
                                   std::unique_ptr<Message> direct);

  // Of all ranks the first whose connection has ended, or -1: mostly the one that the others ended of.
  int first_lost() const;
  // What this rank has passed on for others so far.
  Bytes forwarded_bytes() const;

 private:
  class Core;
  class SentMessage;
  class ReceivedMessage;
  std::unique_ptr<Core> core_;
};

}  // namespace ballast
