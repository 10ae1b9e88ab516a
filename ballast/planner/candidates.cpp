#include "ballast/planner/candidates.h"

#include <algorithm>
#include <set>

#include "ballast/packing/packer.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

namespace {

std::string text(int value) { return std::to_string(value); }

template <class T>
std::vector<T> or_else(const std::vector<T>& asked, std::vector<T> otherwise) {
  return asked.empty() ? std::move(otherwise) : asked;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

std::vector<int> divisors(int number) {
  std::vector<int> found;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) found.push_back(d);
  }
  return found;
}

// Where layers do not come out even but would with one more at both ends, the first and the last stage, which hold the
// embedding and the head, have one less (Llama 3, section 3.3.2). Else empty: as even as possible.
std::vector<int> light_ends(int num_layers, int stages) {
  if (num_layers % stages == 0 || (num_layers + 2) % stages != 0) return {};
  std::vector<int> layers(static_cast<std::size_t>(stages), (num_layers + 2) / stages);
  --layers.front();
  --layers.back();
  return layers;
}

std::vector<int> even_virtual_stages(int num_layers, int pp) {
  std::vector<int> found;
  for (int v = 2; v * pp <= num_layers + 2; ++v) {
    const int stages = v * pp;
    const bool even = num_layers % stages == 0;
    // A middle stage needs a layer.
    if (even || ((num_layers + 2) % stages == 0 && (num_layers + 2) / stages >= 1)) found.push_back(v);
  }
  if (found.empty() && 2 * pp <= num_layers) found.push_back(2);
  return found;
}

std::vector<ScheduleSpec> schedules_of(const RunSpec& run, int pp, int micro_batches) {
  std::vector<ScheduleSpec> found;
  const int layers = run.model.num_layers;
  const std::vector<int> asked = run.plan.virtual_stages;
  const bool one_asked = asked.empty() || std::find(asked.begin(), asked.end(), 1) != asked.end();
  if (one_asked && pp <= layers) {
    found.push_back({.name = "1f1b", .stage_layers = light_ends(layers, pp)});
    if (pp > 1) found.push_back({.name = "all-forward-all-backward", .stage_layers = light_ends(layers, pp)});
  }
  if (pp == 1) return found;
  for (const int v : or_else(asked, even_virtual_stages(layers, pp))) {
    if (v == 1 || (v * pp > layers && light_ends(layers, v * pp).empty())) continue;
    std::set<int> rounds = {pp};
    if (micro_batches > pp) rounds.insert(micro_batches);
    if (micro_batches > 2 * pp) rounds.insert(2 * pp);
    for (const int round : rounds) {
      found.push_back({.name = "interleaved",
                       .virtual_stages = v,
                       .round_size = round,
                       .stage_layers = light_ends(layers, v * pp)});
    }
  }
  return found;
}

// Those that gather keys, and the run's own, which may go round rings.
std::vector<std::string> usual_shardings(const RunSpec& run) {
  std::vector<std::string> names = gathering_sharding_names();
  if (std::find(names.begin(), names.end(), run.sharding) == names.end()) names.push_back(run.sharding);
  return names;
}

}  // namespace

void for_each_frame(const RunSpec& run, const ClusterSpec& cluster, const std::function<void(const Frame&)>& visit,
                    const std::function<void(const std::string& rule, const std::string& which)>& refused) {
  const PlanSpec& plan = run.plan;
  const ModelSpec& model = run.model;
  for (const int tp : or_else(plan.tp, powers_of_two(cluster.gpus_per_node()))) {
    const std::string of_tp = "tp " + text(tp);
    if (model.num_heads % tp != 0 || model.ffn_dim % tp != 0) {
      refused("heads and widths divide by tp", of_tp);
      continue;
    }
    if (plan.gpus % tp != 0) {
      refused("degrees multiply to the GPUs", of_tp);
      continue;
    }
    for (const int cp : or_else(plan.cp, powers_of_two(std::min(64, plan.gpus / tp)))) {
      const std::string of_cp = of_tp + " cp " + text(cp);
      if (plan.gpus / tp % cp != 0) {
        refused("degrees multiply to the GPUs", of_cp);
        continue;
      }
      for (const int pp : or_else(plan.pp, divisors(plan.gpus / tp / cp))) {
        const std::string of_pp = of_cp + " pp " + text(pp);
        if (plan.gpus / tp / cp % pp != 0) {
          refused("degrees multiply to the GPUs", of_pp);
          continue;
        }
        if (pp > model.num_layers + 2) {
          refused("every stage has a layer", of_pp);
          continue;
        }
        const int dp = plan.gpus / tp / cp / pp;
        for (const int windows : or_else(plan.windows, {1, 2, 4})) {
          const std::string which = of_pp + " dp " + text(dp) + " windows " + text(windows);
          if (run.packing.micro_batches % windows != 0 || run.packing.micro_batches / windows % dp != 0) {
            refused("pipelines share out the step's micro-batches", which);
            continue;
          }
          const int each = run.packing.micro_batches / windows / dp;
          const std::vector<ScheduleSpec> schedules = schedules_of(run, pp, each);
          if (schedules.empty()) refused("every stage has a layer", which);
          for (const ScheduleSpec& schedule : schedules) {
            const std::vector<int> stages = dp * cp > 1 ? or_else(plan.zero, {1, 2, 3}) : std::vector<int>{0};
            for (const int zero : stages) {
              for (const std::string& recompute : or_else(plan.recompute, {"none", "full"})) {
                visit({.choice = {.dims = {.dp = dp, .pp = pp, .cp = cp},
                                  .tp = tp,
                                  .schedule = schedule,
                                  .zero = zero,
                                  .recompute = recompute,
                                  .windows = windows}});
              }
            }
          }
        }
      }
    }
  }
}

