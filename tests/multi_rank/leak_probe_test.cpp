// The leak probe over a whole model on two context parallel ranks: one token is changed, and exactly the later tokens
// of its document answer differently; every other output is the same, bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "ballast/runtime/attention/engine.h"
#include "ballast/runtime/comm/thread_ranks.h"
#include "ballast/runtime/parallel/pipeline_stages.h"
#include "ballast/runtime/train/micro_batch_data.h"
#include "ballast/sharding/sharder.h"
#include "tests/multi_rank/small_run.h"

namespace ballast {
namespace {

// Output rows of every packed token, as bytes, with token `changed` of document 1 replaced (-1: none).
std::map<Tokens, std::string> outputs(const MicroBatch& micro_batch, const std::string& sharding, Tokens changed) {
  const auto cost = make_synthetic_cost(100, 1);
  const ParallelDims dims{1, 1, 2};
  const ShardPlan plan = make_shard_plan(sharding, micro_batch.cu_seqlens(), dims.cp, *cost);
  const auto read = [&](std::int64_t id, Tokens begin, std::span<std::int64_t> out) {
    read_text(id, begin, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (id == 1 && begin + static_cast<Tokens>(i) == changed) out[i] = (out[i] + 1) % kVocab;
    }
  };
  std::map<Tokens, std::string> rows;
  std::mutex mutex;
  run_thread_mesh(dims, [&](Mesh& mesh) {
    RankHooks hooks;
    SpanRecorder recorder(mesh.rank, std::chrono::steady_clock::now(), hooks);
    const PipelineStages model(small_model(false), {4}, 0, 1, Precision::float32, 3);
    const MicroBatchData data = load_micro_batch(micro_batch, plan, mesh.at.cp, read);
    const ContextAttention attention(plan, {*mesh.cp, recorder, hooks, 0, 0});
    const at::Tensor logits =
        model.stage(0).logits(model.stage(0).forward(data.tokens_T, data.positions_T, attention)).contiguous();
    const std::vector<Tokens> packed = plan.local_to_packed(mesh.at.cp);
    const std::size_t row_bytes = static_cast<std::size_t>(kVocab) * sizeof(float);
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      rows[packed[i]].assign(static_cast<const char*>(logits.const_data_ptr()) + i * row_bytes, row_bytes);
    }
  });
  return rows;
}

TEST(LeakProbe, ChangesExactlyTheLaterTokensOfTheDocument) {
  const MicroBatch micro_batch{
      {{.id = 0, .length = 37}, {.id = 1, .length = 50}, {.id = 2, .length = 1}, {.id = 3, .length = 29}}};
  constexpr Tokens kChanged = 20;  // of document 1, which begins at 37
  for (const std::string& sharding : sharding_names()) {
    const auto before = outputs(micro_batch, sharding, -1);
    const auto after = outputs(micro_batch, sharding, kChanged);
    ASSERT_EQ(before.size(), static_cast<std::size_t>(micro_batch.num_tokens()));
    for (const auto& [token, row] : before) {
      const bool later = token >= 37 + kChanged && token < 37 + 50;
      EXPECT_EQ(row != after.at(token), later) << sharding << ", packed token " << token;
    }
  }
}

}  // namespace
}  // namespace ballast
