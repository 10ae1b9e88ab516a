#include "ballast/spec/software_spec.h"

#include <algorithm>

namespace ballast {

Violations SoftwareSpec::violations() const {
  Violations found;
  const auto at_least_0 = [](double value) { return value >= 0; };
  const auto two = [&](const char* key, const std::vector<double>& values) {
    if (values.size() != 2 || !std::all_of(values.begin(), values.end(), at_least_0)) {
      found.push_back(std::string(key) + ": must be two numbers of 0 or more, forward and backward");
    }
  };
  if (!layer_launch_seconds.empty()) two("layer_launch_seconds", layer_launch_seconds);
  two("attention_bytes", attention_bytes);
  if (!(optimizer_bytes > 0)) found.push_back("optimizer_bytes: must be over 0");
  if (!(accumulation_bytes >= 0)) found.push_back("accumulation_bytes: must be 0 or more");
  return found;
}

}  // namespace ballast
