// Every fused operation against its plain version: value and gradients, in each precision, on shapes that fill no
// vector, block or chunk, and on no rows at all.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "ballast/runtime/model/cross_entropy.h"
#include "ballast/runtime/model/rms_norm.h"
#include "ballast/runtime/model/rope.h"
#include "ballast/runtime/model/swiglu.h"

namespace ballast {
namespace {

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

at::Tensor draw(at::IntArrayRef sizes, at::ScalarType type, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble).to(type);
}

std::vector<at::Tensor> value_and_gradients(const Operation& operation, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_());
  const at::Tensor out = operation(leaves);
  torch::autograd::backward({out}, {draw(out.sizes(), out.scalar_type(), 99)});
  std::vector<at::Tensor> found{out.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

double tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 3e-2; }

void expect_same(const Operation& fused, const Operation& plain, const std::vector<at::Tensor>& inputs) {
  const auto a = value_and_gradients(fused, inputs);
  const auto b = value_and_gradients(plain, inputs);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].sizes(), b[i].sizes());
    ASSERT_EQ(a[i].scalar_type(), b[i].scalar_type());
    if (a[i].numel() == 0) continue;
    const double scale = std::max(1.0, b[i].to(at::kDouble).abs().max().item<double>());
    const double error = (a[i].to(at::kDouble) - b[i].to(at::kDouble)).abs().max().item<double>();
    EXPECT_LE(error, scale * tolerance(inputs[0].scalar_type())) << (i == 0 ? "value" : "gradient") << " " << i;
  }
}

class Fused : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  at::ScalarType type() const { return GetParam(); }
  at::ScalarType wide() const { return type() == at::kDouble ? at::kDouble : at::kFloat; }
};

TEST_P(Fused, RmsNormEqualsThePlainOne) {
  for (const std::int64_t rows : {0, 1, 3, 257, 700}) {
    for (const std::int64_t dim : {8, 50, 256}) {
      expect_same([](const auto& in) { return rms_norm(in[0], in[1], 1e-5); },
                  [](const auto& in) { return rms_norm_reference(in[0], in[1], 1e-5); },
                  {draw({rows, dim}, type(), 1), draw({dim}, wide(), 2)});
    }
  }
}

TEST_P(Fused, RotationEqualsThePlainOne) {
  for (const std::int64_t rows : {0, 1, 130}) {
    for (const int dim : {2, 10, 64}) {
      const RotaryTable table = rotary_table(at::arange(rows, at::kLong) * 7, dim, 10000.0, wide());
      expect_same([&](const auto& in) { return rotate(in[0], table); },
                  [&](const auto& in) { return rotate_reference(in[0], table); }, {draw({rows, 3, dim}, type(), 1)});
    }
  }
}

TEST_P(Fused, SwiGluEqualsThePlainOne) {
  for (const std::int64_t rows : {0, 1, 900}) {
    for (const std::int64_t dim : {7, 96}) {
      expect_same([](const auto& in) { return swiglu(in[0], in[1]); },
                  [](const auto& in) { return swiglu_reference(in[0], in[1]); },
                  {draw({rows, dim}, type(), 1), draw({rows, dim}, type(), 2)});
    }
  }
}

TEST_P(Fused, CrossEntropyEqualsThePlainOneWithAndWithoutLabels) {
  for (const std::int64_t rows : {0, 1, 5, 1100}) {
    for (const std::int64_t vocab : {11, 2000}) {
      const at::Tensor labels = at::arange(rows, at::kLong).mul(17).remainder(vocab);
      for (const at::Tensor& some : {labels, labels.masked_fill(labels.remainder(3) == 0, kIgnoredLabel),
                                     at::full_like(labels, kIgnoredLabel)}) {
        expect_same([&](const auto& in) { return linear_cross_entropy(in[0], in[1], some); },
                    [&](const auto& in) { return linear_cross_entropy_reference(in[0], in[1], some); },
                    {draw({rows, 16}, type(), 1), draw({vocab, 16}, type(), 2)});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, Fused, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16),
                         [](const auto& p) { return std::string(at::toString(p.param)); });

TEST(Rotation, KeepsScoresDependentOnDistanceOnly) {
  const at::Tensor x = draw({1, 1, 8}, at::kDouble, 1), y = draw({1, 1, 8}, at::kDouble, 2);
  const auto score = [&](std::int64_t a, std::int64_t b) {
    const auto at_position = [](std::int64_t p) {
      return rotary_table(at::full({1}, p, at::kLong), 8, 10000.0, at::kDouble);
    };
    return (rotate(x, at_position(a)) * rotate(y, at_position(b))).sum().item<double>();
  };
  EXPECT_NEAR(score(5, 3), score(1002, 1000), 1e-9);
  EXPECT_GT(std::abs(score(5, 3) - score(6, 3)), 1e-6);
}

}  // namespace
}  // namespace ballast
