#include "ballast/io/run_plan_json.h"

#include "ballast/io/atomic_file.h"
#include "ballast/io/run_choice_json.h"

namespace ballast {

namespace {

std::map<std::string, Bytes> read_bytes(const JsonReader& reader, std::string_view where) {
  std::map<std::string, Bytes> found;
  for (const auto& [name, bytes] : reader.value().items()) found[name] = JsonReader(bytes, where, name).tokens();
  return found;
}

}  // namespace

std::string to_json(const RunPlan& plan) {
  nlohmann::ordered_json triggers = nlohmann::ordered_json::array();
  for (const ReplanTrigger& trigger : plan.triggers) {
    triggers.push_back({{"measure", trigger.measure}, {"limit", trigger.limit}, {"why", trigger.why}});
  }
  const nlohmann::ordered_json value = {{"version", RunPlan::kVersion},
                                        {"predicted_by", plan.predicted_by},
                                        {"gpus", plan.gpus},
                                        {"choice", run_choice_value(plan.choice)},
                                        {"batch",
                                         {{"window_tokens", plan.window},
                                          {"micro_batches", plan.micro_batches},
                                          {"max_tokens", plan.max_tokens},
                                          {"step_tokens_mean", plan.step_tokens}}},
                                        {"step_seconds", plan.step_seconds},
                                        {"step_spread", plan.step_spread},
                                        {"tokens_per_second", plan.tokens_per_second},
                                        {"bytes_by_tier", plan.bytes_by_tier},
                                        {"memory",
                                         {{"by_part_bytes", plan.memory_by_part},
                                          {"gpu_bytes", plan.memory_bytes},
                                          {"headroom_bytes", plan.headroom_bytes}}},
                                        {"restart_every_steps", plan.restart_every_steps},
                                        {"replan_when", std::move(triggers)}};
  return value.dump(1) + "\n";
}

RunPlan run_plan_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  const JsonReader reader(value, where);
  reader.expect_version(RunPlan::kVersion);
  reader.expect_keys({"version", "predicted_by", "gpus", "choice", "batch", "step_seconds", "step_spread",
                      "tokens_per_second", "bytes_by_tier", "memory", "restart_every_steps", "replan_when"});
  RunPlan plan;
  plan.predicted_by = reader["predicted_by"].text();
  plan.gpus = reader["gpus"].small_integer(1);
  plan.choice = read_run_choice(reader["choice"]);
  const JsonReader batch = reader["batch"];
  batch.expect_keys({"window_tokens", "micro_batches", "max_tokens", "step_tokens_mean"});
  plan.window = batch["window_tokens"].tokens();
  plan.micro_batches = batch["micro_batches"].small_integer(1);
  plan.max_tokens = batch["max_tokens"].tokens();
  plan.step_tokens = batch["step_tokens_mean"].tokens();
  plan.step_seconds = reader["step_seconds"].number();
  plan.step_spread = reader["step_spread"].number();
  plan.tokens_per_second = reader["tokens_per_second"].number();
  plan.bytes_by_tier = read_bytes(reader["bytes_by_tier"], where);
  const JsonReader memory = reader["memory"];
  memory.expect_keys({"by_part_bytes", "gpu_bytes", "headroom_bytes"});
  plan.memory_by_part = read_bytes(memory["by_part_bytes"], where);
  plan.memory_bytes = memory["gpu_bytes"].tokens();
  plan.headroom_bytes = memory["headroom_bytes"].integer();
  plan.restart_every_steps = reader["restart_every_steps"].integer(1);
  for (const JsonReader& item : reader["replan_when"].items()) {
    item.expect_keys({"measure", "limit", "why"});
    plan.triggers.push_back({item["measure"].text(), item["limit"].number(), item["why"].text()});
  }
  require_valid(plan.violations(), std::string(where));
  return plan;
}

RunPlan read_run_plan(const std::filesystem::path& path) { return run_plan_from_json(read_file(path), path.string()); }

void write_run_plan(const std::filesystem::path& path, const RunPlan& plan) {
  AtomicFile file(path);
  file.write(to_json(plan));
  file.commit();
}

}  // namespace ballast
