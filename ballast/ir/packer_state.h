// Everything a packer remembers between steps: held documents and counters, a few KB and no replay. It is saved with a
// checkpoint, so a restart goes on with the same documents in the same order (requirement W12).
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/ir/document.h"
#include "ballast/ir/packed_step.h"

namespace ballast {

struct PackingCounts {
  std::int64_t documents_in = 0;   // corpus documents taken
  std::int64_t documents_out = 0;  // corpus documents whose last part was packed
  std::int64_t truncated = 0;      // documents shortened to the window...
  Tokens truncated_tokens = 0;     // ...and the tokens they lost
  std::int64_t split = 0;          // documents cut into several parts
  bool operator==(const PackingCounts&) const = default;
};

struct PackerState {
  std::int64_t next_step = 0;                 // number of the next step it will return
  std::int64_t batches_taken = 0;             // global batches fed so far
  std::vector<Document> pending;              // left over, or gathered for the next step, in order
  std::vector<std::vector<Document>> queues;  // outlier queues by band, oldest first
  std::vector<PackedStep> ready;              // packed, not yet handed out: a packer may make several steps at once
  std::vector<Document> intake;               // taken from the stream, not yet given to the packer
  Tokens window_position = 0;                 // where documents are cut at windows: tokens in the window being filled
  std::vector<Tokens> arrived_tokens;         // by domain, where the packer keeps the mix of domains; else empty
  PackingCounts counts;

  Tokens held_tokens() const;
  Violations violations() const;
  bool operator==(const PackerState&) const = default;
};

}  // namespace ballast
