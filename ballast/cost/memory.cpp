#include "ballast/cost/memory.h"

#include <algorithm>

#include "ballast/cost/stage_parameters.h"

namespace ballast {

Bytes MemoryParts::total() const {
  Bytes sum = 0;
  for (const auto& [name, bytes] : named()) sum += bytes;
  return sum;
}

std::vector<std::pair<std::string, Bytes>> MemoryParts::named() const {
  return {{"weights", weights}, {"gradients", gradients}, {"optimizer", optimizer}, {"activations", activations},
          {"logits", logits},   {"temporary", temporary}, {"exchange", exchange},   {"margin", margin}};
}

namespace {

// Of the optimizer, a parameter: two moments, and the weight in full where it computes in less.
Bytes optimizer_bytes(Bytes number) { return 2 * std::max<Bytes>(4, number) + (number < 4 ? 4 : 0); }

// What Ballast's trainer holds otherwise (runtime/train/executor.h): weights in full, whatever it computes in; it makes
// logits some tokens at a time and keeps none; it keeps the gathered keys and values of every layer in flight, not this
// rank's alone; the step's tokens, labels and positions; a table of rotations a micro-batch in flight; and what it sent
// to other stages, to the end of the step.
void hold_as_own_trainer(MemoryParts& parts, const RunSpec& run, const Schedule& schedule, std::int64_t parameters,
                         std::int64_t layers_in_flight, Tokens longest, Bytes number) {
  const ModelSpec& model = run.model;
  const Bytes wide = std::max<Bytes>(4, number);
  parts.weights = parts.gradients = parameters * wide;
  parts.optimizer = 2 * parameters * wide;
  const Tokens tokens = (longest + run.parallel.cp - 1) / run.parallel.cp;
  const std::int64_t micro_batches = schedule.num_micro_batches;
  const std::int64_t in_flight = std::min<std::int64_t>(schedule.num_ranks, micro_batches);
  parts.temporary += tokens * (micro_batches * 3 * 8 + in_flight * model.head_dim * wide);
  // Log-sum-exp of every head and the two norms' roots.
  parts.activations += layers_in_flight * tokens * (model.num_heads + 2) * wide;
  if (run.parallel.cp > 1) {
    parts.exchange += micro_batches * longest * 2 * 8;  // where gathered rows stand in packed order, and back
    parts.exchange += layers_in_flight * (longest - tokens) * 2 * model.num_kv_heads * model.head_dim * number;
  }
  if (run.parallel.pp > 1) {
    // And a receive that is posted ahead.
    parts.exchange += tokens * model.hidden_dim * number * (micro_batches * schedule.virtual_stages + 1);
  }
}

}  // namespace

MemoryParts memory_of_rank(const RunSpec& run, const Schedule& schedule, int pp) {
  const ModelSpec& model = run.model;
  const std::vector<int> layers = run.layers_by_stage();
  int most_layers = 0;  // of a virtual stage of this rank
  for (int stage = pp; stage < schedule.num_stages(); stage += schedule.num_ranks) {
    most_layers = std::max(most_layers, layers[static_cast<std::size_t>(stage)]);
  }
  const bool last = pp + 1 == schedule.num_ranks;
  const std::int64_t parameters = rank_parameters(model, layers, pp, schedule.num_ranks) / run.tensor_parallel;

  const Bytes number = bytes_of(run.training.precision);
  const Bytes wide = std::max<Bytes>(4, number);
  const std::int64_t replicas = std::int64_t{run.parallel.dp} * run.parallel.cp;
  const auto shared = [&](int from_stage) { return run.zero >= from_stage ? replicas : 1; };
  MemoryParts parts;
  parts.weights = parameters * number / shared(3);
  parts.gradients = parameters * wide / shared(2);
  // What adds gradients up in a pass of its own keeps them in the computing type first.
  if (run.software.accumulation_bytes > 0) parts.gradients += parameters * number;
  parts.optimizer = parameters * optimizer_bytes(number) / shared(1);

  const Tokens longest = run.packing.most_tokens();
  const Tokens tokens = (longest + run.parallel.cp - 1) / run.parallel.cp;
  // Of a layer, a token: its input, the two normed inputs and the residual between; queries, keys, values and what
  // attention gives; gate, up projection and their product. Recomputed, the input alone.
  const std::int64_t heads = std::int64_t{model.num_heads} * model.head_dim;
  const std::int64_t kv = std::int64_t{model.num_kv_heads} * model.head_dim;
  const std::int64_t hidden = model.hidden_dim;
  const std::int64_t in_full = 4 * hidden + 2 * heads + 2 * kv + 3 * model.ffn_dim;
  Bytes a_token = (run.recompute == "full" ? hidden : in_full) * number / run.tensor_parallel;
  if (!run.software.fused && run.recompute != "full") {
    // Rotation and activation keep what they compute on the way, and tensor parallelism its gathered input.
    a_token = (hidden + (11 * hidden + 4 * std::int64_t{model.ffn_dim}) / run.tensor_parallel) * number;
  }
  const Bytes a_stage = tokens * a_token * most_layers;
  parts.activations = a_stage * schedule.max_in_flight(pp);
  if (run.recompute == "full") {  // one layer at a time is there in full
    parts.activations +=
        tokens * (3 * model.hidden_dim + 2 * heads + 2 * kv + 3 * model.ffn_dim) * number / run.tensor_parallel;
  }
  if (run.software.fused)
    parts.temporary = tokens * (2 * std::int64_t{model.ffn_dim} + hidden) * number / run.tensor_parallel;
  if (run.cluster.empty()) {
    hold_as_own_trainer(parts, run, schedule, parameters, most_layers * schedule.max_in_flight(pp), longest, number);
    return parts;
  }
  if (last) parts.logits = (run.software.fused ? 2 : 3) * tokens * model.vocab_size / run.tensor_parallel * 4;
  if (run.parallel.cp > 1) parts.exchange += longest * 2 * kv / run.tensor_parallel * (number + wide);
  if (run.parallel.pp > 1) parts.exchange += 2 * tokens * model.hidden_dim * number / run.tensor_parallel;
  parts.margin = static_cast<Bytes>(kMemoryMargin * static_cast<double>(parts.total()));
  return parts;
}

Bytes checkpoint_bytes(const RunSpec& run) {
  const Bytes number = bytes_of(run.training.precision);
  return run.model.num_parameters() * (number + optimizer_bytes(number));
}

Tokens longest_micro_batch(RunSpec run, const Schedule& schedule, int pp, Bytes bytes) {
  run.packing.packer = "wlb";  // whose micro-batches are as long as max_tokens says
  const auto fits = [&](Tokens tokens) {
    run.packing.max_tokens = tokens;
    return memory_of_rank(run, schedule, pp).total() <= bytes;
  };
  Tokens least = 0;  // it fits
  Tokens most = Tokens{1} << 40;
  if (!fits(1)) return 0;
  while (least + 1 < most) {
    const Tokens middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

}  // namespace ballast
