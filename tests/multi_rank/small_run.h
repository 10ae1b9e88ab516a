// A small run over made-up documents, shared by the tests that train on several ranks.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ballast/base/random.h"
#include "ballast/cost/cost_model.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/planner/make_step_plan.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

inline constexpr int kVocab = 61;

inline ModelSpec small_model(bool tied) {
  return {.num_layers = 4,
          .hidden_dim = 24,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 6,
          .ffn_dim = 40,
          .vocab_size = kVocab,
          .tied_head = tied};
}

// Documents of 1 token and of many, none divisible by anything.
inline std::vector<Tokens> document_lengths() {
  return {1, 97, 1, 13, 5, 160, 3, 1, 31, 7, 2, 89, 1, 1, 45, 11, 0, 63, 127, 17, 1, 29, 150, 9, 4, 71, 33, 1, 58, 101};
}

inline void read_text(std::int64_t id, Tokens begin, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Random random(mix_seed(static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(begin) + i));
    out[i] = static_cast<std::int64_t>(random.below(kVocab));
  }
}

inline RunSpec small_run(const ParallelDims& dims, int virtual_stages, const std::string& packer,
                         const std::string& sharding) {
  RunSpec spec;
  spec.seed = 3;
  spec.model = small_model(false);
  spec.parallel = dims;
  spec.schedule = {virtual_stages > 1 ? "interleaved" : "1f1b", virtual_stages};
  spec.packing.packer = packer;
  spec.packing.window = 160;
  spec.packing.max_tokens = 240;
  spec.packing.micro_batches = 4;
  if (packer == "wlb") spec.packing.queues = {100};
  spec.sharding = sharding;
  spec.training.precision = Precision::float64;
  return spec;
}

// Every dp x pp x cp of {1, 2, 4} on up to 8 ranks.
inline std::vector<ParallelDims> layouts() {
  std::vector<ParallelDims> all;
  for (const int dp : {1, 2, 4}) {
    for (const int pp : {1, 2, 4}) {
      for (const int cp : {1, 2, 4}) {
        if (dp * pp * cp <= 8) all.push_back({dp, pp, cp});
      }
    }
  }
  return all;
}

inline std::string layout_name(const testing::TestParamInfo<ParallelDims>& test) {
  return "dp" + std::to_string(test.param.dp) + "pp" + std::to_string(test.param.pp) + "cp" +
         std::to_string(test.param.cp);
}

// The small model's 4 layers over 2 virtual stages a rank.
inline bool can_interleave(const ParallelDims& dims) { return dims.pp * 2 <= 4; }

// The first steps of a spec's plan, over documents that come again and again.
inline std::vector<StepPlan> plans(const RunSpec& spec, int num_steps) {
  const auto cost = make_synthetic_cost(100, 1);
  const std::vector<Tokens> lengths = document_lengths();
  std::int64_t next = 0;
  PackedStream stream(spec.packing, *cost, [&]() -> std::optional<Document> {
    const auto id = next++ % static_cast<std::int64_t>(lengths.size());
    return Document{.id = id, .length = lengths[static_cast<std::size_t>(id)]};
  });
  std::vector<StepPlan> result;
  while (static_cast<int>(result.size()) < num_steps) {
    result.push_back(make_step_plan(*stream.next(), step_plan_settings(spec), *cost));
    require_valid(result.back().violations(), "test plan");
  }
  return result;
}

}  // namespace ballast