std::vector<RunChoice> completions(const RunSpec& run, const Frame& frame) {
  const PlanSpec& plan = run.plan;
  const RunChoice& base = frame.choice;
  std::vector<MeshOrder> mappings;
  std::set<std::vector<int>> seen;
  for (const std::string& name :
       or_else<std::string>(plan.mappings, {"tp-cp-pp-dp", "tp-cp-dp-pp", "tp-pp-cp-dp", "tp-dp-cp-pp"})) {
    const MeshOrder order = parse_mesh_order(name).value_or(MeshOrder{});
    std::vector<int> strides;
    for (const auto& [axis, size] : {std::pair{MeshAxis::tp, base.tp},
                                     {MeshAxis::cp, base.dims.cp},
                                     {MeshAxis::pp, base.dims.pp},
                                     {MeshAxis::dp, base.dims.dp}}) {
      strides.push_back(size > 1 ? order.stride(axis, base.dims, base.tp) : 0);
    }
    if (seen.insert(strides).second) mappings.push_back(order);
  }
  const std::vector<std::string> shardings =
      base.dims.cp == 1 ? std::vector<std::string>{"per-sequence"} : or_else(plan.shardings, usual_shardings(run));
  std::vector<RunChoice> found;
  for (const std::string& packer : or_else<std::string>(plan.packers, {"plain", "wlb", "pool"})) {
    for (const std::string& sharding : shardings) {
      for (const MeshOrder& mapping : mappings) {
        RunChoice& choice = found.emplace_back(base);
        choice.packer = packer;
        choice.sharding = sharding;
        choice.mapping = mapping;
      }
    }
  }
  return found;
}

std::vector<std::pair<std::string, RunChoice>> single_changes(const RunSpec& run, const RunChoice& choice) {
  std::vector<std::pair<std::string, RunChoice>> found;
  for (const RunChoice& other : completions(run, {choice})) {
    const int differing = (other.packer != choice.packer ? 1 : 0) + (other.sharding != choice.sharding ? 1 : 0) +
                          (other.mapping != choice.mapping ? 1 : 0);
    if (differing != 1) continue;
    const std::string what = other.packer != choice.packer       ? "packer " + other.packer
                             : other.sharding != choice.sharding ? "sharding " + other.sharding
                                                                 : "mapping " + to_string(other.mapping);
    found.emplace_back(what, other);
  }
  const int each = run.packing.micro_batches / choice.windows / choice.dims.dp;
  for (const ScheduleSpec& schedule : schedules_of(run, choice.dims.pp, each)) {
    if (schedule == choice.schedule || choice.dims.pp == 1) continue;
    RunChoice other = choice;
    other.schedule = schedule;
    std::string what = "schedule " + schedule.name;
    if (schedule.virtual_stages > 1) what += " V " + text(schedule.virtual_stages);
    if (schedule.round_size > 0) what += " nc " + text(schedule.round_size);
    found.emplace_back(what, other);
  }
  for (const int zero : or_else(run.plan.zero, {1, 2, 3})) {
    if (zero == choice.zero || choice.dims.dp * choice.dims.cp == 1) continue;
    found.emplace_back("zero " + text(zero), choice).second.zero = zero;
  }
  for (const std::string& recompute : or_else<std::string>(run.plan.recompute, {"none", "full"})) {
    if (recompute != choice.recompute)
      found.emplace_back("recompute " + recompute, choice).second.recompute = recompute;
  }
  return found;
}

}  // namespace ballast
