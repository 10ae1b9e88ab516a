// Fixed-length greedy packing (WLB-LLM, section 3.2: W2): whole documents in windows of S tokens, balanced by the sum
// of squared document lengths over K global batches. Left-overs of the last K batches first, then new documents, each
// longest first into the window of least sum among those it fits; what fits none is left over. The windows are then
// dealt to the K steps so that each step's N have sums as near to each other as can be. A step is K - 1 steps late at
// worst, which is what a wider balance costs; S_max has no meaning here, windows are all S.
//
// The solver takes the documents that greedy found windows for and asks an integer program for the heaviest window as
// light as can be, from the greedy answer on: solver/min_max_assignment.h.
#pragma once

#include <memory>

#include "ballast/packing/packer.h"

namespace ballast {

std::unique_ptr<Packer> make_fixed_greedy_packer(const PackingSpec& spec);
std::unique_ptr<Packer> make_fixed_solver_packer(const PackingSpec& spec);

}  // namespace ballast
