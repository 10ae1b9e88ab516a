// Replays a measured timeline as if each rank had a core of its own: the answer to "how long would these steps have
// taken?" where ranks had to share cores. What counts as a rank's own:
//   compute        the time of a compute span that lies in none of the communication inside it, less what the span
//                  itself spent waiting or without the core; and time between spans, which is work nobody recorded
//   communication  what the exchange cost, see exchanges.h
// Waits are not taken over but follow anew from these. The result is a figure labelled "replayed", never "measured".
#pragma once

#include "ballast/simulate/exchanges.h"
#include "ballast/simulate/program.h"

namespace ballast {

// One step's program. Ranks start together: a step begins with an agreement of all ranks.
Program replay_program(const Timeline& measured, const StepSpans& step);

// All steps, each from the end of the last; the first at 0. Throws RunError where a step was not recorded whole, so
// that its exchanges do not fit together. A replay of a prediction gives it back.
Timeline replay(const Timeline& measured);

}  // namespace ballast
