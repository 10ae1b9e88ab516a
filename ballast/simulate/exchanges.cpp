#include "ballast/simulate/exchanges.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "ballast/simulate/program.h"

namespace ballast {

std::vector<StepSpans> spans_by_step(const Timeline& timeline) {
  std::map<std::int64_t, StepSpans> steps;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    StepSpans& step = steps[span.step];
    step.step = span.step;
    step.ranks.resize(static_cast<std::size_t>(timeline.dims.world_size()));
    step.ranks[static_cast<std::size_t>(span.rank)].push_back(i);
  }
  std::vector<StepSpans> ordered;
  for (auto& [number, step] : steps) {
    for (auto& spans : step.ranks) {
      std::stable_sort(spans.begin(), spans.end(),
                       [&](std::size_t a, std::size_t b) { return timeline.spans[a].begin < timeline.spans[b].begin; });
    }
    ordered.push_back(std::move(step));
  }
  return ordered;
}

std::vector<Exchange> exchanges(const Timeline& timeline, const StepSpans& step) {
  std::vector<Exchange> found(timeline.spans.size());
  std::map<MessageKey, std::deque<Seconds>> sent;
  std::map<std::tuple<Axis, int, std::int64_t>, std::vector<std::size_t>> collectives;
  const auto held = [](const Span& span) { return std::max(0.0, span.end - span.begin - span.lease); };

  for (const auto& spans : step.ranks) {
    std::map<Axis, std::int64_t> joined;
    for (const std::size_t i : spans) {
      const Span& span = timeline.spans[i];
      found[i] = {.ready = span.begin + span.wait, .cost = std::max(0.0, held(span) - span.wait)};
      // A rank waits for a message under way, not for a peer to begin.
      if (span.kind == SpanKind::RING_KV || span.kind == SpanKind::REMAP) {
        found[i] = {.ready = span.begin, .cost = held(span)};
      }
      if (is_send(span.kind)) sent[message_of(span, span.rank)].push_back(span.end);
      if (is_collective(span.kind)) {
        const int first = axis_group(timeline.dims, span.axis, span.rank).front();
        collectives[{span.axis, first, joined[span.axis]++}].push_back(i);
      }
    }
  }
  for (const auto& [key, members] : collectives) {
    const Span& any = timeline.spans[members.front()];
    if (members.size() != axis_group(timeline.dims, any.axis, any.rank).size()) continue;
    Exchange whole{.ready = any.begin, .cost = held(any)};
    for (const std::size_t i : members) {
      whole.ready = std::max(whole.ready, timeline.spans[i].begin);
      whole.cost = std::min(whole.cost, held(timeline.spans[i]));
    }
    for (const std::size_t i : members) found[i] = whole;
  }
  for (const auto& spans : step.ranks) {
    for (const std::size_t i : spans) {
      const Span& span = timeline.spans[i];
      if (!is_receive(span.kind)) continue;
      std::deque<Seconds>& messages = sent[message_of(span, span.rank)];
      if (messages.empty()) continue;
      const Seconds ready = std::max(span.begin, messages.front());
      found[i] = {.ready = ready, .cost = std::max(0.0, span.end - span.lease - ready)};
      messages.pop_front();
    }
  }
  return found;
}

}  // namespace ballast
