#include "ballast/spec/run_spec.h"

#include <algorithm>
#include <numeric>

#include "ballast/spec/mesh_order.h"

namespace ballast {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::float64:
      return "float64";
    case Precision::float32:
      return "float32";
    case Precision::bfloat16:
      return "bfloat16";
  }
  return "?";
}

std::string to_string(Oversize oversize) {
  switch (oversize) {
    case Oversize::truncate:
      return "truncate";
    case Oversize::split:
      return "split";
    case Oversize::refuse:
      return "refuse";
  }
  return "?";
}

Bytes bytes_of(Precision precision) {
  switch (precision) {
    case Precision::float64:
      return 8;
    case Precision::float32:
      return 4;
    case Precision::bfloat16:
      break;
  }
  return 2;
}

Violations PackingSpec::violations() const {
  Violations found;
  if (window < 1) found.push_back("window = " + std::to_string(window) + ": must be 1 or more tokens");
  if (micro_batches < 1) found.push_back("micro_batches = " + std::to_string(micro_batches) + ": must be 1 or more");
  if (global_batches < 1) found.push_back("global_batches = " + std::to_string(global_batches) + ": must be 1 or more");
  if (max_tokens < 0)
    found.push_back("max_tokens = " + std::to_string(max_tokens) + ": must be 0 (the window) or more");
  if (max_tokens > 0 && max_tokens < window) {
    found.push_back("max_tokens = " + std::to_string(max_tokens) + " is less than window = " + std::to_string(window) +
                    ": a step of full windows would never fit");
  }
  if (max_delay < 0) found.push_back("max_delay = " + std::to_string(max_delay) + ": must be 0 (no bound) or more");
  if (max_held < 0) found.push_back("max_held = " + std::to_string(max_held) + ": must be 0 (no bound) or more");
  if (max_documents < 0) {
    found.push_back("max_documents = " + std::to_string(max_documents) + ": must be 0 (no bound) or more");
  }
  if (!variable_length() && (token_swing > 0 || max_held > 0 || max_documents > 0)) {
    found.push_back("token_swing, max_held and max_documents bound wlb and pool; packer = \"" + packer +
                    "\" fills windows");
  }
  if (!(token_swing >= 0 && token_swing < 1)) found.push_back("token_swing: must be 0 (no bound) or more, below 1");
  if (!(mix_weight >= 0 && mix_weight <= 1e6)) found.push_back("mix_weight: must be 0 (domains as they come) or more");
  if (mix_weight > 0 && packer != "pool") {
    found.push_back("mix_weight keeps domains in pool's choice; packer = \"" + packer + "\" makes none");
  }
  if (tune_queues && packer != "wlb") {
    found.push_back("tune_queues tunes wlb's queues; packer = \"" + packer + "\" has none");
  }
  if (tune_queues && !queues.empty()) found.push_back("tune_queues and queues exclude each other: name one");
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (queues[i] < 1 || (i > 0 && queues[i] <= queues[i - 1])) {
      found.push_back("queues: thresholds must be over 0 and rise, but entry " + std::to_string(i + 1) + " is " +
                      std::to_string(queues[i]));
    }
  }
  return found;
}

