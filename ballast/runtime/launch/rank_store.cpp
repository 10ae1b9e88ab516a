#include "ballast/runtime/launch/rank_store.h"

#include <c10/util/Logging.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = socket_type;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) throw UserError("MASTER_ADDR=" + host + ": no such host (" + gai_strerror(error) + ")");
  return Addresses(list);
}

// c10d writes warnings with stack traces while it tries again; what comes of it we report ourselves, in one line.
// TORCH_CPP_LOG_LEVEL brings its own words back.
void quiet_c10d() {
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
}

std::chrono::milliseconds milliseconds(Seconds seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

int listen_on(const std::string& address, int port) {
  const Addresses addresses = resolve(address, port, SOCK_STREAM);
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // a port of a run just ended is free
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 2048) == 0) return fd;
    error = errno;
    close(fd);
  }
  if (error == EADDRINUSE) {
    throw UserError("MASTER_PORT=" + std::to_string(port) + ": port in use on " + address +
                    "; choose another, such as " + std::to_string(port < 65000 ? port + 17 : port - 17));
  }
  if (error == EADDRNOTAVAIL) {
    throw UserError("MASTER_ADDR=" + address + ": not an address of this host, where rank 0 serves the store");
  }
  throw UserError("MASTER_ADDR=" + address + ", MASTER_PORT=" + std::to_string(port) + ": cannot listen there (" +
                  std::strerror(error) + ")");
}

int port_of(int listening_socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  BALLAST_ASSERT(getsockname(listening_socket, reinterpret_cast<sockaddr*>(&address), &length) == 0, "a socket");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

std::string address_towards(const std::string& master_address) {
  // Connecting a datagram socket sends nothing but chooses the route.
  const Addresses addresses = resolve(master_address, 9, SOCK_DGRAM);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    char text[NI_MAXHOST];
    const bool found =
        connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    close(fd);
    if (found) return text;
  }
  throw UserError("MASTER_ADDR=" + master_address + ": this host has no route to it");
}

HostedStore::HostedStore() : listening_(listen_on("127.0.0.1", 0)), port_(port_of(listening_)) {}

HostedStore::~HostedStore() {
  server_.reset();
  if (listening_ >= 0) close(listening_);
}

void HostedStore::serve(int num_ranks) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port_);
  options.isServer = true;
  options.numWorkers = static_cast<std::size_t>(num_ranks);
  options.waitWorkers = false;
  options.masterListenFd = listening_;
  listening_ = -1;  // the store closes it
  server_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

RankStore::RankStore(const RankIdentity& identity, Seconds timeout) : identity_(identity), timeout_(timeout) {
  if (identity.world_size == 1) {
    store_ = c10::make_intrusive<c10d::HashStore>();
    return;
  }
  quiet_c10d();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(identity.master_port);
  options.isServer = identity.rank == 0 && !identity.launcher_serves_store;
  options.waitWorkers = false;
  options.timeout = milliseconds(timeout);
  if (options.isServer) options.masterListenFd = listen_on(identity.master_address, identity.master_port);
  try {
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        "ballast/" + identity.attempt, c10::make_intrusive<c10d::TCPStore>(identity.master_address, options));
  } catch (const std::exception& error) {
    throw CommunicationError("store at " + identity.master_address + ":" + std::to_string(identity.master_port) +
                                 ": no answer within " + std::to_string(static_cast<int>(timeout)) + " s (" +
                                 first_line(error.what()) + ")",
                             {}, true);
  }
}

void RankStore::leave() {
  if (identity_.world_size == 1) return;
  const std::int64_t left = store_->add("left", 1);
  if (identity_.rank != 0 || identity_.launcher_serves_store) return;
  const auto deadline = std::chrono::steady_clock::now() + milliseconds(timeout_);
  for (std::int64_t gone = left; gone < identity_.world_size && std::chrono::steady_clock::now() < deadline;
       gone = store_->add("left", 0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace ballast
