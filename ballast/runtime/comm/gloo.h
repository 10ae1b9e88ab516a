// The Gloo backend: groups of ranks over TCP, through libtorch's c10d.
//
// A GlooNetwork is one rank's end: a listening socket and one I/O thread, shared by all groups the rank is in. Groups
// may be used side by side, each by one thread at a time; the network lives at least as long as they do.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <string>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/ir/routing.h"
#include "ballast/runtime/comm/communicator.h"

namespace gloo::transport {
class Device;
}

namespace ballast {

class Router;

struct GlooOptions {
  std::string address = "127.0.0.1";  // of the interface to listen on: loopback unless told otherwise
  Seconds timeout = 60;               // longest wait for a peer, at the start and later
  WaitObserver* observer = nullptr;   // told of every wait; outlives the groups
  // The core of the I/O thread where ranks outnumber cores: another than the rank computes on. -1: any.
  int io_core = -1;
  // How messages between nodes are spread over network cards, the same on all ranks. Off unless told otherwise.
  Routing routing = {};
};

class GlooNetwork {
 public:
  // `store`: where ranks find each other; the same contents for all ranks. Throws RunError where the address cannot be
  // bound.
  GlooNetwork(c10::intrusive_ptr<c10d::Store> store, GlooOptions options);
  // Where messages are routed, waits for the other ranks: see ~Router.
  ~GlooNetwork();
  GlooNetwork(const GlooNetwork&) = delete;
  GlooNetwork& operator=(const GlooNetwork&) = delete;

  // Routes messages of the groups joined from now on, as the options say. Every rank of the world calls it; it returns
  // once all have. Nothing is made where the options route nothing in a world of this size. Throws UserError where
  // they cannot be met, CommunicationError as join does.
  void start_routing(int rank, int world_size);
  // Null where nothing is routed.
  const Router* router() const { return router_.get(); }

  // Joins the group `name` of the global ranks `members`, as their `rank_in_group`-th; returns once all have joined.
  // Every member passes the same name and members; a name is used once on a store, and "route" is not one where
  // messages are routed. A group of one returns at once.
  // Throws CommunicationError where not all join within the time-out.
  std::unique_ptr<Communicator> join(const std::string& name, const std::vector<int>& members, int rank_in_group);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  GlooOptions options_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::unique_ptr<Router> router_;
};

}  // namespace ballast
