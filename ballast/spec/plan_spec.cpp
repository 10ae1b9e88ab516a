#include "ballast/spec/plan_spec.h"

#include "ballast/spec/mesh_order.h"

namespace ballast {

Violations PlanSpec::violations() const {
  Violations found;
  if (gpus < 0) found.push_back("gpus = " + std::to_string(gpus) + ": must be 1 or more");
  const auto at_least = [&](const char* key, const std::vector<int>& values, int least) {
    for (const int value : values) {
      if (value < least) {
        found.push_back(std::string(key) + " names " + std::to_string(value) + ": must be " + std::to_string(least) +
                        " or more");
      }
    }
  };
  at_least("tp", tp, 1);
  at_least("cp", cp, 1);
  at_least("pp", pp, 1);
  at_least("virtual_stages", virtual_stages, 1);
  at_least("windows", windows, 1);
  at_least("zero", zero, 0);
  for (const int stage : zero) {
    if (stage > 3) found.push_back("zero names " + std::to_string(stage) + ": must be 0, 1, 2 or 3");
  }
  for (const std::string& policy : recompute) {
    if (policy != "none" && policy != "full") {
      found.push_back("recompute names \"" + policy + "\": must be one of none, full");
    }
  }
  for (const std::string& mapping : mappings) {
    if (!parse_mesh_order(mapping)) {
      found.push_back("mappings names \"" + mapping +
                      "\": must name tp, cp, pp and dp from the inside out, such as \"" + to_string(MeshOrder{}) +
                      "\"");
    }
  }
  if (steps < 1 || final_steps < steps) found.push_back("steps: must be 1 or more, and final_steps no fewer");
  if (keep < 1) found.push_back("keep: must be 1 or more");
  return found;
}

}  // namespace ballast
