#include "ballast/planner/step_estimator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "ballast/packing/packed_stream.h"
#include "ballast/planner/make_step_plan.h"
#include "ballast/schedule/make_schedule.h"
#include "ballast/sharding/sharder.h"
#include "ballast/workload/document_stream.h"

namespace ballast {

namespace {

std::string key(std::initializer_list<std::string> parts) {
  std::string joined;
  for (const std::string& part : parts) joined += part + '/';
  return joined;
}
std::string text(int value) { return std::to_string(value); }

std::string schedule_key(const RunChoice& choice, int micro_batches) {
  return key({choice.schedule.name, text(choice.dims.pp), text(choice.schedule.virtual_stages),
              text(choice.schedule.round_size), text(micro_batches)});
}

}  // namespace

ClusterMesh mesh_of(const RunChoice& choice) { return {.dims = choice.dims, .tp = choice.tp, .order = choice.mapping}; }

struct StepEstimator::Packed {
  std::string key;
  std::unique_ptr<CostModel> cost;  // that the packer weighs documents by
  std::unique_ptr<DocumentStream> documents;
  std::unique_ptr<PackedStream> stream;
  std::vector<PackedStep> steps;
  std::vector<std::vector<Seconds>> seconds;  // of micro-batches, by step
};

// What the ranks of a step do at least in one layer, without exchanges over the cp axis.
struct LeastWork {
  Seconds work = 0;  // forward and backward, over all micro-batches
  Seconds head = 0;
  Seconds shortest_forward = std::numeric_limits<Seconds>::max();  // of one micro-batch
  Seconds shortest_backward = std::numeric_limits<Seconds>::max();

