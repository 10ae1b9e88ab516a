// Time from measured points. How each part is read off them:
//
// Attention. The kernel engine runs the block of a document as a full block (every query sees every key) over the keys
// before the block's first query, and a causal block on the diagonal; so does the prediction. A point gives the
// achieved rate, query-key pairs a second; the rate is interpolated linearly in the logarithm of the sizes: along the
// keys of each measured query count, then between the two nearest query counts. Outside the measured sizes the rate of
// the nearest measured size holds, so time grows with the exact number of pairs however long a document is. No block
// costs less than `attention_block_overhead`.
//
// Linear parts. Time, linear in tokens between points; beyond the last point its time a token holds.
//
// Collectives. Time, linear in bytes between points; below the first its time is latency and holds, beyond the last its
// bandwidth holds. The share of the bytes that a ring moves, (n-1)/n of a gather or reduce-scatter and 2(n-1)/n of an
// all-reduce, is taken out before interpolating between the measured numbers of ranks; outside them the nearest holds.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "ballast/base/error.h"
#include "ballast/cost/cost_model.h"
#include "ballast/cost/curve.h"

namespace ballast {

namespace {

constexpr std::array<const char*, 4> kCollectiveNames = {"all_reduce", "all_gather", "reduce_scatter", "send"};
constexpr std::array<const char*, 4> kLinearParts = {"layer", "embedding", "head", "reorder"};
constexpr std::size_t kReorder = 3;  // profiles may lack it: it then costs nothing

// Share of `bytes` that a rank sends in a ring of n.
double ring_factor(Collective operation, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case Collective::all_reduce:
      return 2 * share;
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return share;
    case Collective::send:
      return 1;
  }
  return 1;
}

// Curves by a second, coarser coordinate; linear between the two nearest, the nearest one outside.
double between(const std::map<double, Curve>& curves, double at, const auto& value_of) {
  const auto above = curves.lower_bound(at);
  if (above == curves.begin()) return value_of(above->second);
  const auto below = std::prev(above);
  if (above == curves.end()) return value_of(below->second);
  const double share = (at - below->first) / (above->first - below->first);
  return (1 - share) * value_of(below->second) + share * value_of(above->second);
}

// Achieved rate of one kind of attention block in one pass.
class AttentionRate {
 public:
  void add(double log_queries, double log_keys, double pairs_per_second) {
    points_[log_queries].emplace_back(log_keys, pairs_per_second);
  }
  void finish() {
    for (auto& [log_queries, points] : points_) curves_.emplace(log_queries, Curve(std::move(points)));
    points_.clear();
  }
  bool empty() const { return curves_.empty(); }
  double at(double log_queries, double log_keys) const {
    return between(curves_, log_queries, [&](const Curve& curve) { return curve.at(log_keys); });
  }

 private:
  std::map<double, std::vector<std::pair<double, double>>> points_;
  std::map<double, Curve> curves_;
};

struct PassRates {
  AttentionRate full;    // by queries and keys
  AttentionRate causal;  // by queries alone: keys are the same rows
};

class ProfileCost final : public CostModel {
 public:
  ProfileCost(HardwareProfile profile, const ModelSpec& model) : profile_(std::move(profile)), model_(model) {
    require_valid(profile_.violations(), "profile of " + profile_.key.device);
    read_attention();
    read_linear();
    read_collectives();
    if (profile_.key.precision == "float64")
      bytes_per_number_ = 8;
    else if (profile_.key.precision == "float32")
      bytes_per_number_ = 4;
    else if (profile_.key.precision == "bfloat16")
      bytes_per_number_ = 2;
    else
      throw lacks("key.precision among float64, float32, bfloat16: it has \"" + profile_.key.precision + "\"");
  }

  Seconds attention(Pass pass, const AttentionBlock& block) const override {
    if (block.queries.size() <= 0) return 0;
    return attention(pass, Shape(block));
  }
  std::array<Seconds, 2> attention_passes(const AttentionBlock& block) const override {
    if (block.queries.size() <= 0) return {0, 0};
    const Shape shape(block);
    return {attention(Pass::forward, shape), attention(Pass::backward, shape)};
  }

