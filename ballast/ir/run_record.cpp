#include "ballast/ir/run_record.h"

namespace ballast {

RunSummary summary_of(const RunSpec& spec) {
  RunSummary summary;
  summary.model = to_string(spec.model);
  summary.precision = to_string(spec.training.precision);
  summary.window = spec.packing.window;
  summary.parallel = spec.parallel;
  summary.virtual_stages = spec.schedule.virtual_stages;
  summary.packer = spec.packing.packer;
  summary.sharding = spec.sharding;
  summary.profile = spec.profile;
  summary.seed = spec.seed;
  return summary;
}

}  // namespace ballast
