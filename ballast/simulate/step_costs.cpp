#include "ballast/simulate/step_costs.h"

#include <algorithm>
#include <utility>

#include "ballast/cost/stage_parameters.h"
#include "ballast/spec/mesh_order.h"

namespace ballast {

namespace {

constexpr Bytes kControlBytes = 8;  // a digest
constexpr Bytes kNormBytes = 16;    // loss and squared gradient norm, in double precision
constexpr std::array<Pass, 2> kPasses = {Pass::forward, Pass::backward};

// Of a token's keys and values in a layer; summed in the gradients' wider type.
Bytes kv_gradient_bytes(const ModelSpec& model, const ProgramSettings& settings) {
  return Bytes{2} * model.num_kv_heads * model.head_dim * settings.gradient_bytes / settings.tensor_parallel;
}

class Pricing {
 public:
  Pricing(const ParallelDims& dims, const std::vector<int>& stage_layers, const ModelSpec& model, const CostModel& cost,
          const ProgramSettings& settings)
      : dims_(dims),
        stage_layers_(stage_layers),
        model_(model),
        cost_(cost),
        settings_(settings),
        replicas_(dims.dp * dims.cp) {}

  TransferCost background(SpanKind kind, int stage, int slot) const {
    const bool gathers = kind == SpanKind::UNSHARD;
    const std::int64_t layers = stage_layers_[static_cast<std::size_t>(stage)];
    const std::int64_t besides =
        stage_parameters(model_, stage_layers_, stage, dims_.pp) - layers * model_.layer_parameters();
    const std::int64_t last_slot = std::max<std::int64_t>(1, layers) - 1;
    const bool carries = stage == 0 ? slot == 0 : slot == last_slot;
    const std::int64_t parameters = (layers > 0 ? model_.layer_parameters() : 0) + (carries ? besides : 0);
    const Bytes bytes =
        parameters / settings_.tensor_parallel * (gathers ? settings_.weight_bytes : settings_.gradient_bytes);
    return {
        gathers ? bytes / replicas_ * (replicas_ - 1) : bytes - bytes / replicas_,
        cost_.collective(gathers ? Collective::all_gather : Collective::reduce_scatter, Axis::dp_cp, replicas_, bytes)};
  }

  ClosingCosts closing(int pp) const {
    const std::int64_t parameters = rank_parameters(model_, stage_layers_, pp, dims_.pp) / settings_.tensor_parallel;
    ClosingCosts costs{.holds_tied = model_.tied_head && (pp == 0 || pp == dims_.pp - 1),
                       .reduce_tied = {},
                       .reduce_gradients = {},
                       .optimizer = cost_.optimizer(settings_.zero > 0 ? parameters / replicas_ : parameters)};
    if (costs.holds_tied) {
      costs.reduce_tied =
          all_reduce(Axis::tied, dims_.pp > 1 ? 2 : 1,
                     model_.embedding_parameters() / settings_.tensor_parallel * settings_.gradient_bytes);
    }
    if (settings_.zero == 0) {
      costs.reduce_gradients = all_reduce(Axis::dp_cp, replicas_, parameters * settings_.gradient_bytes);
    }
    return costs;
  }

  TransferCost all_reduce(Axis axis, int ranks, Bytes bytes) const {
    return {bytes, cost_.collective(Collective::all_reduce, axis, ranks, bytes)};
  }

