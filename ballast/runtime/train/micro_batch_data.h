// The tokens of one micro-batch that one context parallel rank works on. Labels are shifted before the split, so the
// label of a token is the next token of its document wherever that lies, and never another document's (W1).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>

#include "ballast/ir/packed_step.h"
#include "ballast/ir/shard_plan.h"

namespace ballast {

// Fills `out` with tokens [begin, begin + out.size()) of corpus document `id`. Throws UserError where they do not
// exist.
using TokenReader = std::function<void(std::int64_t id, Tokens begin, std::span<std::int64_t> out)>;

inline constexpr std::int64_t kIgnoreLabel = -100;

struct MicroBatchData {
  at::Tensor tokens_T;     // int64
  at::Tensor labels_T;     // int64, kIgnoreLabel where there is no next token
  at::Tensor positions_T;  // int64, restarting at every document
};

// T: tokens of `cp_rank` under `plan`, in its local order.
MicroBatchData load_micro_batch(const MicroBatch& micro_batch, const ShardPlan& plan, int cp_rank,
                                const TokenReader& read);

}  // namespace ballast
