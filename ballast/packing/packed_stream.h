// Packed steps from a stream of documents: an intake and a packer under one state. This is what a trainer or the
// command line asks for the next step. One thread at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "ballast/packing/intake.h"
#include "ballast/packing/packer.h"

namespace ballast {

class PackedStream {
 public:
  // Throws as make_packer does. `cost` must outlive the stream.
  PackedStream(const PackingSpec& spec, const CostModel& cost, DocumentSource source);

  // The next step, or nothing once the data has ended and everything was handed out. Throws UserError where a document
  // is refused, and whatever the source throws.
  std::optional<PackedStep> next();

  // Everything it remembers; restored into a stream of the same spec whose source stands at counts.documents_in, the
  // following steps are the same. Throws UserError for a state with violations.
  PackerState state() const;
  void restore(const PackerState& state);

  // Whether the data has ended: what next() still returns empties the packer.
  bool ended() const { return flushed_; }

  PackingCounts counts() const;
  Tokens held_tokens() const { return held_tokens_; }
  SolverRecord solver_record() const { return packer_->solver_record(); }

 private:
  void hold(std::vector<PackedStep> steps);

  PackingSpec spec_;
  std::unique_ptr<Packer> packer_;
  Intake intake_;
  std::deque<PackedStep> ready_;
  std::int64_t documents_out_ = 0;
  Tokens held_tokens_ = 0;  // taken from the source and not handed out, parts waiting in the intake left aside
  bool flushed_ = false;
};

}  // namespace ballast
