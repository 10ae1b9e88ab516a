// Fits a prediction that is a sum of parts to what was measured: one scale a part.
#pragma once

#include <vector>

#include "ballast/base/units.h"

namespace ballast {

struct FitSample {
  Seconds measured = 0;
  std::vector<Seconds> parts;  // predicted, the same parts in every sample
};

// The scales that make the squared relative error of scale x parts against measured least, none below a fifth or over
// five; where samples cannot tell parts apart, they move together. 1 for parts that are 0 in every sample. Samples of
// nothing measured do not count. REQUIRES: as many parts in each.
std::vector<double> fit_scales(const std::vector<FitSample>& samples);

// Mean of |scaled - measured| / measured. 0 without samples.
double mean_relative_error(const std::vector<FitSample>& samples, const std::vector<double>& scales);

}  // namespace ballast
