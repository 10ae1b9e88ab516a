#include "ballast/cost/curve.h"

#include <algorithm>

namespace ballast {

Curve::Curve(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  for (std::size_t i = 0; i < points.size();) {
    std::size_t end = i;
    double sum = 0;
    while (end < points.size() && points[end].first == points[i].first) sum += points[end++].second;
    x_.push_back(points[i].first);
    y_.push_back(sum / static_cast<double>(end - i));
    i = end;
  }
}

double Curve::along(std::size_t segment, double x) const {
  const double share = (x - x_[segment]) / (x_[segment + 1] - x_[segment]);
  return y_[segment] + share * (y_[segment + 1] - y_[segment]);
}

double Curve::at(double x) const {
  if (x <= x_.front()) return y_.front();
  if (x >= x_.back()) return y_.back();
  return along(static_cast<std::size_t>(std::upper_bound(x_.begin(), x_.end(), x) - x_.begin()) - 1, x);
}

double Curve::proportional_at(double x) const {
  if (x <= 0) return 0;
  if (x >= x_.back()) return y_.back() * (x / x_.back());
  if (x >= x_.front()) return at(x);
  const double in_proportion = y_.front() * (x / x_.front());
  return x_.size() < 2 ? in_proportion : std::max(in_proportion, std::min(y_.front(), along(0, x)));
}

}  // namespace ballast
