#include "ballast/planner/step_estimator.h"

#include <algorithm>
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

ClusterMesh mesh_of(const RunChoice& choice) {
  return {.dims = choice.dims, .tp = choice.tp, .order = choice.mapping};
}

struct StepEstimator::Packed {
  std::string key;
  std::unique_ptr<CostModel> cost;  // that the packer weighs documents by
  std::unique_ptr<DocumentStream> documents;
  std::unique_ptr<PackedStream> stream;
  std::vector<PackedStep> steps;
  std::vector<std::vector<Seconds>> seconds;  // of micro-batches, by step
};

struct StepEstimator::Shards {
  std::unique_ptr<CostModel> cost;
  std::vector<std::vector<std::vector<ShareCosts>>> shares;  // [step][micro-batch][cp], exchanges not priced
};

StepEstimator::StepEstimator(const RunSubject& subject, int skip) : subject_(subject), skip_(skip) {}
StepEstimator::~StepEstimator() = default;

const DeviceCost& StepEstimator::device_cost(int tp) {
  auto& cost = device_costs_[tp];
  if (!cost) cost = std::make_shared<DeviceCost>(subject_.device, subject_.run.model, tp);
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
  const std::string name = key({choice.packer, text(choice.windows), text(choice.tp), text(choice.mapping.stride(MeshAxis::tp, choice.dims, choice.tp))});
  std::unique_ptr<Packed>& found = packed_[name];
  if (!found) {
    const RunSpec run = with_choice(subject_.run, choice);
    found = std::make_unique<Packed>();
    found->key = name;
    found->cost = cluster_cost(choice);
    found->documents = std::make_unique<DocumentStream>(
        subject_.lengths, subject_.domains,
        StreamOrder{.shuffle = run.shuffle, .seed = run.seed, .num_epochs = run.epochs, .num_documents = run.documents});
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
  std::unique_ptr<Shards>& found = shards_[key({from.key, text(choice.dims.cp), choice.sharding,
                                                text(choice.mapping.stride(MeshAxis::cp, choice.dims, choice.tp))})];
  if (!found) {
    found = std::make_unique<Shards>();
    found->cost = cluster_cost(choice);
  }
  while (static_cast<int>(found->shares.size()) < steps) {
    auto& of_step = found->shares.emplace_back();
    for (const MicroBatch& micro_batch : from.steps[found->shares.size() - 1].micro_batches) {
      const ShardPlan shard =
          make_shard_plan(choice.sharding, micro_batch.cu_seqlens(), choice.dims.cp, *found->cost);
      of_step.push_back(share_costs(shard, *found->cost));
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
  const Packed& from = packed(choice, steps);
  const std::vector<int> stage_layers = run.layers_by_stage();
  std::vector<StepEstimate> found;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<std::vector<ShareCosts>>> shares;
    for (const auto& pipeline : order(choice, step)) {
      auto& of_pipeline = shares.emplace_back();
      for (const std::size_t m : pipeline) {
        of_pipeline.push_back(shared.shares[static_cast<std::size_t>(step)][m]);
        price_exchanges(of_pipeline.back(), choice.dims, run.model, *cost, settings);
      }
    }
    const StepTime time = fast_step(choice.dims, schedule(choice),
                                    step_costs(choice.dims, stage_layers, std::move(shares), run.model, *cost, settings),
                                    settings)
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
  const RunSpec run = with_choice(subject_.run, choice);
  const std::vector<int> stage_layers = run.layers_by_stage();
  const bool recompute = run.recompute == "full";
  const int pp = choice.dims.pp;
  std::vector<int> rank_layers(static_cast<std::size_t>(pp), 0);
  for (std::size_t s = 0; s < stage_layers.size(); ++s) rank_layers[s % rank_layers.size()] += stage_layers[s];

  Seconds sum = 0;
  for (int step = 0; step < steps; ++step) {
    Seconds work = 0;  // of a layer, forward and backward, over all micro-batches
    Seconds head = 0;
    Seconds shortest_forward = std::numeric_limits<Seconds>::max();  // of a layer in one micro-batch
    Seconds shortest_backward = std::numeric_limits<Seconds>::max();
    for (const std::vector<ShareCosts>& shares : shared.shares[static_cast<std::size_t>(step)]) {
      Seconds slowest = 0;
      Seconds slowest_forward = 0;
      Seconds slowest_backward = 0;
      Seconds slowest_head = 0;
      for (const ShareCosts& share : shares) {
        const Seconds forward = share.layer[0] + share.tensor_exchange[0] + share.attention[0];
        const Seconds backward =
            share.layer[1] + share.tensor_exchange[1] + share.attention[1] + (recompute ? forward : 0);
        slowest = std::max(slowest, forward + backward);
        slowest_forward = std::max(slowest_forward, forward);
        slowest_backward = std::max(slowest_backward, backward);
        slowest_head = std::max(slowest_head, share.head[0] + share.head[1]);
      }
      work += slowest;
      head += slowest_head;
      shortest_forward = std::min(shortest_forward, slowest_forward);
      shortest_backward = std::min(shortest_backward, slowest_backward);
    }
    Seconds bound = 0;
    int layers_before = 0;  // of the first virtual stages of the ranks before
    for (int rank = 0; rank < pp; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      Seconds own = work * rank_layers[r];
      if (rank + 1 == pp) own += head;
      bound = std::max(bound, own / choice.dims.dp + layers_before * (shortest_forward + shortest_backward));
      layers_before += stage_layers[r];
    }
    sum += bound;
  }
  return sum;
}

}  // namespace ballast
