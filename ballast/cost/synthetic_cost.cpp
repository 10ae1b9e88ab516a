#include <cmath>
#include <cstdio>

#include "ballast/base/error.h"
#include "ballast/cost/cost_model.h"

namespace ballast {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

class SyntheticCost final : public CostModel {
 public:
  SyntheticCost(double a, double b) : a_(a), b_(b) {}

  // Rows k - q to k of a document add b (k^2 - (k - q)^2), so blocks that make up a document add up to exactly b L^2.
  Seconds attention(Pass pass, const AttentionBlock& block) const override {
    const auto queries = static_cast<double>(block.queries.size());
    const auto keys = static_cast<double>(block.keys.size());
    return share(pass) * b_ * queries * (2 * keys - queries);
  }
  Seconds layer(Pass pass, Tokens tokens) const override { return share(pass) * document_linear(tokens); }
  Seconds reorder(Pass, Tokens) const override { return 0; }
  Seconds embedding(Pass, Tokens) const override { return 0; }
  Seconds head(Pass, Tokens) const override { return 0; }
  Seconds optimizer(std::int64_t) const override { return 0; }
  Seconds collective(Collective, Axis, int, Bytes) const override { return 0; }
  Bytes kv_bytes_per_token() const override { return 0; }
  Bytes activation_bytes_per_token() const override { return 0; }

  std::string name() const override {
    return "synthetic, " + number(a_) + " a token and " + number(b_) + " a squared token";
  }

  Seconds document_attention(Tokens length) const override {
    return b_ * static_cast<double>(length) * static_cast<double>(length);
  }
  Seconds document_linear(Tokens length) const override { return a_ * static_cast<double>(length); }

 private:
  static double share(Pass pass) { return pass == Pass::forward ? 1.0 / 3.0 : 2.0 / 3.0; }

  double a_;
  double b_;
};

}  // namespace

std::unique_ptr<CostModel> make_synthetic_cost(double a, double b) {
  if (!(std::isfinite(a) && std::isfinite(b) && a >= 0 && b >= 0 && a + b > 0)) {
    throw UserError("cost = " + number(a) + "," + number(b) + ": both must be 0 or more, and one over 0");
  }
  return std::make_unique<SyntheticCost>(a, b);
}

}  // namespace ballast
