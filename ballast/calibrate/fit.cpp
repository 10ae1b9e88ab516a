#include "ballast/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// Pulls parts that samples do not tell apart towards their common ratio; small against what samples do tell.
constexpr double kPull = 1e-3;
constexpr double kLeastScale = 0.2;
constexpr double kMostScale = 5;

// Solves a x = b, a symmetric and positive definite, by Gaussian elimination.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t column = i; column < n; ++column) a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t column = i + 1; column < n; ++column) b[i] -= a[i][column] * b[column];
    b[i] /= a[i][i];
  }
  return b;
}

}  // namespace

std::vector<double> fit_scales(const std::vector<FitSample>& samples) {
  if (samples.empty()) return {};
  const std::size_t n = samples.front().parts.size();
  std::vector<std::vector<double>> squares(n, std::vector<double>(n, 0));
  std::vector<double> right(n, 0);
  Seconds all_measured = 0;
  Seconds all_predicted = 0;
  std::size_t counted = 0;
  for (const FitSample& sample : samples) {
    BALLAST_ASSERT(sample.parts.size() == n, "samples of other parts");
    if (!(sample.measured > 0)) continue;
    ++counted;
    all_measured += sample.measured;
    for (const Seconds part : sample.parts) all_predicted += part;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = sample.parts[i] / sample.measured;
      right[i] += x;
      for (std::size_t j = 0; j < n; ++j) squares[i][j] += x * sample.parts[j] / sample.measured;
    }
  }
  std::vector<double> scales(n, 1);
  if (counted == 0 || !(all_predicted > 0)) return scales;
  const double common = all_measured / all_predicted;
  for (std::size_t i = 0; i < n; ++i) {
    // A part that is never there is left alone.
    const double pull = squares[i][i] > 0 ? kPull * squares[i][i] : 1;
    right[i] += pull * (squares[i][i] > 0 ? common : 1);
    squares[i][i] += pull;
  }
  scales = solve(std::move(squares), std::move(right));
  for (double& scale : scales) scale = std::clamp(scale, kLeastScale, kMostScale);
  return scales;
}

double mean_relative_error(const std::vector<FitSample>& samples, const std::vector<double>& scales) {
  double sum = 0;
  std::size_t counted = 0;
  for (const FitSample& sample : samples) {
    if (!(sample.measured > 0)) continue;
    Seconds predicted = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) predicted += scales[i] * sample.parts[i];
    sum += std::abs(predicted - sample.measured) / sample.measured;
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace ballast
