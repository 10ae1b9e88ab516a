#include "cli/simulated_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "ballast/base/error.h"
#include "ballast/cost/derived_profile.h"
#include "ballast/io/cluster_toml.h"
#include "ballast/io/corpus.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/run_toml.h"

namespace ballast::cli {

namespace {

DocumentLengths read_workload(RunSpec& run, const std::string& where) {
  if (!run.lengths.empty()) {
    if (!run.corpus.empty()) throw UserError(where + ": [workload] lengths and [corpus] path exclude each other");
    return read_lengths(run.lengths, {.documents = 100'000, .seed = run.seed});
  }
  if (run.corpus.empty()) {
    throw UserError(where + ": [workload] lengths is missing: name a file of document lengths, or a [corpus] path");
  }
  if (run.model.vocab_size == 0) run.model.vocab_size = static_cast<int>(Corpus(run.corpus).summary().vocab_size);
  return read_lengths(run.corpus);
}

}  // namespace

SimulatedRun read_simulated_run(const std::string& run_toml, const std::vector<std::string>& overrides) {
  SimulatedRun simulated;
  RunSpec& run = simulated.run;
  run = read_run_toml(run_toml, overrides);
  simulated.documents = read_workload(run, run_toml);
  if (run.model.vocab_size == 0) {
    throw UserError(run_toml + ": [model] vocab_size is missing: document lengths alone do not tell it");
  }
  if (run.cluster.empty()) return simulated;
  simulated.cluster = read_cluster(run.cluster);
  simulated.device = read_device_profile(simulated.cluster->device);
  if (simulated.device->precision != to_string(run.training.precision)) {
    throw UserError(fmt::format("{}: [training] precision = \"{}\": {} has rates of {}", run_toml,
                                to_string(run.training.precision), simulated.cluster->device,
                                simulated.device->precision));
  }
  return simulated;
}

void require_joined(const SimulatedRun& simulated, int gpus) {
  if (!simulated.cluster) return;
  const FabricTier& last = simulated.cluster->tiers.back();
  if (last.gpus == 0 || gpus <= last.gpus) return;
  throw UserError(
      fmt::format("{}: tier {} ({}) joins {} GPUs, the run has {}: no link joins the rest; gpus = 0 joins all",
                  simulated.run.cluster, simulated.cluster->tiers.size(), last.name, last.gpus, gpus));
}

std::vector<std::string> extrapolated_shapes(const SimulatedRun& simulated, const RunSpec& run, bool extrapolate) {
  std::vector<std::string> lines;
  if (!simulated.device) return lines;
  const Tokens micro_batch = run.packing.most_tokens();
  Tokens longest = 0;
  for (const Tokens length : simulated.documents.lengths) longest = std::max(longest, length);
  for (const ShapeGap& gap : shape_gaps(*simulated.device, run.model, run.tensor_parallel,
                                        micro_batch / run.parallel.cp, std::min(longest, run.packing.window))) {
    if (gap.factor() > kFarOutside && !extrapolate) {
      throw UserError(fmt::format(
          "{}: {} = {}: measured {} {} only; --extrapolate takes the rate of the nearest for it",
          simulated.cluster->device, gap.key, gap.needed, gap.needed > gap.nearest ? "up to" : "from", gap.nearest));
    }
    lines.push_back(fmt::format("{} {} by the rate of {}", gap.key, gap.needed, gap.nearest));
  }
  return lines;
}

}  // namespace ballast::cli
