#include "ballast/runtime/comm/gloo.h"

#include <ATen/ATen.h>
#include <sched.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <numeric>
#include <utility>

#include "ballast/base/digest.h"
#include "ballast/base/error.h"
#include "ballast/runtime/comm/pairwise.h"
#include "ballast/runtime/comm/router.h"
#include "ballast/runtime/comm/solo.h"

namespace ballast {
namespace {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

class GlooMessage final : public Message {
 public:
  explicit GlooMessage(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait(std::chrono::milliseconds timeout) override { work_->wait(timeout); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

class GlooCommunicator final : public PairwiseCommunicator {
 public:
  // `router` may be null. `number`: of the group, the same on all members, another than their other groups have.
  GlooCommunicator(ProcessGroup group, std::string name, std::vector<int> members, int rank, const GlooOptions& options,
                   Router* router, std::uint32_t number)
      : PairwiseCommunicator(std::move(name), members, rank, options.timeout, options.observer),
        group_(std::move(group)),
        members_(std::move(members)),
        router_(router),
        number_(number) {}

 protected:
  std::unique_ptr<Message> post_send(at::Tensor bytes, int to, std::uint32_t tag) override {
    const int peer = members_[static_cast<std::size_t>(to)];
    if (!routed(peer, bytes)) return send_direct(std::move(bytes), to, tag);
    auto direct = send_direct(bytes.slice(0, 0, router_->direct_bytes(peer, bytes.numel())), to, tag);
    return router_->send(bytes, peer, channel(tag), std::move(direct));
  }
  std::unique_ptr<Message> post_receive(at::Tensor bytes, int from, std::uint32_t tag) override {
    const int peer = members_[static_cast<std::size_t>(from)];
    if (!routed(peer, bytes)) return receive_direct(std::move(bytes), from, tag);
    auto direct = receive_direct(bytes.slice(0, 0, router_->direct_bytes(peer, bytes.numel())), from, tag);
    return router_->receive(bytes, peer, channel(tag), std::move(direct));
  }
  int first_lost() const override { return router_ == nullptr ? -1 : router_->first_lost(); }

 private:
  std::unique_ptr<Message> send_direct(at::Tensor bytes, int to, std::uint32_t tag) {
    std::vector<at::Tensor> tensors = {std::move(bytes)};
    return std::make_unique<GlooMessage>(group_->send(tensors, to, static_cast<int>(tag)));
  }
  std::unique_ptr<Message> receive_direct(at::Tensor bytes, int from, std::uint32_t tag) {
    std::vector<at::Tensor> tensors = {std::move(bytes)};
    return std::make_unique<GlooMessage>(group_->recv(tensors, from, static_cast<int>(tag)));
  }
  // Both sides know the size, so both say the same.
  bool routed(int peer, const at::Tensor& bytes) const {
    return router_ != nullptr && router_->proxies(peer, bytes.numel()) > 1;
  }
  std::uint64_t channel(std::uint32_t tag) const { return std::uint64_t{number_} << 32 | tag; }

  ProcessGroup group_;
  std::vector<int> members_;
  Router* router_;
  std::uint32_t number_;
};

// Threads made while this lives do not preempt the thread that makes them. Gloo's I/O thread polls without sleeping as
// long as the thread that posts a message holds the connection's lock; if it got its core by preempting that very
// thread, both stand still until the scheduler's next tick (4 ms at 250 Hz, and at every message). On a core of their
// own (`core`) they cannot, and run as soon as a message wakes them though another rank computes there. Elsewhere they
// do not preempt anyone: good where cores idle while ranks wait, but a message would wait for a tick where other ranks
// compute meanwhile.
class NewThreadsDoNotPreempt {
 public:
  explicit NewThreadsDoNotPreempt(int core) : policy_(sched_getscheduler(0)) {
    sched_getparam(0, &parameters_);
    if (core >= 0 && core < CPU_SETSIZE && sched_getaffinity(0, sizeof cores_, &cores_) == 0) {
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(static_cast<std::size_t>(core), &only);
      bound_ = sched_setaffinity(0, sizeof only, &only) == 0;
    }
    const sched_param none = {};
    if (!bound_ && policy_ == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
  }
  ~NewThreadsDoNotPreempt() {
    if (bound_) sched_setaffinity(0, sizeof cores_, &cores_);
    sched_setscheduler(0, policy_, &parameters_);
  }
  NewThreadsDoNotPreempt(const NewThreadsDoNotPreempt&) = delete;
  NewThreadsDoNotPreempt& operator=(const NewThreadsDoNotPreempt&) = delete;

 private:
  int policy_;
  sched_param parameters_ = {};
  bool bound_ = false;
  cpu_set_t cores_ = {};
};

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// Groups of one axis share its name ("cp" on every data parallel rank): the members tell them apart.
std::string full_name(const std::string& name, const std::vector<int>& members) {
  std::string text = name;
  for (const int member : members) text.append(".").append(std::to_string(member));
  return text;
}

// Returns once all members have called it. Throws CommunicationError.
ProcessGroup connect(const c10::intrusive_ptr<c10d::Store>& store,
                     const std::shared_ptr<gloo::transport::Device>& device, Seconds timeout, const std::string& name,
                     const std::vector<int>& members, int rank_in_group) {
  auto options =
      c10d::ProcessGroupGloo::Options::create(std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000)));
  options->devices.push_back(device);
  options->threads = 1;  // serves Gloo's own collectives, which PairwiseCommunicator does not use
  const auto began = std::chrono::steady_clock::now();
  try {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(full_name(name, members), store), rank_in_group,
        static_cast<int>(members.size()), std::move(options));
  } catch (const std::exception& error) {
    std::string ranks;
    for (const int member : members) ranks += (ranks.empty() ? "" : ", ") + std::to_string(member);
    const Seconds waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const bool timed_out = waited >= timeout;  // else the store or a connection ended
    throw CommunicationError(
        "group " + name + ", ranks " + ranks + ": not all joined" +
            (timed_out ? " within " + std::to_string(static_cast<int>(timeout)) + " s"
                       : "; lost one of them or the store after " + std::to_string(static_cast<int>(waited)) + " s") +
            " (" + first_line(error.what()) + ")",
        {}, timed_out);
  }
}

}  // namespace

GlooNetwork::GlooNetwork(c10::intrusive_ptr<c10d::Store> store, GlooOptions options)
    : store_(std::move(store)), options_(std::move(options)) {
  const NewThreadsDoNotPreempt calm(options_.io_core);
  try {
    device_ = c10d::ProcessGroupGloo::createDeviceForHostname(options_.address);
  } catch (const std::exception& error) {
    throw RunError("cannot listen on address " + options_.address + ": " + first_line(error.what()));
  }
}

GlooNetwork::~GlooNetwork() = default;

void GlooNetwork::start_routing(int rank, int world_size) {
  require_valid(options_.routing.violations(world_size), "routing");
  if (!options_.routing.active(world_size)) return;
  std::vector<int> everyone(static_cast<std::size_t>(world_size));
  std::iota(everyone.begin(), everyone.end(), 0);
  const NewThreadsDoNotPreempt calm(options_.io_core);  // the router's threads serve the network too
  router_ = std::make_unique<Router>(connect(store_, device_, options_.timeout, "route", everyone, rank),
                                     options_.routing, rank, options_.timeout);
}

std::unique_ptr<Communicator> GlooNetwork::join(const std::string& name, const std::vector<int>& members,
                                                int rank_in_group) {
  if (members.size() == 1) return make_solo_communicator(name);
  const auto number = static_cast<std::uint32_t>(digest(full_name(name, members)));
  return std::make_unique<GlooCommunicator>(connect(store_, device_, options_.timeout, name, members, rank_in_group),
                                            name, members, rank_in_group, options_, router_.get(), number);
}

}  // namespace ballast
