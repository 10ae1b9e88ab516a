#include "ballast/spec/run_choice.h"

namespace ballast {

std::string to_string(const RunChoice& choice) {
  const auto text = [](int value) { return std::to_string(value); };
  std::string schedule = choice.schedule.name;
  if (choice.schedule.virtual_stages > 1) schedule += " V " + text(choice.schedule.virtual_stages);
  if (choice.schedule.round_size > 0) schedule += " nc " + text(choice.schedule.round_size);
  return "tp " + text(choice.tp) + " cp " + text(choice.dims.cp) + " pp " + text(choice.dims.pp) + " dp " +
         text(choice.dims.dp) + " (" + to_string(choice.mapping) + "), " + schedule + ", zero " + text(choice.zero) +
         ", recompute " + choice.recompute + ", " + text(choice.windows) +
         (choice.windows == 1 ? " window, " : " windows, ") + choice.packer + ", " + choice.sharding;
}

RunChoice choice_of(const RunSpec& run) {
  return {.dims = run.parallel,
          .tp = run.tensor_parallel,
          .mapping = parse_mesh_order(run.mapping).value_or(MeshOrder{}),
          .schedule = run.schedule,
          .zero = run.zero,
          .recompute = run.recompute,
          .windows = 1,
          .packer = run.packing.packer,
          .sharding = run.sharding};
}

RunSpec with_choice(RunSpec run, const RunChoice& choice) {
  run.parallel = choice.dims;
  run.tensor_parallel = choice.tp;
  run.mapping = to_string(choice.mapping);
  run.schedule = choice.schedule;
  run.zero = choice.zero;
  run.recompute = choice.recompute;
  run.sharding = choice.sharding;
  PackingSpec& packing = run.packing;
  packing.packer = choice.packer;
  packing.window *= choice.windows;
  packing.micro_batches /= choice.windows;
  if (packing.variable_length()) {
    packing.max_tokens =
        packing.max_tokens > 0 ? packing.max_tokens * choice.windows : packing.window + packing.window / 4;
  } else {
    packing.max_tokens = 0;
    packing.token_swing = 0;
    packing.max_held = 0;
    packing.max_documents = 0;
  }
  packing.tune_queues = false;
  for (Tokens& threshold : packing.queues) threshold *= choice.windows;
  if (packing.packer != "wlb") packing.queues.clear();
  if (packing.packer != "pool") packing.mix_weight = 0;
  return run;
}

}  // namespace ballast
