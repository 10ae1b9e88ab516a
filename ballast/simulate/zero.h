// When a rank of a pipeline exchanges weights and gradients under ZeRO (requirement L2; Llama 3, section 3.3): the
// transfers that go with the actions of its schedule, all in the background.
// A transfer is of a stage; it is posted layer by layer: weights all at once and awaited as each layer is reached,
// gradients as each layer's backward ends.
//   1  a stage's weights are gathered once, before anything else; its gradients scattered once, after its last
//      backward
//   2  gradients are scattered after every run of backwards of a stage, so that they need not be kept: once a stage
//      where all backwards stand together (all-forward-all-backward)
//   3  weights, too, are gathered for every run of actions of a stage, one run ahead
#pragma once

#include <map>
#include <vector>

#include "ballast/ir/schedule.h"

namespace ballast {

struct ZeroTransfer {
  enum class Kind { post_unshard, post_reshard, await };
  Kind kind = Kind::await;
  int stage = 0;
  int handle = 0;
  bool operator==(const ZeroTransfer&) const = default;
};

struct ZeroTransfers {
  std::map<std::size_t, std::vector<ZeroTransfer>> before;  // by action
  std::map<std::size_t, std::vector<ZeroTransfer>> after;   // as its layers end
  std::vector<ZeroTransfer> at_end;                         // before the optimizer
};

// `actions`: of one rank. Nothing where zero is 0.
ZeroTransfers zero_transfers(const std::vector<Action>& actions, int zero);

}  // namespace ballast