  void add(const std::vector<ShareCosts>& shares, bool recompute) {
    Seconds forward = 0;
    Seconds backward = 0;
    Seconds both = 0;
    Seconds heads = 0;
    for (const ShareCosts& share : shares) {
      const auto in = [&](std::size_t pass) {
        return share.layer[pass] + share.tensor_exchange[pass] + share.attention[pass];
      };
      const Seconds once_more = recompute ? in(0) : 0;
      forward = std::max(forward, in(0));
      backward = std::max(backward, in(1) + once_more);
      both = std::max(both, in(0) + in(1) + once_more);
      heads = std::max(heads, share.head[0] + share.head[1]);
    }
    work += both;
    head += heads;
    shortest_forward = std::min(shortest_forward, forward);
    shortest_backward = std::min(shortest_backward, backward);
  }
};

// These shares know nothing of where ranks sit: exchanges are priced apart.
struct StepEstimator::Shards {
  std::string key;
  std::unique_ptr<CostModel> cost;
  std::vector<std::vector<std::vector<ShareCosts>>> shares;  // [step][micro-batch][cp]
  std::vector<std::array<LeastWork, 2>> least;               // [step][recompute]
};

// What the exchange over the cp axis costs, where its ranks sit so far apart.
struct StepEstimator::KvExchanges {
  std::vector<std::vector<std::array<Seconds, 2>>> seconds;  // [step][micro-batch]
  std::vector<std::array<Seconds, 2>> sums;                  // [step], over micro-batches
  std::vector<std::array<Seconds, 2>> least;                 // [step]
};

StepEstimator::StepEstimator(const RunSubject& subject, int skip) : subject_(subject), skip_(skip) {}
StepEstimator::~StepEstimator() = default;

const DeviceCost& StepEstimator::device_cost(int tp) {
  auto& cost = device_costs_[tp];
  if (!cost) cost = std::make_shared<DeviceCost>(subject_.device, subject_.run.model, tp, subject_.run.software);
  return *cost;
}

std::unique_ptr<CostModel> StepEstimator::cluster_cost(const RunChoice& choice) {
  device_cost(choice.tp);
  return make_cluster_cost(device_costs_.at(choice.tp), subject_.cluster, subject_.run.model, mesh_of(choice),
                           subject_.run.overlap_tp);
}

const Schedule& StepEstimator::schedule(const RunChoice& choice) {
  const int each = subject_.run.packing.micro_batches / choice.windows / choice.dims.dp;
  const auto [at, made] = schedules_.try_emplace(schedule_key(choice, each));
  if (made) at->second = make_schedule(choice.schedule, choice.dims.pp, each);
  return at->second;
}

// Documents weigh alike wherever their tensor parallel group is of this size and inside a node.
StepEstimator::Packed& StepEstimator::packed(const RunChoice& choice, int steps) {
  const std::string name = key({choice.packer, text(choice.windows), text(choice.tp),
                                text(choice.mapping.stride(MeshAxis::tp, choice.dims, choice.tp))});
  std::unique_ptr<Packed>& found = packed_[name];
  if (!found) {
    const RunSpec run = with_choice(subject_.run, choice);
    found = std::make_unique<Packed>();
    found->key = name;
    found->cost = cluster_cost(choice);
    found->documents = std::make_unique<DocumentStream>(
        subject_.lengths, subject_.domains,
        StreamOrder{
            .shuffle = run.shuffle, .seed = run.seed, .num_epochs = run.epochs, .num_documents = run.documents});
    found->stream = std::make_unique<PackedStream>(run.packing, *found->cost,
                                                   [documents = found->documents.get()] { return documents->next(); });
    for (int step = 0; step < skip_; ++step) found->stream->next();
  }
  while (static_cast<int>(found->steps.size()) < steps) {
    std::optional<PackedStep> step = found->stream->next();
    if (!step) {
      throw UserError("the workload holds fewer than the " + text(skip_ + steps) +
                      " steps that a plan is made from; lower [plan] steps or let documents repeat");
    }
    // Every pipeline runs the same number; where there are fewer, the last are empty.
    const auto count = static_cast<std::size_t>(subject_.run.packing.micro_batches / choice.windows);
    if (step->micro_batches.size() < count) step->micro_batches.resize(count);
    std::vector<Seconds>& seconds = found->seconds.emplace_back();
    for (const MicroBatch& micro_batch : step->micro_batches) seconds.push_back(found->cost->micro_batch(micro_batch));
    found->steps.push_back(std::move(*step));
  }
  return *found;
}

StepEstimator::Shards& StepEstimator::shards(const RunChoice& choice, int steps) {
  const Packed& from = packed(choice, steps);
  std::string name = key({from.key, text(choice.dims.cp), choice.sharding});
  const std::vector<std::string> gathering = gathering_sharding_names();
  if (std::find(gathering.begin(), gathering.end(), choice.sharding) == gathering.end()) {
    // Rings are placed, and priced, by where the ranks sit.
    name = key({name, text(choice.mapping.stride(MeshAxis::cp, choice.dims, choice.tp))});
  }
  std::unique_ptr<Shards>& found = shards_[name];
  if (!found) {
    found = std::make_unique<Shards>();
    found->key = name;
    found->cost = cluster_cost(choice);
  }
  const StepPlanSettings settings = step_plan_settings(with_choice(subject_.run, choice));
  while (static_cast<int>(found->shares.size()) < steps) {
    auto& of_step = found->shares.emplace_back();
    for (const MicroBatch& micro_batch : from.steps[found->shares.size() - 1].micro_batches) {
      const ShardPlan shard =
          make_shard_plan(choice.sharding, micro_batch.cu_seqlens(), choice.dims.cp, *found->cost, settings.placement);
      of_step.push_back(share_costs(shard, *found->cost));
    }
    std::array<LeastWork, 2>& least = found->least.emplace_back();
    for (const std::vector<ShareCosts>& shares : of_step) {
      for (const bool recompute : {false, true}) least[recompute ? 1 : 0].add(shares, recompute);
    }
  }
  return *found;
}

StepEstimator::KvExchanges& StepEstimator::kv_exchanges(const RunChoice& choice, int steps) {
  const Shards& of = shards(choice, steps);
  std::unique_ptr<KvExchanges>& found =
      kv_exchanges_[key({of.key, text(choice.mapping.stride(MeshAxis::cp, choice.dims, choice.tp))})];
  if (!found) found = std::make_unique<KvExchanges>();
  if (static_cast<int>(found->seconds.size()) >= steps) return *found;
  const std::unique_ptr<CostModel> cost = cluster_cost(choice);
  const ProgramSettings settings = program_settings(with_choice(subject_.run, choice));
  while (static_cast<int>(found->seconds.size()) < steps) {
    const std::size_t step = found->seconds.size();
    auto& of_step = found->seconds.emplace_back();
    std::array<Seconds, 2>& sums = found->sums.emplace_back();
    std::array<Seconds, 2>& least = found->least.emplace_back();
    least.fill(std::numeric_limits<Seconds>::max());
    for (const std::vector<ShareCosts>& shares : of.shares[step]) {
      std::vector<ShareCosts> priced = {shares.front()};
      priced.resize(shares.size(), shares.front());
      price_kv_exchange(priced, subject_.run.model, *cost, settings);
      of_step.push_back(priced.front().kv_exchange);
      for (std::size_t pass = 0; pass < 2; ++pass) {
        sums[pass] += of_step.back()[pass];
        least[pass] = std::min(least[pass], of_step.back()[pass]);
      }
    }
  }
  return *found;
}

const std::vector<std::vector<std::size_t>>& StepEstimator::order(const RunChoice& choice, int step) {
  const Packed& from = packed(choice, step + 1);
  const Schedule& of_pipeline = schedule(choice);
  const auto [at, made] = orders_.try_emplace(
      key({from.key, text(step), text(choice.dims.dp), schedule_key(choice, of_pipeline.num_micro_batches)}));
  if (made) {
    const StepPlanSettings settings = step_plan_settings(with_choice(subject_.run, choice));
    at->second = order_micro_batches(from.seconds[static_cast<std::size_t>(step)], settings, of_pipeline);
  }
  return at->second;
}

std::vector<StepEstimate> StepEstimator::estimate(const RunChoice& choice, int steps) {
  const RunSpec run = with_choice(subject_.run, choice);
  const std::unique_ptr<CostModel> cost = cluster_cost(choice);
  ProgramSettings settings = program_settings(run);
  settings.network_axes = axes_across_nodes(subject_.cluster, mesh_of(choice));
  const Shards& shared = shards(choice, steps);
  const KvExchanges& exchanges = kv_exchanges(choice, steps);
  const Packed& from = packed(choice, steps);
  const std::vector<int> stage_layers = run.layers_by_stage();
  std::vector<StepEstimate> found;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<std::vector<ShareCosts>>> shares;
    for (const auto& pipeline : order(choice, step)) {
      auto& of_pipeline = shares.emplace_back();
      for (const std::size_t m : pipeline) {
        of_pipeline.push_back(shared.shares[static_cast<std::size_t>(step)][m]);
        for (ShareCosts& share : of_pipeline.back()) {
          share.kv_exchange = exchanges.seconds[static_cast<std::size_t>(step)][m];
        }
        price_messages(of_pipeline.back(), choice.dims, *cost);
      }
    }
    const StepTime time =
        fast_step(choice.dims, schedule(choice),
                  step_costs(choice.dims, stage_layers, std::move(shares), run.model, *cost, settings), settings)
            .time;
    found.push_back({.seconds = time.step_seconds(),
                     .tokens = from.steps[static_cast<std::size_t>(step)].num_tokens(),
                     .bubble_share = time.bubble_share,
                     .exposed_communication_share = time.exposed_communication_share(),
                     .imbalance = time.imbalance()});
  }
  return found;
}

