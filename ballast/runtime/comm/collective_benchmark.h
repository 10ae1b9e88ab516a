// What exchanging tensors costs between the ranks of a group, by operation and bytes: the communication part of a
// hardware profile.
#pragma once

#include <vector>

#include "ballast/ir/hardware_profile.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast {

// Times all_reduce, all_gather, reduce_scatter and send (from rank 0 to rank 1) of float32 tensors. Every member calls
// it with the same arguments and gets the same points. A point is the median over repeats of the slowest member's time;
// there are 3 to 100 repeats, as many as fit into `seconds_a_point`. A group of one gives no points.
std::vector<CollectivePoint> measure_collectives(Communicator& group, const std::vector<Bytes>& sizes,
                                                 Seconds seconds_a_point);

// The same with `num_ranks` ranks made for it as threads of this process, over loopback.
std::vector<CollectivePoint> measure_local_collectives(int num_ranks, const std::vector<Bytes>& sizes,
                                                       Seconds seconds_a_point);

}  // namespace ballast
