#include "ballast/runtime/train/micro_batch_data.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

// Token t of document d is 100 d + t.
void read_numbered(std::int64_t id, Tokens begin, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 100 * id + begin + static_cast<Tokens>(i);
}

std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

TEST(MicroBatchData, ShiftsLabelsBeforeTheSplit) {
  const MicroBatch micro_batch{{{.id = 0, .length = 8}}};
  const ShardPlan plan{"per_sequence", {0, 8}, {{{0, 2}, {6, 8}}, {{2, 6}}}};
  const MicroBatchData data = load_micro_batch(micro_batch, plan, 0, read_numbered);
  EXPECT_EQ(values(data.tokens_T), (std::vector<std::int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(values(data.labels_T), (std::vector<std::int64_t>{1, 2, 7, kIgnoreLabel}));
}

TEST(MicroBatchData, RestartsPositionsAtEveryDocument) {
  const MicroBatch micro_batch{{{.id = 0, .length = 4}, {.id = 1, .length = 4}}};
  const ShardPlan plan{"per_document", {0, 4, 8}, {{{0, 1}, {3, 5}, {7, 8}}, {{1, 3}, {5, 7}}}};
  const MicroBatchData data = load_micro_batch(micro_batch, plan, 0, read_numbered);
  EXPECT_EQ(values(data.positions_T), (std::vector<std::int64_t>{0, 3, 0, 3}));
  EXPECT_EQ(values(data.labels_T), (std::vector<std::int64_t>{1, kIgnoreLabel, 101, kIgnoreLabel}));
}

TEST(MicroBatchData, LabelsTheLastTokenOfAPartWithTheNextOfItsDocument) {
  const MicroBatch micro_batch{{{.id = 2, .begin = 3, .length = 2, .ends = false}}};
  const MicroBatchData data = load_micro_batch(micro_batch, {"", {0, 2}, {{{0, 2}}}}, 0, read_numbered);
  EXPECT_EQ(values(data.tokens_T), (std::vector<std::int64_t>{203, 204}));
  EXPECT_EQ(values(data.labels_T), (std::vector<std::int64_t>{204, 205}));
  EXPECT_EQ(values(data.positions_T), (std::vector<std::int64_t>{0, 1}));
}

TEST(MicroBatchData, ARankWithNothingGetsEmptyTensors) {
  const MicroBatch micro_batch{{{.id = 0, .length = 0}, {.id = 1, .length = 1}}};
  const ShardPlan plan{"per_sequence", {0, 0, 1}, {{{0, 1}}, {}}};
  EXPECT_EQ(load_micro_batch(micro_batch, plan, 1, read_numbered).tokens_T.numel(), 0);
  EXPECT_EQ(values(load_micro_batch(micro_batch, plan, 0, read_numbered).tokens_T), std::vector<std::int64_t>{100});
}

}  // namespace
}  // namespace ballast
