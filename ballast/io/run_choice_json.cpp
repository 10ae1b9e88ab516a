#include "ballast/io/run_choice_json.h"

namespace ballast {

nlohmann::ordered_json run_choice_value(const RunChoice& choice) {
  return {{"degrees", {{"dp", choice.dims.dp}, {"pp", choice.dims.pp}, {"cp", choice.dims.cp}, {"tp", choice.tp}}},
          {"mapping", to_string(choice.mapping)},
          {"schedule",
           {{"name", choice.schedule.name},
            {"virtual_stages", choice.schedule.virtual_stages},
            {"round_size", choice.schedule.round_size},
            {"stage_layers", choice.schedule.stage_layers}}},
          {"zero", choice.zero},
          {"recompute", choice.recompute},
          {"windows_per_micro_batch", choice.windows},
          {"packer", choice.packer},
          {"sharding", choice.sharding}};
}

RunChoice read_run_choice(const JsonReader& reader) {
  RunChoice choice;
  const JsonReader degrees = reader["degrees"];
  degrees.expect_keys({"dp", "pp", "cp", "tp"});
  choice.dims = {
      .dp = degrees["dp"].small_integer(1), .pp = degrees["pp"].small_integer(1), .cp = degrees["cp"].small_integer(1)};
  choice.tp = degrees["tp"].small_integer(1);
  const auto mapping = parse_mesh_order(reader["mapping"].text());
  if (!mapping) reader["mapping"].fail("must name tp, cp, pp and dp, such as \"tp-cp-pp-dp\"");
  choice.mapping = *mapping;
  const JsonReader schedule = reader["schedule"];
  schedule.expect_keys({"name", "virtual_stages", "round_size", "stage_layers"});
  choice.schedule.name = schedule["name"].text();
  choice.schedule.virtual_stages = schedule["virtual_stages"].small_integer(1);
  choice.schedule.round_size = schedule["round_size"].small_integer(0);
  for (const JsonReader& layers : schedule["stage_layers"].items()) {
    choice.schedule.stage_layers.push_back(layers.small_integer(0));
  }
  choice.zero = reader["zero"].small_integer(0, 3);
  choice.recompute = reader["recompute"].text();
  choice.windows = reader["windows_per_micro_batch"].small_integer(1);
  choice.packer = reader["packer"].text();
  choice.sharding = reader["sharding"].text();
  return choice;
}

}  // namespace ballast