  Seconds layer(Pass pass, Tokens tokens) const override { return linear(0, pass, tokens); }
  Seconds embedding(Pass pass, Tokens tokens) const override { return linear(1, pass, tokens); }
  Seconds head(Pass pass, Tokens tokens) const override { return linear(2, pass, tokens); }

  Seconds reorder(Pass pass, Tokens tokens) const override {
    return linear_[kReorder][index(pass)].empty() ? 0 : linear(kReorder, pass, tokens);
  }

  Seconds optimizer(std::int64_t parameters) const override {
    return profile_.optimizer_seconds_per_parameter * static_cast<double>(parameters);
  }

  Seconds collective(Collective operation, Axis, int ranks, Bytes bytes) const override {
    if (ranks <= 1) return 0;
    const std::map<double, Curve>& by_ranks = collectives_[static_cast<std::size_t>(operation)];
    if (by_ranks.empty())
      throw lacks(std::string("collective \"") + kCollectiveNames[static_cast<std::size_t>(operation)] + "\"");
    const auto size = static_cast<double>(bytes);
    return ring_factor(operation, ranks) * between(by_ranks, ranks, [&](const Curve& curve) {
             return size > curve.last_x() && curve.last_x() > 0 ? curve.proportional_at(size) : curve.at(size);
           });
  }

  Bytes kv_bytes_per_token() const override { return 2L * model_.num_kv_heads * model_.head_dim * bytes_per_number_; }
  Bytes activation_bytes_per_token() const override {
    return static_cast<Bytes>(model_.hidden_dim) * bytes_per_number_;
  }
  Bytes kv_gradient_bytes_per_token() const override {
    return 2L * model_.num_kv_heads * model_.head_dim * std::max<Bytes>(4, bytes_per_number_);
  }
  Bytes query_bytes_per_token() const override {
    return static_cast<Bytes>(model_.num_heads) * model_.head_dim * bytes_per_number_;
  }
  // All ranks share the host that was measured: a line through a small and a large message.
  CpLinks cp_links() const override {
    constexpr Bytes kSmall = 64 << 10;
    constexpr Bytes kLarge = 4 << 20;
    const Seconds small = collective(Collective::send, Axis::cp, 2, kSmall);
    const Seconds large = collective(Collective::send, Axis::cp, 2, kLarge);
    CpLinks links;
    links.node_bytes_per_second = static_cast<double>(kLarge - kSmall) / std::max(large - small, 1e-9);
    links.node_latency = std::max(0.0, small - static_cast<double>(kSmall) / links.node_bytes_per_second);
    return links;
  }

  std::string name() const override { return "profile of " + profile_.key.device + ", " + profile_.key.precision; }

  Seconds document_attention(Tokens length) const override { return model_.num_layers * layer_attention(length); }

  // The matrices run over the micro-batch, not over its documents: a document adds what a token costs there, at the
  // largest measured size, and no launch of its own.
  Seconds document_linear(Tokens length) const override { return seconds_per_token_ * static_cast<double>(length); }

 private:
  static std::size_t index(Pass pass) { return pass == Pass::forward ? 0 : 1; }

  // Sizes of a block, with the logarithms that both passes read their rates by.
  struct Shape {
    explicit Shape(const AttentionBlock& block)
        : rows(static_cast<double>(block.queries.size())),
          columns(static_cast<double>(block.keys.size() - block.queries.size())),
          log_rows(std::log2(rows)),
          log_columns(columns > 0 ? std::log2(columns) : 0) {}
    double rows;
    double columns;  // keys before the first query
    double log_rows;
    double log_columns;
  };

