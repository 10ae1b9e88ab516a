#include "ballast/ir/hardware_profile.h"

#include <cmath>

namespace ballast {

std::vector<std::string> differences(const ProfileKey& profile, const ProfileKey& run) {
  std::vector<std::string> found;
  const auto compare = [&](const char* name, const std::string& ours, const std::string& theirs) {
    if (ours != theirs)
      found.push_back(std::string(name) + ": profile has \"" + ours + "\", run has \"" + theirs + "\"");
  };
  compare("device", profile.device, run.device);
  compare("kernel_build", profile.kernel_build, run.kernel_build);
  compare("precision", profile.precision, run.precision);
  compare("mapping", profile.mapping, run.mapping);
  return found;
}

Violations HardwareProfile::violations() const {
  Violations found;
  const auto check = [&](const std::string& what, Seconds seconds) {
    if (!(std::isfinite(seconds) && seconds >= 0)) found.push_back(what + ": a time must be finite and 0 or more");
  };
  for (const auto& [name, value] : {std::pair{"device", key.device},
                                    {"kernel_build", key.kernel_build},
                                    {"precision", key.precision},
                                    {"mapping", key.mapping}}) {
    if (value.empty()) found.push_back(std::string("key.") + name + " is empty");
  }
  for (const AttentionPoint& p : attention) {
    const std::string what = "attention (" + std::to_string(p.queries) + ", " + std::to_string(p.keys) + ")";
    if (p.queries < 1 || p.keys < 1) found.push_back(what + ": queries and keys must be 1 or more");
    check(what, p.forward);
    check(what, p.backward);
  }
  for (const LinearPoint& p : linear) {
    const std::string what = "linear " + p.part + " at " + std::to_string(p.tokens) + " tokens";
    if (p.tokens < 1) found.push_back(what + ": tokens must be 1 or more");
    check(what, p.forward);
    check(what, p.backward);
  }
  for (const CollectivePoint& p : collectives) {
    const std::string what = p.operation + " of " + std::to_string(p.bytes) + " bytes";
    if (p.ranks < 2 || p.bytes < 0) found.push_back(what + ": needs 2 ranks or more and bytes of 0 or more");
    check(what, p.seconds);
  }
  check("optimizer_seconds_per_parameter", optimizer_seconds_per_parameter);
  check("attention_block_overhead", attention_block_overhead);
  if (attention.empty()) found.push_back("no attention point");
  if (linear.empty()) found.push_back("no linear point");
  return found;
}

}  // namespace ballast
