#include "ballast/planner/make_run_plan.h"

#include <algorithm>

#include "ballast/planner/step_stream.h"

namespace ballast {

namespace {

// Where a prediction is off by more, something is not as planned: three times the mean error against published steps
// (docs/validation.md), and above it what one step differs from the next.
constexpr double kSlowerShare = 0.12;
constexpr double kLeastHeadroomShare = 0.02;
constexpr double kDriftShare = 0.15;

// Sent by the busiest GPU, by the name of the outermost tier that the group of the exchange spans.
std::map<std::string, Bytes> bytes_by_tier(const Timeline& timeline, const ClusterSpec& cluster,
                                           const ClusterMesh& mesh) {
  const auto gpu = [&](int rank) { return mesh.order.gpu(mesh.dims, mesh.tp, rank); };
  std::vector<std::vector<Bytes>> sent(static_cast<std::size_t>(mesh.dims.world_size()),
                                       std::vector<Bytes>(cluster.tiers.size(), 0));
  for (const Span& span : timeline.spans) {
    if (span.bytes == 0) continue;
    std::size_t tier = 0;
    if (span.axis == Axis::tp) {
      for (int tp = 1; tp < mesh.tp; ++tp) {
        tier = std::max(tier, cluster.tier_of(gpu(span.rank), mesh.order.gpu(mesh.dims, mesh.tp, span.rank, tp)));
      }
    } else if (span.axis != Axis::none) {
      for (const int member : axis_group(mesh.dims, span.axis, span.rank)) {
        tier = std::max(tier, cluster.tier_of(gpu(span.rank), gpu(member)));
      }
    } else if (span.peer >= 0) {
      tier = cluster.tier_of(gpu(span.rank), gpu(span.peer));
    }
    sent[static_cast<std::size_t>(span.rank)][tier] += span.bytes;
  }
  std::map<std::string, Bytes> most;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    Bytes& bytes = most[cluster.tiers[t].name];
    for (const std::vector<Bytes>& of_rank : sent) bytes = std::max(bytes, of_rank[t]);
  }
  return most;
}

}  // namespace

RunPlan make_run_plan(const RunSubject& subject, const RunPlanning& planning) {
  BALLAST_ASSERT(!planning.ranked.empty(), "nothing was chosen");
  const RankedCandidate& best = planning.ranked.front();
  const RunSpec run = with_choice(planning.run, best.choice);
  const ClusterMesh mesh = mesh_of(best.choice);
  const auto cost = make_cluster_cost(subject.device, subject.cluster, run.model, mesh, run.overlap_tp, run.software);
  StepStream stream(run, *cost,
                    DocumentStream(subject.lengths, subject.domains, {.shuffle = run.shuffle, .seed = run.seed}),
                    {.timelines = true, .network_axes = axes_across_nodes(subject.cluster, mesh)});
  const std::optional<PlannedStep> step = stream.next();
  BALLAST_ASSERT(step.has_value(), "documents come for ever");

  MemoryParts parts;
  peak_memory(run, step->plan.schedule, &parts);
  RunPlan plan{.predicted_by = cost->name(),
               .gpus = planning.run.plan.gpus,
               .choice = best.choice,
               .window = planning.run.packing.window,
               .micro_batches = run.packing.micro_batches,
               .max_tokens = run.packing.most_tokens(),
               .step_tokens = static_cast<Tokens>(best.tokens_per_second * best.step_seconds),
               .step_seconds = best.step_seconds,
               .step_spread = best.step_spread,
               .tokens_per_second = best.tokens_per_second,
               .bytes_by_tier = bytes_by_tier(step->predicted, subject.cluster, mesh),
               .memory_by_part = {},
               .memory_bytes = subject.cluster.memory_bytes,
               .headroom_bytes = subject.cluster.memory_bytes - parts.total(),
               .restart_every_steps = std::max(1, run.training.checkpoint_every),
               .triggers = {}};
  for (const auto& [name, bytes] : parts.named()) plan.memory_by_part[name] = bytes;
  plan.triggers = {{"measured over predicted step_seconds, mean of 20 steps", 1 + kSlowerShare,
                    "the machine is not what the plan was made for; `ballast diagnose` says which rank"},
                   {"mean squared document length over that of the plan's sample", 1 + kDriftShare,
                    "attention is quadratic: the data has changed, and with it what balances it"},
                   {"free over all memory of a GPU", kLeastHeadroomShare, "the next long micro-batch may not fit"},
                   {"GPUs of the run", static_cast<double>(plan.gpus), "degrees multiply to this number and no other"}};
  return plan;
}

}  // namespace ballast
