// From a stream of whole documents to global batches: a step takes documents until it holds N windows of tokens, what
// it has left over from earlier steps included. Too long documents are handled first (see oversize.h); then, where the
// spec says so, documents are cut wherever plain packing would cut them, so that every packer sees equal pieces.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ballast/ir/packer_state.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// The next document of the data, whole: id, length and domain are read, the rest is set by the intake. Empty at the
// end.
using DocumentSource = std::function<std::optional<Document>()>;

// Documents of these lengths in this order, id by id. `lengths` must outlive it.
DocumentSource documents_of(const std::vector<Tokens>& lengths);

class Intake {
 public:
  Intake(PackingSpec spec, DocumentSource source);

  // Documents that bring `backlog` tokens to N windows or over, in arrival order, due at `step`. Fewer, or none, where
  // the data ends: then ended() is true.
  std::vector<Document> next_batch(Tokens backlog, std::int64_t step);
  bool ended() const { return ended_; }
  const PackingCounts& counts() const { return counts_; }

  // Its part of a packer's state: `intake`, `window_position`, `counts`. documents_in is the position in the stream.
  void save(PackerState& state) const;
  // The source must give the document after state.counts.documents_in next.
  void restore(const PackerState& state);

 private:
  void take(Document document);
  void cut_at_windows(Document document);

  PackingSpec spec_;
  DocumentSource source_;
  std::vector<Document> held_;  // parts not yet given, from held_begin_ on
  std::size_t held_begin_ = 0;
  Tokens window_position_ = 0;
  PackingCounts counts_;
  bool ended_ = false;
};

}  // namespace ballast
