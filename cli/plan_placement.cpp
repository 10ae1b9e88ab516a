#include "cli/plan_placement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ballast/planner/step_stream.h"
#include "ballast/sharding/sharder.h"
#include "cli/step_placement.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

bool may_use_rings(const RunChoice& choice) {
  const std::vector<std::string> gathering = gathering_sharding_names();
  return choice.dims.cp > 1 && std::find(gathering.begin(), gathering.end(), choice.sharding) == gathering.end();
}

std::optional<ordered_json> placement_of_choice(const RunSubject& subject, const RunSpec& planned,
                                                const RunChoice& choice) {
  const RunSpec run = with_choice(planned, choice);
  const auto cost =
      make_cluster_cost(subject.device, subject.cluster, run.model, mesh_of(choice), run.overlap_tp, run.software);
  StepStream steps(run, *cost,
                   DocumentStream(subject.lengths, subject.domains, {.shuffle = run.shuffle, .seed = run.seed}),
                   {.timelines = false});
  const std::optional<PlannedStep> first = steps.next();
  return first ? step_placement_json(first->plan, cost.get()) : std::nullopt;
}

}  // namespace

std::optional<ordered_json> placement_of_plan(const RunSubject& subject, const RunPlanning& planning) {
  for (const auto* candidates : {&planning.ranked, &planning.simulated}) {
    for (std::size_t i = 0; i < candidates->size(); ++i) {
      const RunChoice& choice = (*candidates)[i].choice;
      if (!may_use_rings(choice)) continue;
      std::optional<ordered_json> shown = placement_of_choice(subject, planning.run, choice);
      if (!shown) continue;  // `auto` may gather
      (*shown)["of"] = {{"ranked", candidates == &planning.ranked ? ordered_json(i + 1) : ordered_json(nullptr)},
                        {"choice", to_string(choice)},
                        {"dp", choice.dims.dp}};
      return shown;
    }
  }
  return std::nullopt;
}

}  // namespace ballast::cli
