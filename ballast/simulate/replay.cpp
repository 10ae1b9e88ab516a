#include "ballast/simulate/replay.h"

#include <algorithm>
#include <utility>

#include "ballast/simulate/engine.h"

namespace ballast {

namespace {

// A compute span that is open while its rank's spans are walked in order.
struct Open {
  const Span* span;
  Seconds blocked;               // waits and lease of its own still to be taken off its pieces of work
  std::vector<std::size_t> ops;  // its pieces of work
};

// Whether `inner` lies inside `outer`. On the border, where a span may have no length, labels decide.
bool contains(const Span& outer, const Span& inner) {
  if (inner.begin < outer.end) return inner.end <= outer.end + 1e-9;
  return inner.begin == outer.end && inner.end == outer.end && is_collective(inner.kind) &&
         inner.stage == outer.stage && inner.micro_batch == outer.micro_batch && outer.stage >= 0;
}

class RankReplay {
 public:
  explicit RankReplay(Seconds begin) : cursor_(begin) {}

  void add(const Span& span, Seconds cost) {
    while (!open_.empty() && !contains(*open_.back().span, span)) close();
    work_until(span.begin);
    if (is_compute(span.kind)) {
      ops_.push_back(begin_span(label_of(span)));
      open_.push_back({.span = &span, .blocked = span.wait + span.lease, .ops = {}});
      return;
    }
    if (span.end <= cursor_ && span.begin < cursor_) return;  // inside other communication, which counts for it
    if (span.kind == SpanKind::RING_KV || span.kind == SpanKind::REMAP) {
      // Its messages were not recorded: the wait stays as long as it was without the lease.
      ops_.push_back(begin_span(label_of(span)));
      ops_.push_back(compute(cost));
      ops_.push_back(end_span());
    } else {
      ops_.push_back(communicate(label_of(span), cost));
    }
    if (!open_.empty()) open_.back().blocked -= span.wait + span.lease;
    cursor_ = std::max(cursor_, span.end);
  }

  std::vector<Op> finish() {
    while (!open_.empty()) close();
    return std::move(ops_);
  }

 private:
  static Span label_of(Span span) {
    span.wait = 0;
    span.lease = 0;
    return span;
  }

  void work_until(Seconds time) {
    if (time <= cursor_) return;
    if (!open_.empty()) open_.back().ops.push_back(ops_.size());
    ops_.push_back(compute(time - cursor_));
    cursor_ = time;
  }

  void close() {
    work_until(open_.back().span->end);
    ops_.push_back(end_span());
    Open& closed = open_.back();
    for (const std::size_t i : closed.ops) {
      const Seconds taken = std::clamp(closed.blocked, 0.0, ops_[i].seconds);
      ops_[i].seconds -= taken;
      closed.blocked -= taken;
    }
    const Seconds inside = closed.span->wait + closed.span->lease;
    open_.pop_back();
    if (!open_.empty()) open_.back().blocked -= inside;
  }

  Seconds cursor_;  // everything before it is accounted for
  std::vector<Open> open_;
  std::vector<Op> ops_;
};

}  // namespace

Program replay_program(const Timeline& measured, const StepSpans& step) {
  const std::vector<Exchange> exchanged = exchanges(measured, step);
  Program program{.step = step.step, .dims = measured.dims, .ranks = {}};
  for (const auto& spans : step.ranks) {
    RankReplay rank(spans.empty() ? 0 : measured.spans[spans.front()].begin);
    for (const std::size_t i : spans) rank.add(measured.spans[i], exchanged[i].cost);
    program.ranks.push_back(rank.finish());
  }
  return program;
}

Timeline replay(const Timeline& measured) {
  Timeline whole{.source = "replayed", .dims = measured.dims, .spans = {}};
  Seconds begin = 0;
  for (const StepSpans& step : spans_by_step(measured)) {
    const Timeline part = execute(replay_program(measured, step), "replayed", begin);
    for (const Span& span : part.spans) begin = std::max(begin, span.end);
    whole.spans.insert(whole.spans.end(), part.spans.begin(), part.spans.end());
  }
  return whole;
}

}  // namespace ballast
