#include "ballast/schedule/lowering.h"

#include <utility>

namespace ballast {

Schedule lower(Schedule schedule) {
  const auto crosses = [&](int stage) {  // between stage and stage + 1
    return stage >= 0 && stage + 1 < schedule.num_stages() &&
           schedule.rank_of_stage(stage) != schedule.rank_of_stage(stage + 1);
  };
  for (auto& actions : schedule.ranks) {
    std::vector<Action> lowered;
    for (const Action& action : actions) {
      BALLAST_ASSERT(action.kind == ActionKind::F || action.kind == ActionKind::B, "lowered already");
      const auto [stage, kind, m] = action;
      const bool forward = kind == ActionKind::F;
      if (crosses(forward ? stage - 1 : stage)) {
        lowered.push_back(
            {.stage = stage, .kind = forward ? ActionKind::RECV_F : ActionKind::RECV_B, .micro_batch = m});
      }
      lowered.push_back(action);
      if (crosses(forward ? stage : stage - 1)) {
        lowered.push_back(
            {.stage = stage, .kind = forward ? ActionKind::SEND_F : ActionKind::SEND_B, .micro_batch = m});
      }
    }
    actions = std::move(lowered);
  }
  return schedule;
}

}  // namespace ballast
