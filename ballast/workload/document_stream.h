// The order in which a run meets the documents of its corpus: a pure function of (seed, epoch), the same on any
// machine, so a position is two numbers and a resumed run goes on as if it had never stopped. Knows lengths and domains
// only; no tokens, no files. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/ir/document.h"

namespace ballast {

struct StreamOrder {
  bool shuffle = true;  // a new order every epoch; false: the corpus's order
  std::uint64_t seed = 1;
  std::int64_t num_epochs = 0;     // how often each document comes; 0: for ever
  std::int64_t num_documents = 0;  // only those that are the first so many of epoch 0; 0, or more than there are: all
};

// The next document to come: the index-th of the epoch.
struct StreamPosition {
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  bool operator==(const StreamPosition&) const = default;
};

class DocumentStream {
 public:
  // `lengths[i]`, `domains[i]`: of corpus document i. Throws UserError where there is no document at all.
  // REQUIRES: both of one size, no value negative.
  DocumentStream(std::vector<Tokens> lengths, std::vector<int> domains, StreamOrder order);

  // A whole document with its id, length and domain, and `arrival` = its ordinal over all epochs. The caller sets
  // due_step. Nothing once all epochs are done.
  std::optional<Document> next();

  StreamPosition position() const { return position_; }

  // Throws UserError where the corpus has no such position (it is then not the corpus the position was taken in).
  void seek(StreamPosition position);

  // Of an epoch.
  std::int64_t num_documents() const { return static_cast<std::int64_t>(permutation_.size()); }

 private:
  // All documents of the corpus in the order of an epoch.
  std::vector<std::int64_t> full_order(std::int64_t epoch) const;
  void start_epoch();

  std::vector<Tokens> lengths_;
  std::vector<int> domains_;
  StreamOrder order_;
  std::vector<char> taken_;  // by document of the corpus; empty: all are
  StreamPosition position_;
  std::vector<std::int64_t> permutation_;  // of the epoch of position_
};

}  // namespace ballast