 private:
  const ParallelDims& dims_;
  const std::vector<int>& stage_layers_;
  const ModelSpec& model_;
  const CostModel& cost_;
  const ProgramSettings& settings_;
  const int replicas_;
};

}  // namespace

ProgramSettings program_settings(const RunSpec& run) {
  const Bytes number = bytes_of(run.training.precision);
  // Gradients are accumulated in float32 even where the model computes in bfloat16.
  ProgramSettings settings{.gradient_bytes = std::max<Bytes>(4, number),
                           .weight_bytes = number,
                           .tensor_parallel = run.tensor_parallel,
                           .zero = run.zero,
                           .recompute = run.recompute == "full"};
  if (const auto& launch = run.software.layer_launch_seconds; !launch.empty()) {
    settings.layer_launch = {launch[0], launch[1]};
  }
  const MeshOrder order = parse_mesh_order(run.mapping).value_or(MeshOrder{});
  const auto rank_of = [&](double gpu) {
    return order.rank_of_gpu(run.parallel, run.tensor_parallel, static_cast<int>(gpu));
  };
  for (const auto& slow : run.faults.slow_gpus) settings.slow_ranks.push_back({rank_of(slow[0]), slow[1], 1});
  for (const auto& slow : run.faults.slow_nics) settings.slow_ranks.push_back({rank_of(slow[0]), 1, slow[1]});
  return settings;
}

int StepCosts::num_layers(int stage) const {
  const auto s = static_cast<std::size_t>(stage);
  return first_layer[s + 1] - first_layer[s];
}

int StepCosts::num_slots(int stage) const { return std::max(1, num_layers(stage)); }

double StepCosts::factor(Axis axis, int rank) const {
  const bool leaves = std::find(network_axes.begin(), network_axes.end(), axis) != network_axes.end();
  return leaves ? network_factor[static_cast<std::size_t>(rank)] : 1;
}

std::vector<ShareCosts> share_costs(const ShardPlan& shard, const CostModel& cost) {
  std::vector<ShareCosts> shares;
  const Tokens all = shard.num_tokens();
  std::shared_ptr<const std::vector<RingPass>> rings;
  if (shard.attends_in_rings()) {
    rings = std::make_shared<const std::vector<RingPass>>(ring_passes(shard, cost));
  }
  const bool in_order = rings != nullptr || shard.gathers_in_order();
  for (int rank = 0; rank < shard.num_ranks(); ++rank) {
    ShareCosts share{
        .tokens = shard.linear_tokens(rank), .all_tokens = all, .gathers_in_order = in_order, .rings = rings};
    if (rings) {
      for (std::size_t p = 0; p < 2; ++p) share.attention[p] = (*rings)[p].work()[static_cast<std::size_t>(rank)];
    } else {
      shard.for_each_block(rank, [&](const AttentionBlock& block) {
        const std::array<Seconds, 2> seconds = cost.attention_passes(block);
        for (std::size_t p = 0; p < 2; ++p) share.attention[p] += seconds[p];
      });
    }
    for (std::size_t p = 0; p < 2; ++p) {
      share.embedding[p] = cost.embedding(kPasses[p], share.tokens);
      share.layer[p] = cost.layer(kPasses[p], share.tokens);
      share.head[p] = cost.head(kPasses[p], share.tokens);
      share.tensor_exchange[p] = cost.tensor_exchange(kPasses[p], share.tokens);
    }
    shares.push_back(share);
  }
  return shares;
}

void price_kv_exchange(std::vector<ShareCosts>& shares, const ModelSpec& model, const CostModel& cost,
                       const ProgramSettings& settings) {
  if (shares.front().rings) return;  // priced with their attention
  const Tokens all = shares.front().all_tokens;
  const auto ranks = static_cast<int>(shares.size());
  std::array<Seconds, 2> kv_exchange = {
      cost.collective(Collective::all_gather, Axis::cp, ranks, all * cost.kv_bytes_per_token()),
      cost.collective(Collective::reduce_scatter, Axis::cp, ranks, all * kv_gradient_bytes(model, settings))};
  if (!shares.front().gathers_in_order) {
    for (std::size_t p = 0; p < 2; ++p) kv_exchange[p] += cost.reorder(kPasses[p], all);
  }
  for (ShareCosts& share : shares) share.kv_exchange = kv_exchange;
}

void price_messages(std::vector<ShareCosts>& shares, const ParallelDims& dims, const CostModel& cost) {
  if (dims.pp == 1) return;
  const Bytes a_token = cost.activation_bytes_per_token();
  const ShareCosts* priced = nullptr;  // shares mostly are of the same size
  for (ShareCosts& share : shares) {
    if (share.tokens == 0) continue;  // an empty tensor is not sent at all
    share.message = priced != nullptr && priced->tokens == share.tokens
                        ? priced->message
                        : cost.collective(Collective::send, Axis::pp, 2, share.tokens * a_token);
    priced = &share;
  }
}

StepCosts step_costs(const ParallelDims& dims, const std::vector<int>& stage_layers,
                     std::vector<std::vector<std::vector<ShareCosts>>> shares, const ModelSpec& model,
                     const CostModel& cost, const ProgramSettings& settings) {
  const Pricing pricing(dims, stage_layers, model, cost, settings);
  const auto world = static_cast<std::size_t>(dims.world_size());
  StepCosts costs;
  costs.shares = std::move(shares);
  costs.compute_factor.assign(world, 1);
  costs.network_factor.assign(world, 1);
  costs.kv_gradient_bytes = kv_gradient_bytes(model, settings);
  costs.network_axes = settings.network_axes;
  for (const SlowRank& slow : settings.slow_ranks) {
    const auto rank = static_cast<std::size_t>(slow.rank);
    BALLAST_ASSERT(rank < world, "a slow rank that is none");
    costs.compute_factor[rank] = std::max(costs.compute_factor[rank], slow.compute);
    costs.network_factor[rank] = std::max(costs.network_factor[rank], slow.network);
  }
  costs.first_layer.push_back(0);
  for (const int layers : stage_layers) costs.first_layer.push_back(costs.first_layer.back() + layers);
  if (settings.zero > 0) {
    for (int stage = 0; stage < static_cast<int>(stage_layers.size()); ++stage) {
      auto& unshard = costs.unshard.emplace_back();
      auto& reshard = costs.reshard.emplace_back();
      for (int slot = 0; slot < costs.num_slots(stage); ++slot) {
        unshard.push_back(pricing.background(SpanKind::UNSHARD, stage, slot));
        reshard.push_back(pricing.background(SpanKind::RESHARD, stage, slot));
      }
    }
  }
  for (auto& pipeline : costs.shares) {
    for (std::vector<ShareCosts>& micro_batch : pipeline) {
      for (ShareCosts& share : micro_batch) {
        for (std::size_t p = 0; p < 2; ++p) {
          const Seconds all = share.layer[p] + share.attention[p] + share.tensor_exchange[p] + share.kv_exchange[p];
          share.launch_gap[p] = std::max(0.0, settings.layer_launch[p] - all);
        }
      }
    }
  }
  for (int stage = 0; stage < static_cast<int>(stage_layers.size()); ++stage) {
    costs.accumulation.push_back(
        cost.accumulation(stage_parameters(model, stage_layers, stage, dims.pp) / settings.tensor_parallel));
  }
  for (int pp = 0; pp < dims.pp; ++pp) costs.closing.push_back(pricing.closing(pp));
  costs.reduce_norm = pricing.all_reduce(Axis::world, dims.world_size(), kNormBytes);
  costs.checkpoint = settings.checkpoint_seconds;
  costs.control = pricing.all_reduce(Axis::world, dims.world_size(), kControlBytes);
  return costs;
}

StepCosts step_costs(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings) {
  std::vector<std::vector<std::vector<ShareCosts>>> shares;
  for (const auto& pipeline : plan.shard_plans) {
    auto& of_pipeline = shares.emplace_back();
    for (const ShardPlan& shard : pipeline) {
      std::vector<ShareCosts>& of_micro_batch = of_pipeline.emplace_back(share_costs(shard, cost));
      price_kv_exchange(of_micro_batch, model, cost, settings);
      price_messages(of_micro_batch, plan.dims, cost);
    }
  }
  return step_costs(plan.dims, plan.stage_layers, std::move(shares), model, cost, settings);
}

}  // namespace ballast
