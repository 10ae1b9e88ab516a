// [plan]: what `ballast plan` may choose. A list that is empty stands for all that the model and the cluster allow.
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

struct PlanSpec {
  int gpus = 0;  // of the run; 0: no plan is asked for
  std::vector<int> tp = {};
  std::vector<int> cp = {};
  std::vector<int> pp = {};
  std::vector<int> virtual_stages = {};
  std::vector<int> zero = {};
  std::vector<std::string> recompute = {};
  std::vector<int> windows = {};  // windows of [packing] window tokens a micro-batch holds
  std::vector<std::string> packers = {};
  std::vector<std::string> shardings = {};
  std::vector<std::string> mappings = {};  // mesh_order.h
  int steps = 2;                           // simulated of every candidate
  int final_steps = 8;                     // simulated of those that come out best
  int keep = 12;                           // how many those are, two of the same degrees at the most

  Violations violations() const;
  bool operator==(const PlanSpec&) const = default;
};

}  // namespace ballast
