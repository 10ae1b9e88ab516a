// Predicted time of the parts of a training step. Every algorithm that compares plans asks this interface and no other,
// so "equal work" means the same thing to the packer, the sharder and the simulator (requirements W3, W6).
// Costs are of this rank's device; attention and layer are of ONE layer.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "ballast/base/units.h"
#include "ballast/cost/cp_links.h"
#include "ballast/ir/hardware_profile.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/shard_plan.h"
#include "ballast/ir/timeline.h"
#include "ballast/spec/model_spec.h"

namespace ballast {

enum class Pass { forward, backward };
enum class Collective { all_reduce, all_gather, reduce_scatter, send };

class CostModel {
 public:
  virtual ~CostModel() = default;

  // Attention of one layer over one block: queries rows that end with the block's last key (see AttentionBlock).
  virtual Seconds attention(Pass pass, const AttentionBlock& block) const = 0;
  // Forward and backward, for those who want both: the same, asked once.
  virtual std::array<Seconds, 2> attention_passes(const AttentionBlock& block) const {
    return {attention(Pass::forward, block), attention(Pass::backward, block)};
  }
  // Both together: of a block; of a whole document.
  Seconds layer_attention(const AttentionBlock& block) const;
  Seconds layer_attention(Tokens length) const;
  // Queries that all see the same keys, as in a round of a ring.
  virtual Seconds rectangle(Pass pass, Tokens queries, Tokens keys) const {
    return attention(pass, {.queries = {keys, keys + queries}, .keys = {0, keys + queries}}) -
           attention(pass, {.queries = {0, queries}, .keys = {0, queries}});
  }
  // Of queries that all see `keys` keys or, if causal, as many as there are queries, the i-th the first i.
  Seconds part_attention(Pass pass, Tokens queries, Tokens keys, bool causal) const {
    return causal ? attention(pass, {.queries = {0, queries}, .keys = {0, queries}}) : rectangle(pass, queries, keys);
  }
  // Everything of one layer that is linear in tokens.
  virtual Seconds layer(Pass pass, Tokens tokens) const = 0;
  // One indexed copy of the gathered keys and values of so many tokens into packed order, or of their gradients back.
  virtual Seconds reorder(Pass pass, Tokens tokens) const = 0;
  virtual Seconds embedding(Pass pass, Tokens tokens) const = 0;
  virtual Seconds head(Pass pass, Tokens tokens) const = 0;  // final norm, logits, loss
  virtual Seconds optimizer(std::int64_t parameters) const = 0;
  // Of the gradients of so many parameters at one backward, where that is no part of the products that give them.
  virtual Seconds accumulation(std::int64_t) const { return 0; }
  // Among the ranks of a group of `axis`; a send is to the next rank of it. `bytes` as in CollectivePoint. A group of
  // one costs nothing.
  virtual Seconds collective(Collective operation, Axis axis, int ranks, Bytes bytes) const = 0;
  // What the ranks of a tensor parallel group exchange in one layer; 0 where there is no such group.
  virtual Seconds tensor_exchange(Pass, Tokens) const { return 0; }
  // Bytes of one token's keys and values in one layer, and of one token's activation between stages.
  virtual Bytes kv_bytes_per_token() const = 0;
  virtual Bytes activation_bytes_per_token() const = 0;
  // Of one token in one layer: the gradients of keys and values, which are summed in a wider type; a token's queries.
  virtual Bytes kv_gradient_bytes_per_token() const { return kv_bytes_per_token(); }
  virtual Bytes query_bytes_per_token() const { return 0; }
  // How the ranks of the cp axis are joined. Unless a model knows better, moving bytes costs nothing.
  virtual CpLinks cp_links() const { return {}; }

  // "profile of AMD EPYC, float32" or "synthetic 24576 a token, 1 a squared token": said with every figure it yields.
  virtual std::string name() const = 0;

  // Whole model, forward and backward: the quadratic part and the part linear in tokens of one document, W_a and W_l
  // of WLB-LLM. Work of a micro-batch is their sum over its documents.
  virtual Seconds document_attention(Tokens length) const = 0;
  virtual Seconds document_linear(Tokens length) const = 0;
  Seconds document(Tokens length) const { return document_attention(length) + document_linear(length); }
  Seconds micro_batch(const MicroBatch& micro_batch) const;
};

// A document of L tokens costs a L + b L^2 (the CLI's --cost A,B), in arbitrary units called seconds. The quadratic
// part is attributed to query-key pairs; communication is free; backward is counted within: forward 1/3, backward 2/3.
std::unique_ptr<CostModel> make_synthetic_cost(double a, double b);

// From measured points, interpolated (see profile_cost.cpp for how). Throws UserError naming what the profile lacks.
std::unique_ptr<CostModel> make_profile_cost(HardwareProfile profile, const ModelSpec& model);

}  // namespace ballast
