#include "ballast/ir/step_plan.h"

#include <cstring>

#include "ballast/base/digest.h"

namespace ballast {

PackedStep StepPlan::packed() const {
  PackedStep all{step, {}};
  for (const auto& pipeline : micro_batches) {
    all.micro_batches.insert(all.micro_batches.end(), pipeline.begin(), pipeline.end());
  }
  return all;
}

Tokens StepPlan::num_tokens() const {
  Tokens sum = 0;
  for (const auto& pipeline : micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) sum += micro_batch.num_tokens();
  }
  return sum;
}

Tokens StepPlan::num_labels() const {
  Tokens sum = 0;
  for (const auto& pipeline : micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) sum += micro_batch.num_labels();
  }
  return sum;
}

std::uint64_t StepPlan::digest() const {
  std::uint64_t hash = ballast::digest("step plan");
  const auto mix = [&](std::int64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    hash = ballast::digest({bytes, sizeof bytes}, hash);
  };
  mix(step);
  mix(dims.dp);
  mix(dims.pp);
  mix(dims.cp);
  for (const int layers : stage_layers) mix(layers);
  for (std::size_t d = 0; d < micro_batches.size(); ++d) {
    for (std::size_t m = 0; m < micro_batches[d].size(); ++m) {
      for (const Document& document : micro_batches[d][m].documents) {
        mix(document.id);
        mix(document.begin);
        mix(document.length);
        mix(document.ends ? 1 : 0);
      }
      mix(-1);
      for (const auto& ranges : shard_plans[d][m].ranges) {
        for (const TokenRange& range : ranges) {
          mix(range.begin);
          mix(range.end);
        }
        mix(-2);
      }
      mix(static_cast<std::int64_t>(shard_plans[d][m].exchange));
      mix(shard_plans[d][m].ranks_per_node);
      for (const Ring& ring : shard_plans[d][m].rings) {
        for (const int rank : ring.ranks) mix(rank);
        mix(-4);
        for (const std::size_t document : ring.documents) mix(static_cast<std::int64_t>(document));
        mix(-5);
      }
      for (const TokenMove& move : shard_plans[d][m].moves) {
        mix(move.from);
        mix(move.to);
        mix(move.tokens);
      }
    }
    mix(-3);
  }
  return ballast::digest(to_string(schedule), hash);
}

Violations StepPlan::violations() const {
  Violations found = dims.violations();
  if (!found.empty()) return found;
  const std::string where = "step " + std::to_string(step) + ": ";
  const auto dp = static_cast<std::size_t>(dims.dp);
  if (micro_batches.size() != dp || shard_plans.size() != dp) {
    return {where + "micro-batches are not given for dp = " + std::to_string(dims.dp) + " pipelines"};
  }
  if (schedule.num_ranks != dims.pp) {
    return {where + "the schedule is for " + std::to_string(schedule.num_ranks) + " pipeline ranks, not " +
            std::to_string(dims.pp)};
  }
  if (static_cast<int>(stage_layers.size()) != schedule.num_stages()) {
    return {where + "layers are given for " + std::to_string(stage_layers.size()) + " stages, not " +
            std::to_string(schedule.num_stages())};
  }
  for (std::size_t stage = 0; stage < stage_layers.size(); ++stage) {
    const bool at_an_end = stage == 0 || stage + 1 == stage_layers.size();  // the embedding or the head is its work
    if (stage_layers[stage] < (at_an_end ? 0 : 1)) found.push_back(where + "a stage has no layer");
  }
  for (std::string& text : schedule.violations()) found.push_back(where + text);
  const auto num_micro_batches = static_cast<std::size_t>(schedule.num_micro_batches);
  for (std::size_t d = 0; d < dp; ++d) {
    if (micro_batches[d].size() != num_micro_batches || shard_plans[d].size() != num_micro_batches) {
      found.push_back(where + "pipeline " + std::to_string(d) + " has " + std::to_string(micro_batches[d].size()) +
                      " micro-batches and " + std::to_string(shard_plans[d].size()) +
                      " shard plans; the schedule has " + std::to_string(num_micro_batches));
      continue;
    }
    for (std::size_t m = 0; m < num_micro_batches; ++m) {
      const std::string which = where + "pipeline " + std::to_string(d) + " micro-batch " + std::to_string(m) + ": ";
      const ShardPlan& plan = shard_plans[d][m];
      for (const Document& document : micro_batches[d][m].documents) {
        for (const std::string& text : document.violations()) found.push_back(which + text);
      }
      if (plan.num_ranks() != dims.cp) {
        found.push_back(which + "sharded over " + std::to_string(plan.num_ranks()) + " ranks, not " +
                        std::to_string(dims.cp));
      }
      if (plan.cu_seqlens != micro_batches[d][m].cu_seqlens()) {
        found.push_back(which + "the shard plan has other document boundaries than the micro-batch");
      }
      for (const std::string& text : plan.violations()) found.push_back(which + text);
    }
  }
  return found;
}

}  // namespace ballast
