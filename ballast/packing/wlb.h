// Variable-length packing with outlier delay (WLB-LLM, section 4: W3, W4, W5). Micro-batches hold equal predicted work,
// not equal tokens; each holds at most S_max tokens.
//
// A step is filled in this order:
//   1. Documents that have waited `max_delay` steps in a queue, oldest first.
//   2. From each queue, longest band first, that holds N documents or more: its N oldest, one to each micro-batch, the
//      longest to the one of least work. A queue whose N do not fit beside what is there already waits a step more.
//   3. Documents left over from the last step, in their order.
//   4. New documents below the first threshold, longest first.
// In 1, 3 and 4 a document goes to the micro-batch of least predicted work if it fits S_max, else to the one of fewest
// tokens if it fits, else it is left over. (The paper names the left-overs first; here the queues go before, into
// micro-batches that are still empty, or left-overs could keep a long document out for ever.)
#pragma once

#include <memory>

#include "ballast/packing/packer.h"

namespace ballast {

std::unique_ptr<Packer> make_wlb_packer(const PackingSpec& spec, const CostModel& cost);

}  // namespace ballast
