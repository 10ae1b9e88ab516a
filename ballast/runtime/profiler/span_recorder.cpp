#include "ballast/runtime/profiler/span_recorder.h"

#include <algorithm>
#include <utility>

namespace ballast {

SpanRecorder::SpanRecorder(int rank, std::chrono::steady_clock::time_point epoch, RankHooks& hooks)
    : rank_(rank), epoch_(epoch), hooks_(hooks) {}

Seconds SpanRecorder::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch_).count();
}

void SpanRecorder::open(Span what) {
  what.rank = rank_;
  what.step = step_;
  what.begin = now();
  open_.push_back(what);
}

void SpanRecorder::close() {
  BALLAST_ASSERT(!open_.empty(), "close() without open()");
  Span span = open_.back();
  open_.pop_back();
  span.end = now();
  done_.push_back(span);
}

std::vector<Span> SpanRecorder::take() {
  BALLAST_ASSERT(open_.empty(), "a span is still open");
  // Outer before inner where both begin at once.
  std::stable_sort(done_.begin(), done_.end(),
                   [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return std::exchange(done_, {});
}

void SpanRecorder::wait_begins(std::string_view /*what*/) {
  wait_began_ = now();  // before the core is given: its next holder may run before this thread goes on
  hooks_.compute_ends();
}

void SpanRecorder::wait_ends() {
  const Seconds arrived = now();
  hooks_.compute_begins();
  const Seconds leased = now();
  for (Span& span : open_) {
    span.wait += arrived - wait_began_;
    span.lease += leased - arrived;
  }
}

}  // namespace ballast
