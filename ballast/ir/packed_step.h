// The documents of one training step, packed into micro-batches. A micro-batch may be empty: a rank with nothing to do
// still runs it, with zero weight, so that every rank runs the same number and no collective waits for ever.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/ir/document.h"

namespace ballast {

struct MicroBatch {
  std::vector<Document> documents;

  Tokens num_tokens() const;
  Tokens num_labels() const;
  // Boundaries in packed coordinates: 0, then the running sum of lengths; one more entry than documents.
  std::vector<Tokens> cu_seqlens() const;
  bool operator==(const MicroBatch&) const = default;
};

struct PackedStep {
  std::int64_t step = 0;
  std::vector<MicroBatch> micro_batches;  // N, over all data parallel ranks

  Tokens num_tokens() const;
  Tokens num_labels() const;
  // `cap`: the most tokens a micro-batch may hold. Also: no token twice within the step.
  Violations violations(Tokens cap) const;
  bool operator==(const PackedStep&) const = default;
};

}  // namespace ballast
