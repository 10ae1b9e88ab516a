#include "ballast/runtime/train/micro_batch_data.h"

#include <ATen/ops/empty.h>

#include <vector>

namespace ballast {

MicroBatchData load_micro_batch(const MicroBatch& micro_batch, const ShardPlan& plan, int cp_rank,
                                const TokenReader& read) {
  const auto num_local = plan.linear_tokens(cp_rank);
  MicroBatchData data{at::empty({num_local}, at::kLong), at::empty({num_local}, at::kLong),
                      at::empty({num_local}, at::kLong)};
  auto* tokens = data.tokens_T.mutable_data_ptr<std::int64_t>();
  auto* labels = data.labels_T.mutable_data_ptr<std::int64_t>();
  auto* positions = data.positions_T.mutable_data_ptr<std::int64_t>();

  std::size_t at = 0;  // next local row
  std::vector<std::int64_t> text;
  for (const AttentionBlock& block : plan.linear_blocks(cp_rank)) {
    const Document& from = micro_batch.documents[plan.document_of(block.queries.begin)];
    const Tokens first = block.queries.begin - block.keys.begin;  // position inside the document
    const auto count = static_cast<std::size_t>(block.queries.size());
    // One token more than the block where there is one: the label of its last row.
    const bool labelled_to_end = first + block.queries.size() < from.length || !from.ends;
    text.resize(count + (labelled_to_end ? 1 : 0));
    read(from.id, from.begin + first, text);
    for (std::size_t i = 0; i < count; ++i, ++at) {
      tokens[at] = text[i];
      labels[at] = i + 1 < text.size() ? text[i + 1] : kIgnoreLabel;
      positions[at] = first + static_cast<Tokens>(i);
    }
  }
  return data;
}

}  // namespace ballast
