// A cost model for placing documents: attention by pairs, linear modules by tokens, and links of stated rates.
#pragma once

#include "ballast/cost/cost_model.h"

namespace ballast::testing {

class LinkedCost final : public CostModel {
 public:
  explicit LinkedCost(CpLinks links, Seconds of_pair = 1e-8, Seconds of_token = 1e-6)
      : links_(std::move(links)), of_pair_(of_pair), of_token_(of_token) {}

  Seconds attention(Pass pass, const AttentionBlock& block) const override {
    return share(pass) * of_pair_ * static_cast<double>(attention_pairs(block));
  }
  Seconds layer(Pass pass, Tokens tokens) const override {
    return share(pass) * of_token_ * static_cast<double>(tokens);
  }
  Seconds reorder(Pass, Tokens) const override { return 0; }
  Seconds embedding(Pass, Tokens) const override { return 0; }
  Seconds head(Pass, Tokens) const override { return 0; }
  Seconds optimizer(std::int64_t) const override { return 0; }
  Seconds collective(Collective, Axis, int ranks, Bytes bytes) const override {
    return ranks > 1 ? links_.lane_latency + static_cast<double>(bytes) / links_.lane_bytes_per_second : 0;
  }
  Bytes kv_bytes_per_token() const override { return 1000; }
  Bytes kv_gradient_bytes_per_token() const override { return 2000; }
  Bytes query_bytes_per_token() const override { return 500; }
  Bytes activation_bytes_per_token() const override { return 500; }
  CpLinks cp_links() const override { return links_; }
  std::string name() const override { return "linked"; }
  Seconds document_attention(Tokens length) const override {
    const AttentionBlock whole{.queries = {0, length}, .keys = {0, length}};
    return attention(Pass::forward, whole) + attention(Pass::backward, whole);
  }
  Seconds document_linear(Tokens length) const override { return of_token_ * static_cast<double>(length); }

 private:
  static double share(Pass pass) { return pass == Pass::forward ? 1.0 / 3 : 2.0 / 3; }
  CpLinks links_;
  Seconds of_pair_;
  Seconds of_token_;
};

// Nodes of four ranks with a card each: a network ten times slower than the inside of a node.
inline CpLinks slow_network() {
  return {.ranks_per_node = 4,
          .lanes_per_node = 4,
          .lane_bytes_per_second = 1e8,
          .lane_latency = 1e-5,
          .node_bytes_per_second = 1e9,
          .node_latency = 1e-6,
          .routed = true,
          .chunk_bytes = 1 << 16};
}

}  // namespace ballast::testing