Violations RunSpec::violations() const {
  Violations found;
  const auto add = [&](const char* section, const Violations& inner) {
    for (const std::string& text : inner) found.push_back(std::string("[") + section + "] " + text);
  };
  add("model", model.violations());
  add("parallel", parallel.violations());
  add("packing", packing.violations());
  if (!found.empty()) return found;

  const auto text = [](auto value) { return std::to_string(value); };
  if (packing.micro_batches % parallel.dp != 0) {
    found.push_back("[packing] micro_batches = " + text(packing.micro_batches) +
                    " is not a multiple of [parallel] dp = " + text(parallel.dp) +
                    ": every data parallel rank runs the same number");
  }
  const std::vector<std::string> schedules = schedule_names();
  if (std::find(schedules.begin(), schedules.end(), schedule.name) == schedules.end()) {
    const std::string near = nearest_name(schedule.name, schedules);
    found.push_back("[schedule] name = \"" + schedule.name + "\": must be one of " + join(schedules) +
                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  if (rank_tokens < 0) found.push_back("[sharding] rank_tokens = " + text(rank_tokens) + ": must be 0 (any) or more");
  for (const auto& [key, value] : {std::pair{"moves", moves}, {"routing", routing}}) {
    if (value != "auto" && value != "off") {
      found.push_back(std::string("[sharding] ") + key + " = \"" + value + "\": must be auto or off");
    }
  }
  if (tensor_parallel < 1) found.push_back("[parallel] tp = " + text(tensor_parallel) + ": must be 1 or more");
  if (tensor_parallel > 0 && (model.num_heads % tensor_parallel != 0 || model.ffn_dim % tensor_parallel != 0)) {
    found.push_back("[parallel] tp = " + text(tensor_parallel) + ": must divide [model] num_heads = " +
                    text(model.num_heads) + " and ffn_dim = " + text(model.ffn_dim));
  }
  if (!parse_mesh_order(mapping)) {
    found.push_back("[parallel] mapping = \"" + mapping +
                    "\": must name tp, cp, pp and dp from the inside out, such as \"" + to_string(MeshOrder{}) + "\"");
  }
  add("faults", faults.violations(parallel.world_size() * std::max(1, tensor_parallel)));
  add("storage", storage.violations());
  add("software", software.violations());
  add("plan", plan.violations());
  if (zero < 0 || zero > 3) found.push_back("[parallel] zero = " + text(zero) + ": must be 0, 1, 2 or 3");
  if (recompute != "none" && recompute != "full") {
    found.push_back("[parallel] recompute = \"" + recompute + "\": must be one of none, full");
  }
  if (schedule.virtual_stages < 1) found.push_back("[schedule] virtual_stages: must be 1 or more");
  if (schedule.name == "1f1b" && schedule.virtual_stages > 1) {
    found.push_back("[schedule] virtual_stages = " + text(schedule.virtual_stages) +
                    " needs name = \"interleaved\": 1f1b has one stage a rank");
  }
  if (schedule.round_size != 0 && schedule.name != "interleaved") {
    found.push_back("[schedule] round_size is of name = \"interleaved\", not of \"" + schedule.name + "\"");
  }
  if (schedule.round_size != 0 && schedule.round_size < parallel.pp) {
    found.push_back("[schedule] round_size = " + text(schedule.round_size) +
                    ": must be [parallel] pp = " + text(parallel.pp) + " or more, or 0, which is pp");
  }
  if (const std::vector<int>& layers = schedule.stage_layers; !layers.empty()) {
    const int stages = parallel.pp * schedule.virtual_stages;
    if (static_cast<int>(layers.size()) != stages) {
      found.push_back("[schedule] stage_layers names " + text(layers.size()) +
                      " stages; [parallel] pp x virtual_stages = " + text(stages));
    }
    for (std::size_t s = 0; s < layers.size(); ++s) {
      const bool at_an_end = s == 0 || s + 1 == layers.size();  // the embedding or the head is a stage's work, too
      if (layers[s] < (at_an_end ? 0 : 1)) {
        found.push_back("[schedule] stage_layers: stage " + text(s) +
                        " needs a layer; only the first and the last may have none");
      }
    }
    if (const int sum = std::accumulate(layers.begin(), layers.end(), 0); sum != model.num_layers) {
      found.push_back("[schedule] stage_layers add up to " + text(sum) +
                      ", [model] num_layers = " + text(model.num_layers));
    }
  }
  if (found.empty() && schedule.stage_layers.empty() && model.num_layers < parallel.pp * schedule.virtual_stages) {
    found.push_back("[model] num_layers = " + text(model.num_layers) +
                    " is less than the stages, [parallel] pp x [schedule] virtual_stages = " +
                    text(parallel.pp * schedule.virtual_stages) + ": every stage needs a layer");
  }
  if (epochs < 0) found.push_back("[corpus] epochs = " + text(epochs) + ": must be 0 (for ever) or more");
  if (documents < 0) found.push_back("[corpus] documents = " + text(documents) + ": must be 0 (all) or more");
  const TrainingSpec& t = training;
  if (t.steps < 1) found.push_back("[training] steps = " + text(t.steps) + ": must be 1 or more");
  if (!(t.lr > 0)) found.push_back("[training] lr: must be over 0");
  if (!(t.min_lr >= 0 && t.min_lr <= t.lr)) found.push_back("[training] min_lr: must be from 0 to lr");
  if (t.warmup_steps < 0) found.push_back("[training] warmup_steps: must be 0 or more");
  if (!(t.weight_decay >= 0)) found.push_back("[training] weight_decay: must be 0 or more");
  if (!(t.beta1 >= 0 && t.beta1 < 1)) found.push_back("[training] beta1: must be in [0, 1)");
  if (!(t.beta2 >= 0 && t.beta2 < 1)) found.push_back("[training] beta2: must be in [0, 1)");
  if (!(t.eps > 0)) found.push_back("[training] eps: must be over 0");
  if (!(t.clip_norm >= 0)) found.push_back("[training] clip_norm: must be 0 (no clipping) or more");
  if (t.checkpoint_every < 0) found.push_back("[training] checkpoint_every: must be 0 or more");
  if (t.keep_checkpoints < 1) found.push_back("[training] keep_checkpoints: must be 1 or more");
  if (!(launch.timeout_seconds > 0)) found.push_back("[launch] timeout_seconds: must be over 0");
  if (launch.lease != "auto" && launch.lease != "on" && launch.lease != "off") {
    found.push_back("[launch] lease = \"" + launch.lease + "\": must be one of auto, on, off");
  }
  if (launch.threads < 0) found.push_back("[launch] threads: must be 0 (share out the cores) or more");
  if (synthetic_cost && synthetic_cost->size() != 2) found.push_back("[cost] synthetic: must be two numbers, [A, B]");
  if (synthetic_cost && !profile.empty()) found.push_back("[cost] synthetic and profile exclude each other: name one");
  return found;
}

std::vector<std::string> schedule_names() { return {"1f1b", "interleaved", "all-forward-all-backward"}; }

std::vector<int> ScheduleSpec::layers_by_stage(int num_layers, int pp) const {
  return stage_layers.empty() ? layers_per_stage(num_layers, pp * virtual_stages) : stage_layers;
}

std::vector<int> layers_per_stage(int num_layers, int num_stages) {
  std::vector<int> layers(static_cast<std::size_t>(num_stages), num_layers / num_stages);
  for (int stage = 0; stage < num_layers % num_stages; ++stage) ++layers[static_cast<std::size_t>(stage)];
  return layers;
}

}  // namespace ballast
