#include "ballast/simulate/step_costs.h"

#include <algorithm>

#include "ballast/cost/stage_parameters.h"
#include "ballast/spec/mesh_order.h"

namespace ballast {

namespace {

constexpr Bytes kControlBytes = 8;  // a digest
constexpr Bytes kNormBytes = 16;    // loss and squared gradient norm, in double precision
constexpr std::array<Pass, 2> kPasses = {Pass::forward, Pass::backward};

class Pricing {
 public:
  Pricing(const StepPlan& plan, const ModelSpec& model, const CostModel& cost, const ProgramSettings& settings)
      : plan_(plan),
        model_(model),
        cost_(cost),
        settings_(settings),
        replicas_(plan.dims.dp * plan.dims.cp) {}

  // Summed in the gradients' wider type.
  Bytes kv_gradient_bytes() const {
    return Bytes{2} * model_.num_kv_heads * model_.head_dim * settings_.gradient_bytes / settings_.tensor_parallel;
  }

  std::vector<ShareCosts> shares(const ShardPlan& shard) const {
    std::vector<ShareCosts> found;
    const Tokens all = shard.num_tokens();
    std::array<Seconds, 2> kv_exchange = {
        cost_.collective(Collective::all_gather, Axis::cp, plan_.dims.cp, all * cost_.kv_bytes_per_token()),
        cost_.collective(Collective::reduce_scatter, Axis::cp, plan_.dims.cp, all * kv_gradient_bytes())};
    if (!shard.gathers_in_order()) {
      for (std::size_t p = 0; p < 2; ++p) kv_exchange[p] += cost_.reorder(kPasses[p], all);
    }
    for (int rank = 0; rank < shard.num_ranks(); ++rank) {
      ShareCosts share{.tokens = shard.num_tokens(rank), .all_tokens = all, .kv_exchange = kv_exchange};
      shard.for_each_block(rank, [&](const AttentionBlock& block) {
        for (std::size_t p = 0; p < 2; ++p) share.attention[p] += cost_.attention(kPasses[p], block);
      });
      for (std::size_t p = 0; p < 2; ++p) {
        share.embedding[p] = cost_.embedding(kPasses[p], share.tokens);
        share.layer[p] = cost_.layer(kPasses[p], share.tokens);
        share.head[p] = cost_.head(kPasses[p], share.tokens);
        share.tensor_exchange[p] = cost_.tensor_exchange(kPasses[p], share.tokens);
      }
      // An empty tensor is not sent at all.
      const Bytes bytes = share.tokens * cost_.activation_bytes_per_token();
      if (bytes > 0 && plan_.dims.pp > 1) share.message = cost_.collective(Collective::send, Axis::pp, 2, bytes);
      found.push_back(share);
    }
    return found;
  }

  Transfer background(SpanKind kind, int stage, int slot) const {
    const bool gathers = kind == SpanKind::UNSHARD;
    const std::int64_t layers = plan_.stage_layers[static_cast<std::size_t>(stage)];
    const std::int64_t besides =
        stage_parameters(model_, plan_.stage_layers, stage, plan_.dims.pp) - layers * model_.layer_parameters();
    const std::int64_t last_slot = std::max<std::int64_t>(1, layers) - 1;
    const bool carries = stage == 0 ? slot == 0 : slot == last_slot;
    const std::int64_t parameters = (layers > 0 ? model_.layer_parameters() : 0) + (carries ? besides : 0);
    const Bytes bytes =
        parameters / settings_.tensor_parallel * (gathers ? settings_.weight_bytes : settings_.gradient_bytes);
    return {gathers ? bytes / replicas_ * (replicas_ - 1) : bytes - bytes / replicas_,
            cost_.collective(gathers ? Collective::all_gather : Collective::reduce_scatter, Axis::dp_cp, replicas_,
                             bytes)};
  }

