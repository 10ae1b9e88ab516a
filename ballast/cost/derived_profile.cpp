#include "ballast/cost/derived_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// Rates over a grid of sizes, linear in the logarithm of each.
class GemmRate {
 public:
  explicit GemmRate(const std::vector<GemmPoint>& points) {
    for (const GemmPoint& point : points) {
      rates_[{point.m, point.n, point.k}] = point.flops_per_second;
      const std::array<std::int64_t, 3> size = {point.m, point.n, point.k};
      for (std::size_t axis = 0; axis < 3; ++axis) axes_[axis].push_back(size[axis]);
    }
    for (auto& axis : axes_) {
      std::sort(axis.begin(), axis.end());
      axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
    }
  }

  double at(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const std::array<Between, 3> place = {between(axes_[0], m), between(axes_[1], n), between(axes_[2], k)};
    double rate = 0;
    for (int corner = 0; corner < 8; ++corner) {
      double weight = 1;
      std::array<std::int64_t, 3> size{};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const bool upper = (corner >> axis & 1) != 0;
        weight *= upper ? place[axis].share : 1 - place[axis].share;
        size[axis] = upper ? place[axis].above : place[axis].below;
      }
      if (weight > 0) rate += weight * rates_.at({size[0], size[1], size[2]});
    }
    return rate;
  }

 private:
  struct Between {
    std::int64_t below, above;
    double share;  // of above
  };
  static Between between(const std::vector<std::int64_t>& sizes, std::int64_t at) {
    if (at <= sizes.front()) return {sizes.front(), sizes.front(), 0};
    if (at >= sizes.back()) return {sizes.back(), sizes.back(), 0};
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), at);
    const std::int64_t below = *std::prev(above);
    const auto log = [](std::int64_t size) { return std::log2(static_cast<double>(size)); };
    return {below, *above, (log(at) - log(below)) / (log(*above) - log(below))};
  }

  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> rates_;
  std::array<std::vector<std::int64_t>, 3> axes_;
};

class Derivation {
 public:
  Derivation(const DeviceProfile& device, const ModelSpec& model, int tp)
      : device_(device), model_(model), tp_(tp), gemm_(device.gemm), number_(device.precision == "float32" ? 4 : 2) {}

  HardwareProfile make() const {
    HardwareProfile profile;
    profile.key = {.device = device_.device,
                   .kernel_build = "published rates",
                   .precision = device_.precision,
                   .mapping = to_string(model_) + ", tp " + std::to_string(tp_)};
    profile.measured_by = "derived from the device's published rates";
    // Adam reads weight, gradient and two moments and writes three of them, all but the weight in float32.
    profile.optimizer_seconds_per_parameter = 30 / device_.memory_bytes_per_second;
    for (const AttentionRatePoint& point : device_.attention) profile.attention.push_back(attention(point));
    for (Tokens tokens = 64; tokens <= Tokens{1} << 20; tokens *= 2) {
      profile.linear.push_back(layer(tokens));
      profile.linear.push_back(embedding(tokens));
      profile.linear.push_back(head(tokens));
      const Seconds copied =
          memory(4.0 * static_cast<double>(tokens * number_) * model_.num_kv_heads * model_.head_dim / tp_);
      profile.linear.push_back({"reorder", tokens, copied, 2 * copied});
    }
    return profile;
  }

 private:
  Seconds product(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    return std::max(device_.kernel_seconds, flops / (gemm_.at(m, n, k) * device_.sustained_share));
  }
  // x[tokens, in] W[in, out], and its gradients by x and by W.
  void add_product(LinearPoint& point, std::int64_t in, std::int64_t out) const {
    point.forward += product(point.tokens, out, in);
    point.backward += product(point.tokens, in, out) + product(out, in, point.tokens);
  }
  Seconds memory(double bytes) const { return bytes / device_.memory_bytes_per_second; }

  LinearPoint layer(Tokens tokens) const {
    LinearPoint point{.part = "layer", .tokens = tokens};
    const std::int64_t heads = std::int64_t{model_.num_heads} * model_.head_dim / tp_;
    const std::int64_t kv =
        std::max<std::int64_t>(model_.head_dim, std::int64_t{model_.num_kv_heads} * model_.head_dim / tp_);
    const std::int64_t ffn = model_.ffn_dim / tp_;
    add_product(point, model_.hidden_dim, heads + 2 * kv);
    add_product(point, heads, model_.hidden_dim);
    add_product(point, model_.hidden_dim, 2 * ffn);
    add_product(point, ffn, model_.hidden_dim);
    // Values read and written a token. Norms and residuals work on this rank's tokens, the rest on its widths.
    const auto count = static_cast<double>(tokens) * static_cast<double>(number_);
    const double hidden = count * model_.hidden_dim / tp_;
    const double rotated = count * static_cast<double>(heads + kv);
    const double gate = count * static_cast<double>(ffn);
    point.forward += memory(2 * (3 * hidden) + 2 * (3 * hidden) + 2 * rotated + 3 * gate);
    point.backward += memory(2 * (5 * hidden) + 2 * (2 * hidden) + 2 * rotated + 5 * gate);
    return point;
  }

  LinearPoint embedding(Tokens tokens) const {
    const Seconds copied = memory(2.0 * static_cast<double>(tokens * number_) * model_.hidden_dim / tp_);
    return {"embedding", tokens, copied, 2 * copied};
  }

  LinearPoint head(Tokens tokens) const {
    LinearPoint point{.part = "head", .tokens = tokens};
    const std::int64_t vocab = std::max(1, model_.vocab_size / tp_);
    add_product(point, model_.hidden_dim, vocab);
    const double logits = static_cast<double>(tokens) * static_cast<double>(vocab) * 4;  // the loss is in float32
    point.forward += memory(3 * logits);
    point.backward += memory(2 * logits);
    return point;
  }

  AttentionPoint attention(const AttentionRatePoint& rate) const {
    const double heads = static_cast<double>(model_.num_heads) / tp_;
    const auto queries = static_cast<double>(rate.queries);
    const double pairs = rate.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(rate.keys);
    const double flops = 4 * pairs * heads * model_.head_dim;  // two products of a multiply and an add each
    const auto seconds = [&](double work, double per_second) { return work / (per_second * device_.sustained_share); };
    return {rate.queries, rate.keys, rate.causal, seconds(flops, rate.forward_flops_per_second),
            seconds(2.5 * flops, rate.backward_flops_per_second)};
  }

  const DeviceProfile& device_;
  const ModelSpec& model_;
  int tp_;
  GemmRate gemm_;
  std::int64_t number_;  // bytes
};

}  // namespace

HardwareProfile derive_profile(const DeviceProfile& device, const ModelSpec& model, int tp) {
  require_valid(device.violations(), "profile of " + device.device);
  require_valid(model.violations(), "model");
  if (tp < 1 || model.num_heads % tp != 0 || model.ffn_dim % tp != 0) {
    throw UserError("tp = " + std::to_string(tp) + ": must divide num_heads = " + std::to_string(model.num_heads) +
                    " and ffn_dim = " + std::to_string(model.ffn_dim));
  }
  return Derivation(device, model, tp).make();
}

}  // namespace ballast
