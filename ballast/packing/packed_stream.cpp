#include "ballast/packing/packed_stream.h"

#include <utility>

namespace ballast {

PackedStream::PackedStream(const PackingSpec& spec, const CostModel& cost, DocumentSource source)
    : spec_(spec), packer_(make_packer(spec, cost)), intake_(spec, std::move(source)) {}

std::optional<PackedStep> PackedStream::next() {
  while (ready_.empty() && !flushed_) {
    // One step comes of one global batch, so the number of batches taken is the step a batch is due at.
    std::vector<Document> batch = intake_.next_batch(packer_->backlog_tokens(), packer_->state().batches_taken);
    for (const Document& document : batch) held_tokens_ += document.length;
    flushed_ = intake_.ended();
    hold(flushed_ ? packer_->flush(std::move(batch)) : packer_->add(std::move(batch)));
  }
  if (ready_.empty()) return std::nullopt;
  PackedStep step = std::move(ready_.front());
  ready_.pop_front();
  for (const MicroBatch& micro_batch : step.micro_batches) {
    for (const Document& document : micro_batch.documents) {
      held_tokens_ -= document.length;
      documents_out_ += document.ends ? 1 : 0;
    }
  }
  return step;
}

void PackedStream::hold(std::vector<PackedStep> steps) {
  for (PackedStep& step : steps) ready_.push_back(std::move(step));
}

PackingCounts PackedStream::counts() const {
  PackingCounts counts = intake_.counts();
  counts.split += packer_->state().counts.split;
  counts.documents_out = documents_out_;
  return counts;
}

PackerState PackedStream::state() const {
  PackerState state = packer_->state();
  intake_.save(state);
  state.counts = counts();
  state.ready.assign(ready_.begin(), ready_.end());
  return state;
}

void PackedStream::restore(const PackerState& state) {
  require_valid(state.violations(), "packer state");
  PackerState of_packer = state;
  of_packer.counts = {};
  of_packer.intake.clear();
  of_packer.ready.clear();
  packer_->restore(std::move(of_packer));
  intake_.restore(state);
  ready_.assign(state.ready.begin(), state.ready.end());
  documents_out_ = state.counts.documents_out;
  held_tokens_ = state.held_tokens();
  for (const Document& document : state.intake) held_tokens_ -= document.length;
  flushed_ = false;
}

}  // namespace ballast
