#include "cli/emulated_run.h"

#include <fmt/format.h>

#include "ballast/cost/emulated_cost.h"
#include "ballast/io/device_profile_json.h"

namespace ballast::cli {

std::unique_ptr<CostModel> make_emulated_cost(const EmulationSpec& emulation, const RunSpec& run) {
  const DeviceProfile device = read_device_profile(emulation.device);
  return ballast::make_emulated_cost(std::make_shared<DeviceCost>(device, *model_preset(emulation.model), 1), emulation,
                                     run.model, bytes_of(run.training.precision), run.routing == "auto");
}

void require_ranks(const EmulationSpec& emulation, const std::string& file, const RunSpec& run) {
  if (run.parallel.world_size() == emulation.num_ranks()) return;
  throw UserError(fmt::format("{}: nodes x ranks_per_node = {}, the run has {} ranks ({})", file, emulation.num_ranks(),
                              run.parallel.world_size(), to_string(run.parallel)));
}

}  // namespace ballast::cli
