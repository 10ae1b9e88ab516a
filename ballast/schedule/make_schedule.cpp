#include "ballast/schedule/make_schedule.h"

#include "ballast/schedule/all_forward_all_backward.h"
#include "ballast/schedule/interleaved.h"
#include "ballast/schedule/lowering.h"
#include "ballast/schedule/one_f_one_b.h"

namespace ballast {

Schedule make_schedule(const ScheduleSpec& spec, int num_ranks, int num_micro_batches) {
  if (spec.name == "interleaved")
    return lower(interleaved(num_ranks, spec.virtual_stages, num_micro_batches, spec.round_size));
  if (spec.name == "all-forward-all-backward") {
    return lower(all_forward_all_backward(num_ranks, spec.virtual_stages, num_micro_batches));
  }
  if (spec.name == "1f1b") {
    if (spec.virtual_stages != 1) {
      throw UserError("schedule: virtual_stages = " + std::to_string(spec.virtual_stages) +
                      " needs name = \"interleaved\": 1f1b has one stage a rank");
    }
    return lower(one_f_one_b(num_ranks, num_micro_batches));
  }
  const std::string near = nearest_name(spec.name, schedule_names());
  throw UserError("schedule: name = \"" + spec.name + "\": must be one of " + join(schedule_names()) +
                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace ballast
