// What a run that need not be at hand is made of: RUN.toml, its documents' lengths, the cluster it names. Shared by
// `simulate` and `plan`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ballast/io/lengths.h"
#include "ballast/ir/device_profile.h"
#include "ballast/spec/cluster_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast::cli {

struct SimulatedRun {
  RunSpec run;  // vocabulary of the corpus filled in
  DocumentLengths documents;
  std::optional<ClusterSpec> cluster;   // [cluster] file
  std::optional<DeviceProfile> device;  // the cluster's
};

// Throws UserError, naming file and key: neither lengths nor a corpus, no vocabulary, a device without rates of the
// run's precision. The run's own violations are the caller's to ask for.
SimulatedRun read_simulated_run(const std::string& run_toml, const std::vector<std::string>& overrides);

// Refuses a run of more GPUs than the cluster's tiers join. Nothing without a cluster.
void require_joined(const SimulatedRun& simulated, int gpus);

// The shapes of this run that its device was not measured at: refused where one is over kFarOutside times outside and
// `extrapolate` is not given, naming the key; else a line each. Nothing without a device.
inline constexpr double kFarOutside = 8;
std::vector<std::string> extrapolated_shapes(const SimulatedRun& simulated, const RunSpec& run, bool extrapolate);

}  // namespace ballast::cli
