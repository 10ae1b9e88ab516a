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
  Derivation(const DeviceProfile& device, const ModelSpec& model, int tp, const SoftwareSpec& software)
      : device_(device),
        model_(model),
        tp_(tp),
        software_(software),
        gemm_(device.gemm),
        number_(device.precision == "float32" ? 4 : 2) {
    if (software.attention != "best" && software.attention != "unfused") use_kernel();
  }

  HardwareProfile make() const {
    HardwareProfile profile;
    profile.key = {.device = device_.device,
                   .kernel_build = "published rates",
                   .precision = device_.precision,
                   .mapping = to_string(model_) + ", tp " + std::to_string(tp_)};
    profile.measured_by = "derived from the device's published rates";
    profile.optimizer_seconds_per_parameter = software_.optimizer_bytes / device_.memory_bytes_per_second;
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
    // Not fused, rotation is five passes, and the activation stores what it computes on the way.
    const double rotations = software_.fused ? 2 : 5;
    const std::array<double, 2> gates = software_.fused ? std::array{3.0, 5.0} : std::array{5.0, 13.0};
    point.forward += memory(2 * (3 * hidden) + 2 * (3 * hidden) + rotations * rotated + gates[0] * gate);
    point.backward += memory(2 * (5 * hidden) + 2 * (2 * hidden) + rotations * rotated + gates[1] * gate);
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
    point.forward += memory((software_.fused ? 3 : 9) * logits);
    point.backward += memory((software_.fused ? 2 : 6) * logits);
    return point;
  }

  AttentionPoint attention(const AttentionRatePoint& rate) const {
    const double heads = static_cast<double>(model_.num_heads) / tp_;
    const auto queries = static_cast<double>(rate.queries);
    if (software_.attention == "unfused") return unfused_attention(rate, heads);
    const double pairs = rate.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(rate.keys);
    const double flops = 4 * pairs * heads * model_.head_dim;  // two products of a multiply and an add each
    const auto seconds = [&](double work, double per_second) { return work / (per_second * device_.sustained_share); };
    return {rate.queries, rate.keys, rate.causal, seconds(flops, rate.forward_flops_per_second * kernel_[0]),
            seconds(2.5 * flops, rate.backward_flops_per_second * kernel_[1])};
  }

  // The whole square of scores, masked or not: two products forward and four backward, and what passes over the scores
  // move.
  AttentionPoint unfused_attention(const AttentionRatePoint& rate, double heads) const {
    const double pairs = static_cast<double>(rate.queries) * static_cast<double>(rate.keys) * heads;
    const double a_product =
        2.0 * model_.head_dim / (gemm_.at(rate.queries, rate.keys, kProductDepth) * device_.sustained_share);
    const auto seconds = [&](int products, double bytes) {
      return pairs * (products * a_product) + memory(pairs * bytes);
    };
    return {rate.queries, rate.keys, rate.causal, seconds(2, software_.attention_bytes[0]),
            seconds(4, software_.attention_bytes[1])};
  }

  // What another kernel reaches, over what the profile's reaches.
  void use_kernel() {
    std::vector<std::string> names = {"best", "unfused"};
    for (const AttentionKernel& kernel : device_.attention_kernels) {
      names.push_back(kernel.name);
      if (kernel.name != software_.attention || kernel.head_dim != model_.head_dim) continue;
      for (const AttentionRatePoint& point : device_.attention) {
        if (!point.causal || point.queries != kKernelTokens) continue;
        kernel_ = {kernel.forward_flops_per_second / point.forward_flops_per_second,
                   kernel.backward_flops_per_second / point.backward_flops_per_second};
        return;
      }
    }
    throw UserError("[software] attention = \"" + software_.attention + "\": the profile of " + device_.device +
                    " has no such kernel for heads of " + std::to_string(model_.head_dim) + "; it has " + join(names));
  }

  static constexpr std::int64_t kProductDepth = 256;  // the least of the table; heads are narrower
  static constexpr Tokens kKernelTokens = 4096;       // see AttentionKernel

  const DeviceProfile& device_;
  const ModelSpec& model_;
  int tp_;
  const SoftwareSpec& software_;
  GemmRate gemm_;
  std::array<double, 2> kernel_ = {1, 1};  // rate of the attention kernel over the profile's, by pass
  std::int64_t number_;                    // bytes
};

}  // namespace

double ShapeGap::factor() const {
  const auto a = static_cast<double>(needed);
  const auto b = static_cast<double>(nearest);
  return std::max(a / b, b / a);
}

std::vector<ShapeGap> shape_gaps(const DeviceProfile& device, const ModelSpec& model, int tp, Tokens tokens,
                                 Tokens longest) {
  std::vector<ShapeGap> gaps;
  const auto check = [&](const std::string& key, std::int64_t needed, std::int64_t least, std::int64_t most) {
    if (needed >= 1 && (needed < least || needed > most)) gaps.push_back({key, needed, needed < least ? least : most});
  };
  const auto range = [](const auto& points, auto get) {
    std::pair<std::int64_t, std::int64_t> found = {get(points.front()), get(points.front())};
    for (const auto& point : points) {
      found.first = std::min<std::int64_t>(found.first, get(point));
      found.second = std::max<std::int64_t>(found.second, get(point));
    }
    return found;
  };
  const std::int64_t heads = std::int64_t{model.num_heads} * model.head_dim;
  const std::int64_t kv = std::int64_t{model.num_kv_heads} * model.head_dim;
  const auto [least_m, most_m] = range(device.gemm, [](const GemmPoint& point) { return point.m; });
  const auto [least_n, most_n] = range(device.gemm, [](const GemmPoint& point) { return point.n; });
  const auto [least_k, most_k] = range(device.gemm, [](const GemmPoint& point) { return point.k; });
  check("gemm m", tokens, least_m, most_m);
  for (const std::int64_t width : {(heads + 2 * kv) / tp, 2 * std::int64_t{model.ffn_dim} / tp,
                                   std::int64_t{model.hidden_dim}, std::int64_t{model.vocab_size} / tp}) {
    check("gemm n", width, least_n, most_n);
  }
  for (const std::int64_t width : {std::int64_t{model.hidden_dim}, heads / tp, std::int64_t{model.ffn_dim} / tp}) {
    check("gemm k", width, least_k, most_k);
  }
  std::vector<AttentionRatePoint> causal;
  for (const AttentionRatePoint& point : device.attention) {
    if (point.causal) causal.push_back(point);
  }
  const auto [least, most] = range(causal, [](const AttentionRatePoint& point) { return point.queries; });
  check("attention queries, causal", longest, least, most);
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const ShapeGap& a, const ShapeGap& b) { return a.factor() > b.factor(); });
  return gaps;
}

HardwareProfile derive_profile(const DeviceProfile& device, const ModelSpec& model, int tp,
                               const SoftwareSpec& software) {
  require_valid(device.violations(), "profile of " + device.device);
  require_valid(model.violations(), "model");
  if (tp < 1 || model.num_heads % tp != 0 || model.ffn_dim % tp != 0) {
    throw UserError("tp = " + std::to_string(tp) + ": must divide num_heads = " + std::to_string(model.num_heads) +
                    " and ffn_dim = " + std::to_string(model.ffn_dim));
  }
  require_valid(software.violations(), "[software]");
  return Derivation(device, model, tp, software).make();
}

}  // namespace ballast
