#include "ballast/runtime/comm/gloo.h"

#include <ATen/ATen.h>
#include <sched.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <utility>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/pairwise.h"
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
  GlooCommunicator(ProcessGroup group, std::string name, std::vector<int> members, int rank, const GlooOptions& options)
      : PairwiseCommunicator(std::move(name), std::move(members), rank, options.timeout, options.observer),
        group_(std::move(group)) {}

 protected:
  std::unique_ptr<Message> post_send(at::Tensor bytes, int to, std::uint32_t tag) override {
    std::vector<at::Tensor> tensors = {std::move(bytes)};
    return std::make_unique<GlooMessage>(group_->send(tensors, to, static_cast<int>(tag)));
  }
  std::unique_ptr<Message> post_receive(at::Tensor bytes, int from, std::uint32_t tag) override {
    std::vector<at::Tensor> tensors = {std::move(bytes)};
    return std::make_unique<GlooMessage>(group_->recv(tensors, from, static_cast<int>(tag)));
  }

 private:
  ProcessGroup group_;
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

std::unique_ptr<Communicator> GlooNetwork::join(const std::string& name, const std::vector<int>& members,
                                                int rank_in_group) {
  if (members.size() == 1) return make_solo_communicator(name);
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options_.timeout * 1000));
  auto gloo_options = c10d::ProcessGroupGloo::Options::create(timeout);
  gloo_options->devices.push_back(device_);
  gloo_options->threads = 1;  // serves Gloo's own collectives, which PairwiseCommunicator does not use
  // Groups of one axis share its name ("cp" on every data parallel rank): the members tell them apart.
  std::string prefix = name;
  for (const int member : members) prefix.append(".").append(std::to_string(member));
  try {
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>(prefix, store_),
                                                             rank_in_group, static_cast<int>(members.size()),
                                                             std::move(gloo_options));
    return std::make_unique<GlooCommunicator>(std::move(group), name, members, rank_in_group, options_);
  } catch (const std::exception& error) {
    std::string ranks;
    for (const int member : members) ranks += (ranks.empty() ? "" : ", ") + std::to_string(member);
    throw CommunicationError("group " + name + ", ranks " + ranks + ": not all joined within " +
                                 std::to_string(static_cast<int>(options_.timeout)) + " s (" +
                                 first_line(error.what()) + ")",
                             {}, true);
  }
}

}  // namespace ballast
