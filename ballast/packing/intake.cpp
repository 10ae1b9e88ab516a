#include "ballast/packing/intake.h"

#include <utility>

#include "ballast/packing/oversize.h"

namespace ballast {

DocumentSource documents_of(const std::vector<Tokens>& lengths) {
  return [&lengths, at = std::size_t{0}]() mutable -> std::optional<Document> {
    if (at == lengths.size()) return std::nullopt;
    const auto id = static_cast<std::int64_t>(at);
    return Document{.id = id, .length = lengths[at++]};
  };
}

Intake::Intake(PackingSpec spec, DocumentSource source) : spec_(std::move(spec)), source_(std::move(source)) {}

std::vector<Document> Intake::next_batch(Tokens backlog, std::int64_t step) {
  const Tokens wanted = spec_.window * spec_.micro_batches - backlog;
  std::vector<Document> batch;
  Tokens taken = 0;
  while (taken < wanted) {
    if (held_begin_ == held_.size()) {
      held_.clear();
      held_begin_ = 0;
      std::optional<Document> document = source_();
      if (!document) {
        ended_ = true;
        break;
      }
      take(*document);
      continue;
    }
    Document part = held_[held_begin_++];
    part.due_step = step;
    taken += part.length;
    batch.push_back(part);
  }
  return batch;
}

void Intake::take(Document document) {
  document.arrival = counts_.documents_in++;
  document.begin = 0;
  document.ends = true;
  if (!spec_.cut_at_windows) return apply_oversize(spec_, document, held_, counts_);
  std::vector<Document> parts;
  apply_oversize(spec_, document, parts, counts_);
  for (const Document& part : parts) cut_at_windows(part);
}

void Intake::cut_at_windows(Document document) {
  while (window_position_ + document.length > spec_.window) {
    held_.push_back(cut_front(document, spec_.window - window_position_, counts_));
    window_position_ = 0;
  }
  window_position_ = (window_position_ + document.length) % spec_.window;
  held_.push_back(document);
}

void Intake::save(PackerState& state) const {
  state.intake.assign(held_.begin() + static_cast<std::ptrdiff_t>(held_begin_), held_.end());
  state.window_position = window_position_;
  state.counts = counts_;
}

void Intake::restore(const PackerState& state) {
  held_ = state.intake;
  held_begin_ = 0;
  window_position_ = state.window_position;
  counts_ = state.counts;
  ended_ = false;
}

}  // namespace ballast
