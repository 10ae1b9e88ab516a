// [software]: what a training framework adds to what a device's kernels take. The defaults are those of a framework
// whose kernels are launched ahead and fused.
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct SoftwareSpec {
  // A layer's forward and backward take no less: launching its kernels, one after the other. Empty: no bound.
  std::vector<double> layer_launch_seconds = {};
  // Kernel: "best" of the device profile; one of its others, by name; or "unfused", which computes the square of scores
  // and moves it through memory.
  std::string attention = "best";
  // Scores moved by an unfused kernel, bytes a query, key and head: forward and backward.
  std::vector<double> attention_bytes = {11, 17};
  // Whether rotation, activation and loss are one kernel each; where not, they move more and keep more.
  bool fused = true;
  double optimizer_bytes = 30;    // moved a parameter: weight, gradient and two moments read, three of them written
  double accumulation_bytes = 0;  // moved a parameter at every backward, to add its gradient up; 0: part of the product

  Violations violations() const;
  bool operator==(const SoftwareSpec&) const = default;
};

}  // namespace ballast