  ClosingCosts closing(int pp) const {
    const ParallelDims& dims = plan_.dims;
    const std::int64_t parameters =
        rank_parameters(model_, plan_.stage_layers, pp, dims.pp) / settings_.tensor_parallel;
    ClosingCosts costs{.holds_tied = model_.tied_head && (pp == 0 || pp == dims.pp - 1),
                       .reduce_tied = {},
                       .reduce_gradients = {},
                       .optimizer = cost_.optimizer(settings_.zero > 0 ? parameters / replicas_ : parameters)};
    if (costs.holds_tied) {
      costs.reduce_tied = all_reduce(
          Axis::tied, dims.pp > 1 ? 2 : 1,
          model_.embedding_parameters() / settings_.tensor_parallel * settings_.gradient_bytes);
    }
    if (settings_.zero == 0) {
      costs.reduce_gradients = all_reduce(Axis::dp_cp, replicas_, parameters * settings_.gradient_bytes);
    }
    return costs;
  }

  Transfer all_reduce(Axis axis, int ranks, Bytes bytes) const {
    return {bytes, cost_.collective(Collective::all_reduce, axis, ranks, bytes)};
  }

 private:
  const StepPlan& plan_;
  const ModelSpec& model_;
  const CostModel& cost_;
  const ProgramSettings& settings_;
  const int replicas_;
};

}  // namespace

ProgramSettings program_settings(const RunSpec& run) {
  // Gradients are accumulated in float32 even where the model computes in bfloat16.
  const bool wide = run.training.precision == Precision::float64;
  ProgramSettings settings{.gradient_bytes = wide ? 8 : 4,
          .weight_bytes = wide                                            ? 8
                          : run.training.precision == Precision::bfloat16 ? 2
                                                                          : 4,
          .tensor_parallel = run.tensor_parallel,
          .zero = run.zero,
          .recompute = run.recompute == "full"};
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

StepCosts step_costs(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                     const ProgramSettings& settings) {
  const Pricing pricing(plan, model, cost, settings);
  const ParallelDims& dims = plan.dims;
  const auto world = static_cast<std::size_t>(dims.world_size());
  StepCosts costs;
  costs.compute_factor.assign(world, 1);
  costs.network_factor.assign(world, 1);
  costs.kv_gradient_bytes = pricing.kv_gradient_bytes();
  costs.network_axes = settings.network_axes;
  for (const SlowRank& slow : settings.slow_ranks) {
    const auto rank = static_cast<std::size_t>(slow.rank);
    BALLAST_ASSERT(rank < world, "a slow rank that is none");
    costs.compute_factor[rank] = std::max(costs.compute_factor[rank], slow.compute);
    costs.network_factor[rank] = std::max(costs.network_factor[rank], slow.network);
  }
  for (const auto& pipeline : plan.shard_plans) {
    auto& of_pipeline = costs.shares.emplace_back();
    for (const ShardPlan& shard : pipeline) of_pipeline.push_back(pricing.shares(shard));
  }
  costs.first_layer.push_back(0);
  for (const int layers : plan.stage_layers) costs.first_layer.push_back(costs.first_layer.back() + layers);
  if (settings.zero > 0) {
    for (int stage = 0; stage < static_cast<int>(plan.stage_layers.size()); ++stage) {
      auto& unshard = costs.unshard.emplace_back();
      auto& reshard = costs.reshard.emplace_back();
      for (int slot = 0; slot < costs.num_slots(stage); ++slot) {
        unshard.push_back(pricing.background(SpanKind::UNSHARD, stage, slot));
        reshard.push_back(pricing.background(SpanKind::RESHARD, stage, slot));
      }
    }
  }
  for (int pp = 0; pp < dims.pp; ++pp) costs.closing.push_back(pricing.closing(pp));
  costs.reduce_norm = pricing.all_reduce(Axis::world, dims.world_size(), kNormBytes);
  costs.control = pricing.all_reduce(Axis::world, dims.world_size(), kControlBytes);
  return costs;
}

}  // namespace ballast
