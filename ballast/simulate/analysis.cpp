#include "ballast/simulate/analysis.h"

#include <algorithm>
#include <limits>

#include "ballast/simulate/exchanges.h"
#include "ballast/simulate/program.h"

namespace ballast {

namespace {

bool is_pipeline_work(SpanKind kind) { return kind == SpanKind::F || kind == SpanKind::B; }

// Parts of one span without the spans inside it.
struct Part {
  const Span* span;
  Seconds own = 0;      // in none of the spans inside it
  Seconds blocked = 0;  // waits and lease that are not of spans inside it
  Seconds lease = 0;    // lease that is not of spans inside it
};

std::vector<Part> parts_of(const Timeline& timeline, const std::vector<std::size_t>& spans) {
  std::vector<Part> parts;
  std::vector<std::size_t> open;
  for (const std::size_t i : spans) {
    const Span& span = timeline.spans[i];
    const Seconds held = span.end - span.begin;
    if (is_background(span.kind)) {  // beside everything else
      parts.push_back({.span = &span});
      continue;
    }
    while (!open.empty() && timeline.spans[spans[open.back()]].end <= span.begin) open.pop_back();
    if (!open.empty()) {
      Part& outer = parts[open.back()];
      outer.own -= held;
      outer.blocked -= span.wait + span.lease;
      outer.lease -= span.lease;
    }
    open.push_back(parts.size());
    parts.push_back({.span = &span, .own = held, .blocked = span.wait + span.lease, .lease = span.lease});
  }
  return parts;
}

StepTime analyze(const Timeline& timeline, const StepSpans& step) {
  const std::vector<Exchange> exchanged = exchanges(timeline, step);
  StepTime time{.step = step.step,
                .begin = std::numeric_limits<Seconds>::max(),
                .end = std::numeric_limits<Seconds>::lowest(),
                .ranks = std::vector<RankTime>(step.ranks.size()),
                .seconds_by_kind = {}};
  Seconds pipeline_begin = std::numeric_limits<Seconds>::max();
  Seconds pipeline_end = std::numeric_limits<Seconds>::lowest();
  Seconds pipeline_busy = 0;
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    RankTime& own = time.ranks[rank];
    const std::vector<Part> parts = parts_of(timeline, step.ranks[rank]);
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const Part& part = parts[n];
      const Span& span = *part.span;
      time.begin = std::min(time.begin, span.begin);
      time.end = std::max(time.end, span.end);
      if (is_background(span.kind)) {
        time.seconds_by_kind[span.kind] += span.end - span.begin;
        continue;
      }
      if (is_compute(span.kind)) {
        const Seconds blocked = std::clamp(part.blocked, 0.0, std::max(0.0, part.own));
        const Seconds lease = std::clamp(part.lease, 0.0, blocked);
        own.work += part.own - blocked;
        own.wait += blocked - lease;
        own.lease += lease;
        time.seconds_by_kind[span.kind] += part.own - blocked;
        if (is_pipeline_work(span.kind)) {
          pipeline_begin = std::min(pipeline_begin, span.begin);
          pipeline_end = std::max(pipeline_end, span.end);
          pipeline_busy += span.end - span.begin;
        }
      } else {
        const Seconds held = std::max(0.0, part.own);
        const Seconds lease = std::min(span.lease, held);
        const Seconds cost = std::min(exchanged[step.ranks[rank][n]].cost, held - lease);
        own.communication += cost;
        own.lease += lease;
        own.wait += held - lease - cost;
        time.seconds_by_kind[span.kind] += cost;
        if (is_send(span.kind) || is_receive(span.kind)) pipeline_busy += cost;
      }
    }
  }
  for (RankTime& rank : time.ranks) {
    rank.idle = std::max(0.0, time.step_seconds() - rank.work - rank.communication - rank.wait - rank.lease);
  }
  const Seconds window = (pipeline_end - pipeline_begin) * static_cast<double>(step.ranks.size());
  if (window > 0) time.bubble_share = std::max(0.0, 1 - pipeline_busy / window);
  return time;
}

}  // namespace

Seconds StepTime::total_work() const {
  Seconds total = 0;
  for (const RankTime& rank : ranks) total += rank.work;
  return total;
}

double StepTime::imbalance() const {
  Seconds slowest = 0;
  for (const RankTime& rank : ranks) slowest = std::max(slowest, rank.work);
  const Seconds total = total_work();
  return total > 0 ? slowest * static_cast<double>(ranks.size()) / total : 1;
}

double StepTime::exposed_communication_share() const {
  Seconds communication = 0;
  for (const RankTime& rank : ranks) communication += rank.communication;
  const Seconds all = step_seconds() * static_cast<double>(ranks.size());
  return all > 0 ? communication / all : 0;
}

std::vector<StepTime> analyze(const Timeline& timeline) {
  std::vector<StepTime> times;
  for (const StepSpans& step : spans_by_step(timeline)) times.push_back(analyze(timeline, step));
  return times;
}

std::vector<PredictionError> prediction_errors(const Timeline& predicted, const Timeline& measured) {
  std::map<std::int64_t, StepTime> by_step;
  for (StepTime& time : analyze(predicted)) by_step.emplace(time.step, std::move(time));
  std::vector<PredictionError> errors;
  for (const StepTime& actual : analyze(measured)) {
    const auto found = by_step.find(actual.step);
    if (found == by_step.end()) continue;
    const StepTime& expected = found->second;
    PredictionError error{.step = actual.step,
                          .predicted = expected.step_seconds(),
                          .measured = actual.step_seconds(),
                          .relative_by_kind = {}};
    if (error.measured > 0) error.relative = (error.predicted - error.measured) / error.measured;
    for (const auto& [kind, seconds] : actual.seconds_by_kind) {
      const auto same = expected.seconds_by_kind.find(kind);
      const Seconds other = same == expected.seconds_by_kind.end() ? 0 : same->second;
      if (seconds > 0) error.relative_by_kind[kind] = (other - seconds) / seconds;
    }
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace ballast
