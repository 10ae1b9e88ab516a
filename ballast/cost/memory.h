// Bytes of a GPU's memory by part (requirement L1), sized by the longest micro-batch that the packer can emit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/ir/schedule.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct MemoryParts {
  Bytes weights = 0;      // in the computing type
  Bytes gradients = 0;    // float32 (float64 where that computes)
  Bytes optimizer = 0;    // two moments, and the weights once more where they compute in bfloat16
  Bytes activations = 0;  // kept for backward, of the most virtual stages in flight
  Bytes logits = 0;       // of one micro-batch on the last stage, with their gradient, in float32
  Bytes temporary = 0;    // of the backward of one layer
  Bytes exchange = 0;     // gathered keys and values of a layer and their gradients; a stage's input and output
  Bytes margin = 0;       // fragmentation and the libraries' own: a share of the rest

  Bytes total() const;
  std::vector<std::pair<std::string, Bytes>> named() const;
};

inline constexpr double kMemoryMargin = 0.06;

// Of a GPU of pipeline rank `pp`, on the run's cluster. Without a cluster: what the tensors of a rank of Ballast's own
// trainer hold at most, as its metrics count them, without a margin. `schedule`: of that pipeline. REQUIRES: the run
// has no violations.
MemoryParts memory_of_rank(const RunSpec& run, const Schedule& schedule, int pp);

// S_max by memory (requirement W3): the most tokens of a micro-batch with which pipeline rank `pp` needs no more than
// `bytes`; 0 where not even an empty one fits. REQUIRES: as memory_of_rank.
Tokens longest_micro_batch(RunSpec run, const Schedule& schedule, int pp, Bytes bytes);

// Of a checkpoint of the whole run: weights, moments and, where they compute in bfloat16, the weights once more.
Bytes checkpoint_bytes(const RunSpec& run);

}  // namespace ballast
