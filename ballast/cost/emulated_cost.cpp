#include "ballast/cost/emulated_cost.h"

#include <algorithm>
#include <utility>

namespace ballast {

namespace {

class EmulatedCost final : public CostModel {
 public:
  EmulatedCost(std::shared_ptr<const DeviceCost> device, EmulationSpec emulation, const ModelSpec& run,
               Bytes bytes_per_number, bool routed)
      : device_(std::move(device)),
        compute_(device_->compute()),
        emulation_(std::move(emulation)),
        run_(run),
        bytes_per_number_(bytes_per_number) {
    const auto data_rate = [&](double bits_per_second) { return bits_per_second / 8 * emulation_.card_efficiency; };
    links_.ranks_per_node = emulation_.nodes > 1 ? emulation_.ranks_per_node : 0;
    links_.lanes_per_node = emulation_.cards_per_node;
    links_.lane_bytes_per_second = data_rate(emulation_.card_bits_per_second);
    for (const double rate : emulation_.card_rates) links_.lane_rates.push_back(data_rate(rate));
    links_.lane_latency = emulation_.card_latency;
    links_.node_bytes_per_second = emulation_.node_bytes_per_second;
    links_.node_latency = emulation_.node_latency;
    links_.routed = routed;
  }

  Seconds attention(Pass pass, const AttentionBlock& block) const override {
    const Tokens queries = block.queries.size() * emulation_.token_scale;
    const Tokens keys = block.keys.size() * emulation_.token_scale;
    return emulation_.dilation * compute_.attention(pass, {.queries = {keys - queries, keys}, .keys = {0, keys}});
  }
  Seconds layer(Pass pass, Tokens tokens) const override {
    return tokens > 0 ? emulation_.dilation * compute_.layer(pass, tokens * emulation_.token_scale) : 0;
  }
  Seconds reorder(Pass, Tokens) const override { return 0; }
  Seconds embedding(Pass, Tokens) const override { return 0; }
  Seconds head(Pass, Tokens) const override { return 0; }
  Seconds optimizer(std::int64_t) const override { return 0; }

  // Every member sends to every other at once (runtime/comm/pairwise.h); an all-reduce of more than a little, in two
  // phases.
  Seconds collective(Collective operation, Axis, int ranks, Bytes bytes) const override {
    if (ranks <= 1) return 0;
    if (operation == Collective::send) return message_cost(links_, 0, links_.ranks_per_node, bytes).total();
    const int in_node = links_.ranks_per_node > 0 ? std::min(ranks, links_.ranks_per_node) : ranks;
    const double piece = static_cast<double>(bytes) / ranks;
    const double share_a_lane = static_cast<double>(in_node) / std::min(in_node, links_.lanes_per_node);
    double slowest_lane = links_.lane_bytes_per_second;
    for (const double rate : links_.lane_rates) slowest_lane = std::min(slowest_lane, rate);
    const Seconds inside = piece * (in_node - 1) / links_.node_bytes_per_second;
    const Seconds across = ranks > in_node ? piece * (ranks - in_node) * share_a_lane / slowest_lane : 0;
    const Seconds latency = ranks > in_node ? links_.lane_latency : links_.node_latency;
    const double phases = operation == Collective::all_reduce ? 2 : 1;
    return phases * (std::max(inside, across) + latency);
  }

  Bytes kv_bytes_per_token() const override { return 2L * run_.num_kv_heads * run_.head_dim * bytes_per_number_; }
  Bytes kv_gradient_bytes_per_token() const override {
    return 2L * run_.num_kv_heads * run_.head_dim * std::max<Bytes>(4, bytes_per_number_);
  }
  Bytes query_bytes_per_token() const override {
    return static_cast<Bytes>(run_.num_heads) * run_.head_dim * bytes_per_number_;
  }
  Bytes activation_bytes_per_token() const override { return static_cast<Bytes>(run_.hidden_dim) * bytes_per_number_; }
  CpLinks cp_links() const override { return links_; }

  std::string name() const override {
    return "emulated " + device_->device() + " running " + emulation_.model + ", on " + emulation_.name;
  }

  Seconds document_attention(Tokens length) const override { return run_.num_layers * layer_attention(length); }
  Seconds document_linear(Tokens length) const override {
    constexpr Tokens kTypicalTokens = 8192;
    const Tokens tokens = kTypicalTokens / emulation_.token_scale + 1;
    return run_.num_layers * (layer(Pass::forward, tokens) + layer(Pass::backward, tokens)) *
           static_cast<double>(length) / static_cast<double>(tokens);
  }

 private:
  std::shared_ptr<const DeviceCost> device_;
  const CostModel& compute_;  // the device's
  EmulationSpec emulation_;
  ModelSpec run_;
  Bytes bytes_per_number_;
  CpLinks links_;
};

}  // namespace

std::unique_ptr<CostModel> make_emulated_cost(std::shared_ptr<const DeviceCost> device, const EmulationSpec& emulation,
                                              const ModelSpec& run, Bytes bytes_per_number, bool routed) {
  return std::make_unique<EmulatedCost>(std::move(device), emulation, run, bytes_per_number, routed);
}

}  // namespace ballast
