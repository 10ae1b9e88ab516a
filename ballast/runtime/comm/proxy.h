// Passes on the parts of other ranks' messages (see router.h): receives a part's chunks into memory of its own and
// sends each on when it is there, one thread for each rank it receives from. What comes from one rank goes on in order.
//
// A part's memory is kept until the next hop says that it has the part: it may hold the header for long, until its user
// receives. No thread waits for that.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/runtime/comm/route_group.h"

namespace ballast {

class Proxy {
 public:
  // `group` outlives it. Every chunk but a part's last has `chunk_bytes`.
  Proxy(RouteGroup& group, Bytes chunk_bytes) : group_(group), chunk_bytes_(chunk_bytes) {}
  // REQUIRES: the group is stopped, and nobody calls pass_on.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // By one thread for each rank that headers are from, in order.
  void pass_on(const RouteHeader& header);
  void take_received(const RouteHeader& note);

  Bytes forwarded_bytes() const { return forwarded_bytes_; }

 private:
  struct Part {
    RouteHeader header = {};  // as received
    int next = 0;             // rank
    int next_tag = 0;
    std::vector<at::Tensor> chunks = {};
    std::vector<RouteGroup::Work> receives = {};
    std::vector<RouteGroup::Work> sends = {};  // the header's, then the chunks'
    bool all_sent = false;
    bool received = false;  // by the next hop
  };
  struct Forwarder {
    std::deque<std::shared_ptr<Part>> parts = {};
    std::thread thread = {};
  };

  at::Tensor take_chunk();
  void run(Forwarder& forwarder);
  void forward(Part& part);
  bool send_chunks(Part& part);
  void release(Part& part);

  RouteGroup& group_;
  Bytes chunk_bytes_;
  std::atomic<Bytes> forwarded_bytes_ = 0;

  std::mutex mutex_;  // of what follows, and of the last two members of parts
  std::condition_variable changed_;
  std::vector<at::Tensor> spare_chunks_;  // as many as were ever used at once: new memory is slow at its first touch
  std::map<int, std::shared_ptr<Part>> passing_;          // by the next hop's tag
  std::map<int, std::unique_ptr<Forwarder>> forwarders_;  // by the rank they receive from
};

}  // namespace ballast
