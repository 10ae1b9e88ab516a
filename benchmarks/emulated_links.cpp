// One rank of an emulated cluster (tools/emulated_cluster run FILE -- bench_emulated_links FILE routed|direct): what
// one large message between nodes takes, how much of it hides behind work, and what attention of one long sequence
// takes in a ring over all ranks. Rank 0 prints one JSON object.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "ballast/cost/cp_links.h"
#include "ballast/cost/emulated_cost.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/emulation_toml.h"
#include "ballast/runtime/attention/engine.h"
#include "ballast/runtime/comm/mesh.h"
#include "ballast/runtime/launch/rank_session.h"
#include "ballast/runtime/launch/rendezvous.h"
#include "ballast/sharding/sharder.h"

namespace ballast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Bytes kCrossing = 8 << 20;
constexpr int kRepeats = 15;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds until rank 0's message is at `to`, which works for `work` meanwhile; by the receiver's clock.
double crossing(Mesh& mesh, int to, Seconds work) {
  std::vector<double> seconds;
  at::Tensor tensor = at::zeros({kCrossing}, at::kByte);
  for (int i = 0; i < kRepeats; ++i) {
    mesh.world->barrier();
    const auto begin = Clock::now();
    if (mesh.rank == 0) {
      mesh.world->send(tensor, to, 7)->wait();
    } else if (mesh.rank == to) {
      const auto transfer = mesh.world->receive(tensor, 0, 7);
      std::this_thread::sleep_for(std::chrono::duration<double>(work));
      transfer->wait();
    }
    seconds.push_back(since(begin));
    mesh.world->barrier();
  }
  at::Tensor theirs = at::full({1}, mesh.rank == to ? median(seconds) : 0.0, at::kDouble);
  mesh.world->all_reduce(theirs, ReduceOp::max);
  return theirs.item<double>();
}

// Forward and backward, the slowest rank.
std::array<double, 2> ring_attention(Mesh& mesh, RankHooks& hooks, const CostModel& cost) {
  // Messages of 4 MB and little to compute for two cores: in the proportion of a device.
  constexpr Tokens kTokens = 256;
  constexpr int kHeads = 64;
  constexpr int kHeadDim = 256;
  const int ranks = mesh.world->size();
  const ShardPlan plan = shard_ring({0, kTokens}, ranks, cost);
  SpanRecorder recorder(mesh.rank, Clock::now(), hooks);
  const ContextAttention attention(plan, {*mesh.cp, recorder, hooks, 0, 0});
  std::array<std::vector<double>, 2> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    const auto draw = [&] { return at::randn({plan.num_tokens(mesh.rank), kHeads, kHeadDim}).requires_grad_(); };
    const at::Tensor q = draw();
    const at::Tensor k = draw();
    const at::Tensor v = draw();
    const at::Tensor dout = at::randn(q.sizes());
    mesh.world->barrier();
    auto begin = Clock::now();
    const at::Tensor out = attention(0, q, k, v);
    mesh.world->barrier();
    seconds[0].push_back(since(begin));
    begin = Clock::now();
    torch::autograd::backward({out}, {dout});
    mesh.world->barrier();
    seconds[1].push_back(since(begin));
    recorder.take();
  }
  return {median(seconds[0]), median(seconds[1])};
}

void measure(RankSession& session, const std::string& file, bool routed) {
  const EmulationSpec emulation = read_emulation(file);
  ModelSpec model;
  const auto cost = make_emulated_cost(
      std::make_shared<DeviceCost>(read_device_profile(emulation.device), *model_preset(emulation.model), 1), emulation,
      model, 4, routed);
  const int rank = session.identity().rank;
  Mesh mesh = make_mesh({.dp = 1, .pp = 1, .cp = session.identity().world_size}, rank, session.store(),
                        {.address = session.gloo_address(), .timeout = 60, .routing = routing_of(cost->cp_links())});
  session.settle();
  at::set_num_threads(1);
  const int to = emulation.ranks_per_node;
  const double alone = crossing(mesh, to, 0);
  const double direct = static_cast<double>(kCrossing) * 8 / emulation.card_bits_per_second;
  const double with_work = crossing(mesh, to, direct);
  const auto [forward, backward] = ring_attention(mesh, session, *cost);
  if (rank != 0) return;
  fmt::print("{}\n", nlohmann::ordered_json{{"routed", routed},
                                            {"crossing_bytes", kCrossing},
                                            {"crossing_seconds", alone},
                                            {"work_seconds", direct},
                                            {"crossing_with_work_seconds", with_work},
                                            {"hidden_share", 1 - (with_work - direct) / alone},
                                            {"ring_forward_seconds", forward},
                                            {"ring_backward_seconds", backward}}
                         .dump());
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  using namespace ballast;
  const auto identity = rank_identity(process_environment());
  if (argc != 3 || !identity) return 64;
  return run_as_rank(*identity, {.lease = "off", .pin = false},
                     [&](RankSession& session) { measure(session, argv[1], argv[2] == std::string("routed")); });
}