  Seconds attention(Pass pass, const Shape& shape) const {
    const PassRates& rates = attention_[index(pass)];
    const Seconds diagonal = 0.5 * shape.rows * (shape.rows + 1) / rates.causal.at(shape.log_rows, 0);
    if (shape.columns <= 0) return at_least_overhead(diagonal);
    return at_least_overhead(diagonal) +
           at_least_overhead(shape.rows * shape.columns / rates.full.at(shape.log_rows, shape.log_columns));
  }

  UserError lacks(const std::string& what) const {
    return UserError("profile of " + profile_.key.device + " lacks " + what +
                     ": measure it again with `ballast profile`");
  }

  Seconds at_least_overhead(Seconds seconds) const { return std::max(seconds, profile_.attention_block_overhead); }

  Seconds linear(std::size_t part, Pass pass, Tokens tokens) const {
    return linear_[part][index(pass)].proportional_at(static_cast<double>(tokens));
  }

  void read_attention() {
    for (const AttentionPoint& point : profile_.attention) {
      const auto queries = static_cast<double>(point.queries);
      const auto keys = static_cast<double>(point.keys);
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const Seconds seconds = pass == Pass::forward ? point.forward : point.backward;
        if (!(seconds > 0)) {
          throw lacks("a time over 0 for attention of " + std::to_string(point.queries) + " queries, " +
                      std::to_string(point.keys) + " keys");
        }
        PassRates& rates = attention_[index(pass)];
        if (point.causal) {
          rates.causal.add(std::log2(queries), 0, 0.5 * queries * (queries + 1) / seconds);
        } else {
          rates.full.add(std::log2(queries), std::log2(keys), queries * keys / seconds);
        }
      }
    }
    for (PassRates& rates : attention_) {
      rates.causal.finish();
      rates.full.finish();
      if (rates.causal.empty()) throw lacks("causal attention");
      if (rates.full.empty()) throw lacks("attention over earlier keys (causal: false)");
    }
  }

  void read_linear() {
    for (std::size_t part = 0; part < kLinearParts.size(); ++part) {
      std::array<std::vector<std::pair<double, double>>, 2> points;
      for (const LinearPoint& point : profile_.linear) {
        if (point.part != kLinearParts[part]) continue;
        points[0].emplace_back(point.tokens, point.forward);
        points[1].emplace_back(point.tokens, point.backward);
      }
      if (points[0].empty() && part == kReorder) continue;
      if (points[0].empty()) throw lacks(std::string("linear part \"") + kLinearParts[part] + "\"");
      for (std::size_t pass = 0; pass < 2; ++pass) {
        linear_[part][pass] = Curve(std::move(points[pass]));
        if (part == kReorder) continue;
        const Curve& curve = linear_[part][pass];
        seconds_per_token_ += (part == 0 ? model_.num_layers : 1) * curve.last_y() / curve.last_x();
      }
    }
  }

  void read_collectives() {
    for (std::size_t c = 0; c < kCollectiveNames.size(); ++c) {
      std::map<double, std::vector<std::pair<double, double>>> points;
      for (const CollectivePoint& point : profile_.collectives) {
        if (point.operation != kCollectiveNames[c]) continue;
        points[point.ranks].emplace_back(point.bytes,
                                         point.seconds / ring_factor(static_cast<Collective>(c), point.ranks));
      }
      for (auto& [ranks, of_ranks] : points) collectives_[c].emplace(ranks, Curve(std::move(of_ranks)));
    }
  }

  HardwareProfile profile_;
  ModelSpec model_;
  std::array<PassRates, 2> attention_;                  // [pass]
  std::array<std::array<Curve, 2>, 4> linear_;          // [part][pass]: seconds over tokens
  std::array<std::map<double, Curve>, 4> collectives_;  // [operation], by ranks: seconds / ring factor over bytes
  double seconds_per_token_ = 0;                        // linear parts of the whole model, both passes
  Bytes bytes_per_number_ = 0;
};

}  // namespace

std::unique_ptr<CostModel> make_profile_cost(HardwareProfile profile, const ModelSpec& model) {
  return std::make_unique<ProfileCost>(std::move(profile), model);
}

}  // namespace ballast
