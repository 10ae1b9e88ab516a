#include "ballast/simulate/program.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace ballast {

bool is_send(SpanKind kind) { return kind == SpanKind::SEND_F || kind == SpanKind::SEND_B; }
bool is_receive(SpanKind kind) { return kind == SpanKind::RECV_F || kind == SpanKind::RECV_B; }

Op begin_span(const Span& label) { return {.kind = Op::Kind::begin, .label = label}; }
Op end_span() { return {.kind = Op::Kind::end, .label = {}}; }
Op compute(Seconds seconds) { return {.kind = Op::Kind::compute, .label = {}, .seconds = seconds}; }

Op post(const Span& label, Seconds seconds, int handle) {
  BALLAST_ASSERT(is_background(label.kind), "not of the background");
  return {.kind = Op::Kind::post, .label = label, .seconds = seconds, .handle = handle};
}

Op await(int handle, int stage) {
  return {.kind = Op::Kind::await, .label = {.kind = SpanKind::AWAIT, .stage = stage}, .seconds = 0, .handle = handle};
}

Op ring_attention(const Span& label, std::shared_ptr<const std::vector<RingPass>> passes, std::size_t pass) {
  return {.kind = Op::Kind::rings, .label = label, .passes = std::move(passes), .pass = pass};
}

RingsEnd end_of_rings(const std::vector<int>& group, const std::vector<const Op*>& ops,
                      const std::vector<Seconds>& arrivals, std::int64_t step) {
  std::vector<double> factors;
  for (const Op* op : ops) factors.push_back(op->compute_factor);
  std::vector<RingSpan> parts;
  const Op& any = *ops.front();
  RingsEnd found{.ends = (*any.passes)[any.pass].run(arrivals, &parts, factors), .waits = {}};
  found.waits.resize(group.size());
  for (const RingSpan& part : parts) {
    if (part.kind == RingSpan::Kind::attend) continue;
    const auto member = static_cast<std::size_t>(part.rank);
    Span span = ops[member]->label;
    span.kind = part.kind == RingSpan::Kind::move ? SpanKind::REMAP : SpanKind::RING_KV;
    span.rank = group[member];
    span.step = step;
    span.begin = part.begin;
    span.end = part.end;
    found.waits[member].push_back(span);
  }
  return found;
}

void append_in_order(std::vector<Span>& spans, const std::vector<Span>& own, const std::vector<Span>& background) {
  const auto first = static_cast<std::ptrdiff_t>(spans.size());
  spans.insert(spans.end(), own.begin(), own.end());
  if (background.empty()) return;
  spans.insert(spans.end(), background.begin(), background.end());
  std::stable_sort(spans.begin() + first, spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

Op communicate(const Span& label, Seconds seconds) {
  BALLAST_ASSERT(is_send(label.kind) || is_receive(label.kind) || is_collective(label.kind), "not communication");
  const Op::Kind kind = is_send(label.kind)      ? Op::Kind::send
                        : is_receive(label.kind) ? Op::Kind::receive
                                                 : Op::Kind::collective;
  return {.kind = kind, .label = label, .seconds = seconds};
}

MessageKey message_of(const Span& span, int rank) {
  const bool forward = span.kind == SpanKind::SEND_F || span.kind == SpanKind::RECV_F;
  if (is_send(span.kind)) {
    return {.from = rank, .to = span.peer, .forward = forward, .stage = span.stage, .micro_batch = span.micro_batch};
  }
  const int sender_stage = forward ? span.stage - 1 : span.stage + 1;
  return {.from = span.peer, .to = rank, .forward = forward, .stage = sender_stage, .micro_batch = span.micro_batch};
}

Violations Program::violations() const {
  Violations found = dims.violations();
  if (!found.empty()) return found;
  if (ranks.size() != static_cast<std::size_t>(dims.world_size())) {
    return {"the program has " + std::to_string(ranks.size()) + " ranks, not " + std::to_string(dims.world_size())};
  }
  for (int rank = 0; rank < dims.world_size(); ++rank) {
    int open = 0;
    std::set<int> posted;
    for (const Op& op : ranks[static_cast<std::size_t>(rank)]) {
      const std::string name = "rank " + std::to_string(rank) + " " + to_string(op.label.kind);
      if (!(std::isfinite(op.seconds) && op.seconds >= 0))
        found.push_back(name + ": a duration must be finite and 0 or more");
      switch (op.kind) {
        case Op::Kind::begin:
          ++open;
          break;
        case Op::Kind::end:
          if (--open < 0) found.push_back(name + ": a span ends that did not begin");
          break;
        case Op::Kind::compute:
          break;
        case Op::Kind::await:
          if (!posted.contains(op.handle)) found.push_back(name + ": waits for what it has not posted");
          break;
        case Op::Kind::post:
          if (!posted.insert(op.handle).second) found.push_back(name + ": a handle is used twice");
          [[fallthrough]];
        case Op::Kind::rings:
        case Op::Kind::collective: {
          const std::vector<int> group = axis_group(dims, op.label.axis, rank);
          if (std::find(group.begin(), group.end(), rank) == group.end()) {
            found.push_back(name + ": is not in its group over " + to_string(op.label.axis));
          }
          break;
        }
        case Op::Kind::send:
        case Op::Kind::receive:
          if (op.label.peer < 0 || op.label.peer >= dims.world_size()) found.push_back(name + ": no such peer");
          break;
      }
    }
    if (open > 0) found.push_back("rank " + std::to_string(rank) + ": a span never ends");
  }
  return found;
}

}  // namespace ballast
