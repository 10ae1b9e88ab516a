// Share of a step's time that a pipeline's ranks idle when all stages and micro-batches take the same time and sends
// take none. What a measured or predicted share is compared with.
#pragma once

namespace ballast {

// idle / (idle + N V), in units of one virtual stage's forward and backward, where
//   idle = P-1               for N >= P, and for 1F1B (V = 1)
//   idle = V (P-N) + N-1     for N < P: the only round leaves ranks idle between virtual stages
// REQUIRES: all 1 or more.
double ideal_bubble_share(int num_ranks, int virtual_stages, int num_micro_batches);

}  // namespace ballast
