#include "ballast/packing/packer.h"

#include "ballast/packing/fixed.h"
#include "ballast/packing/plain.h"
#include "ballast/packing/pool.h"
#include "ballast/packing/wlb.h"

namespace ballast {

std::vector<std::string> packer_names() { return {"plain", "next-fit", "fixed-greedy", "fixed-solver", "wlb", "pool"}; }

std::unique_ptr<Packer> make_packer(const PackingSpec& spec, const CostModel& cost) {
  require_valid(spec.violations(), "packing");
  if (spec.packer == "plain") return make_plain_packer(spec);
  if (spec.packer == "next-fit") return make_next_fit_packer(spec);
  if (spec.packer == "fixed-greedy") return make_fixed_greedy_packer(spec);
  if (spec.packer == "fixed-solver") return make_fixed_solver_packer(spec);
  if (spec.packer == "wlb") return make_wlb_packer(spec, cost);
  if (spec.packer == "pool") return make_pool_packer(spec, cost);
  const std::string near = nearest_name(spec.packer, packer_names());
  throw UserError("packing: packer = \"" + spec.packer + "\": must be one of " + join(packer_names()) +
                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace ballast
