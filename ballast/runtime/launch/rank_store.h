// The store in which ranks find each other: c10d's TCPStore, on loopback unless the launcher names another address.
// Its server leaves last.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <string>

#include "ballast/base/units.h"
#include "ballast/runtime/launch/rendezvous.h"

namespace ballast {

// The launcher's end: listens on a free port of loopback from construction on; serve() starts a thread that answers, so
// processes are forked between the two.
class HostedStore {
 public:
  HostedStore();
  ~HostedStore();
  HostedStore(const HostedStore&) = delete;
  HostedStore& operator=(const HostedStore&) = delete;

  int port() const { return port_; }
  void serve(int num_ranks);

 private:
  int listening_ = -1;
  int port_ = 0;
  c10::intrusive_ptr<c10d::Store> server_;
};

// A rank's end. Rank 0 serves the store itself where the launcher does not. A world of one has a store in memory.
class RankStore {
 public:
  // Throws UserError where the port is taken or the address is not this host's, CommunicationError where the server
  // does not answer within `timeout`.
  RankStore(const RankIdentity& identity, Seconds timeout);
  // Without leave(): at once, as after an error.
  ~RankStore() = default;

  const c10::intrusive_ptr<c10d::Store>& get() const { return store_; }

  // This rank needs the store no more. Where it serves the store it waits, at most the time-out, for the others.
  void leave();

 private:
  RankIdentity identity_;
  Seconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
};

// The address of this host's interface on the way to `master_address`: what Gloo listens on. Loopback for loopback.
std::string address_towards(const std::string& master_address);

// A listening socket on `address`:`port`; port 0 takes a free one. Throws UserError naming MASTER_ADDR or MASTER_PORT.
int listen_on(const std::string& address, int port);
int port_of(int listening_socket);

}  // namespace ballast
