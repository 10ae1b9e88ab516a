// Piecewise curves through measured points, for the profile cost model.
#pragma once

#include <utility>
#include <vector>

namespace ballast {

// y over x, linear between points. Constant below the first point and above the last one.
class Curve {
 public:
  Curve() = default;
  // Points in any order; of equal x the mean of their y counts.
  explicit Curve(std::vector<std::pair<double, double>> points);

  bool empty() const { return x_.empty(); }
  double at(double x) const;
  double first_x() const { return x_.front(); }
  double last_x() const { return x_.back(); }
  double first_y() const { return y_.front(); }
  double last_y() const { return y_.back(); }

  // Linear between points; above the last in proportion to x, at the last point's y / x; below the first along the line
  // of the first two points, but never under proportion to the first and never under 0; 0 at 0.
  double proportional_at(double x) const;

 private:
  double along(std::size_t segment, double x) const;

  std::vector<double> x_;  // rising
  std::vector<double> y_;
};

}  // namespace ballast
