#include "ballast/spec/fault_spec.h"

#include <cmath>

namespace ballast {

Violations FaultSpec::violations(int gpus) const {
  Violations found;
  const auto check = [&](const char* key, const std::vector<std::vector<double>>& entries) {
    for (const std::vector<double>& entry : entries) {
      const bool whole = entry.size() == 2 && entry[0] >= 0 && entry[0] < gpus && entry[0] == std::floor(entry[0]);
      if (!whole || !(entry[1] >= 1) || !std::isfinite(entry[1])) {
        found.push_back(std::string(key) + ": each entry is [GPU, factor], a GPU from 0 to " +
                        std::to_string(gpus - 1) + " and 1 or more times as long");
      }
    }
  };
  check("slow_gpus", slow_gpus);
  check("slow_nics", slow_nics);
  if (!(failures_per_gpu_day >= 0)) found.push_back("failures_per_gpu_day: must be 0 or more");
  if (!(restart_seconds >= 0)) found.push_back("restart_seconds: must be 0 or more");
  return found;
}

Violations StorageSpec::violations() const {
  Violations found;
  if (!(bytes_per_second >= 0)) found.push_back("bytes_per_second: must be 0 (it costs nothing) or more");
  if (!(gpu_bytes_per_second >= 0)) found.push_back("gpu_bytes_per_second: must be 0 (no bound) or more");
  if (!(loader_bytes_per_token >= 0)) found.push_back("loader_bytes_per_token: must be 0 or more");
  return found;
}

}  // namespace ballast