double StepEstimator::tokens(const RunChoice& choice, int steps) {
  const Packed& from = packed(choice, steps);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    sum += static_cast<double>(from.steps[static_cast<std::size_t>(step)].num_tokens());
  }
  return sum;
}

Seconds StepEstimator::lower_bound(const RunChoice& choice, int steps) {
  const Shards& shared = shards(choice, steps);
  const KvExchanges& exchanges = kv_exchanges(choice, steps);
  const bool recompute = choice.recompute == "full";
  const int pp = choice.dims.pp;
  const std::vector<int> stage_layers = choice.schedule.layers_by_stage(subject_.run.model.num_layers, pp);
  std::vector<int> rank_layers(static_cast<std::size_t>(pp), 0);
  for (std::size_t s = 0; s < stage_layers.size(); ++s) rank_layers[s % rank_layers.size()] += stage_layers[s];

  Seconds sum = 0;
  for (int step = 0; step < steps; ++step) {
    const LeastWork& least = shared.least[static_cast<std::size_t>(step)][recompute ? 1 : 0];
    const auto [gathers, scatters] = exchanges.sums[static_cast<std::size_t>(step)];
    const auto [gather, scatter] = exchanges.least[static_cast<std::size_t>(step)];
    const Seconds work = least.work + gathers * (recompute ? 2 : 1) + scatters;
    const Seconds shortest = least.shortest_forward + least.shortest_backward + gather * (recompute ? 2 : 1) + scatter;
    Seconds bound = 0;
    int layers_before = 0;  // of the first virtual stages of the ranks before
    for (int rank = 0; rank < pp; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Seconds own = work * rank_layers[r] + (rank + 1 == pp ? least.head : 0);
      bound = std::max(bound, own / choice.dims.dp + layers_before * shortest);
      layers_before += stage_layers[r];
    }
    sum += bound;
  }
  return sum;
}

}  // namespace ballast
