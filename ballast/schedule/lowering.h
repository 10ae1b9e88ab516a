// Lowering a schedule: from forwards and backwards to all that a rank does, sends and receives included.
//
// A send follows the action that made its tensor at once, so that the other side gets it as early as it can. A receive
// stands immediately before the action that needs it: there a rank waits, and waiting earlier would only hold up what
// could run. Sends do not block, so a schedule that finishes still finishes. An executor may post a receive ahead of
// its place, as the plan says how large it will be.
// Stages that follow each other on one rank (a pipeline of one rank) hand their tensors over and send nothing.
#pragma once

#include "ballast/ir/schedule.h"

namespace ballast {

// REQUIRES: `schedule` has no sends yet.
Schedule lower(Schedule schedule);

}  // namespace ballast
