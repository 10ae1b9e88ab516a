// The hardware profile that a model would have on a device, from the device's published rates: what `ballast profile`
// measures where the device is at hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/ir/device_profile.h"
#include "ballast/ir/hardware_profile.h"
#include "ballast/spec/model_spec.h"
#include "ballast/spec/software_spec.h"

namespace ballast {

// Attention, linear parts and optimizer of one rank of a tensor parallel group of `tp`, which shares out heads, widths
// and, between the matrix products, tokens (sequence parallelism); no collective.
// Linear parts: the matrix products at the rate of their shape (interpolated in the logarithm of the sizes; nearest
// outside), backward twice the products; and what norms, activation, rotation and residuals move through memory.
// `software`: which attention kernel, what is fused, what the optimizer moves. Throws UserError where tp divides
// neither heads nor widths, and for an attention kernel that the profile does not have for these heads.
HardwareProfile derive_profile(const DeviceProfile& device, const ModelSpec& model, int tp,
                               const SoftwareSpec& software = {});

// A shape that a run needs and the device was not measured at: the rate of the nearest stands for it.
struct ShapeGap {
  std::string key;  // "gemm n", "attention queries"
  std::int64_t needed = 0;
  std::int64_t nearest = 0;

  double factor() const;  // how far outside, 1 or more
};

// Those of the largest micro-batch of `tokens` on a rank and a document of `longest` tokens, largest factor first.
std::vector<ShapeGap> shape_gaps(const DeviceProfile& device, const ModelSpec& model, int tp, Tokens tokens,
                                 Tokens longest);

}  // namespace ballast
