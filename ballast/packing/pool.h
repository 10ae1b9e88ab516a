// Ballast's own packer: long documents wait in one pool, and every step releases from it the group that levels best.
//
// Queues of bands (wlb) release N documents of a kind, once N have come: a rare length waits long, and the N of a band
// are only as even as the band is narrow. But a step is level in many more ways: one very long document beside two of
// half its work, or beside a medium one and many short ones. The pool looks for these (release.h), pays for waiting in
// the same currency as for imbalance, and so trains early what levels early. No thresholds to tune.
//
// Documents of S/8 tokens and more are long. In a step: the chosen long documents in the micro-batches chosen for them,
// then what is left over from earlier steps in its order, then new short documents longest first, each to the
// micro-batch of least predicted work if it fits, else to the one of fewest tokens, else it is left over.
#pragma once

#include <memory>

#include "ballast/packing/packer.h"

namespace ballast {

std::unique_ptr<Packer> make_pool_packer(const PackingSpec& spec, const CostModel& cost);

}  // namespace ballast
