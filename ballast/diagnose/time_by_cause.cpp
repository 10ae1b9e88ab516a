#include "ballast/diagnose/time_by_cause.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ballast {

namespace {

// Indices of a rank's spans of one step by begin, outer before inner where both begin at once. Steps are kept apart
// because each step of a predicted timeline begins at 0.
std::map<std::pair<int, std::int64_t>, std::vector<std::size_t>> spans_by_rank_and_step(const Timeline& timeline) {
  std::map<std::pair<int, std::int64_t>, std::vector<std::size_t>> grouped;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    grouped[{timeline.spans[i].rank, timeline.spans[i].step}].push_back(i);
  }
  for (auto& [key, indices] : grouped) {
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
      const Span& x = timeline.spans[a];
      const Span& y = timeline.spans[b];
      return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
  }
  return grouped;
}

Cause busy_cause(SpanKind kind) {
  switch (kind) {
    case SpanKind::F:
      return Cause::forward;
    case SpanKind::B:
      return Cause::backward;
    case SpanKind::LOAD:
    case SpanKind::OPTIMIZER:
    case SpanKind::CHECKPOINT:
      return Cause::other_work;
    default:
      return Cause::transfer;
  }
}

}  // namespace

std::string_view to_string(Cause cause) {
  constexpr std::array<std::string_view, kNumCauses> kNames{
      "forward",           "backward",           "other work",       "transfer",        "wait for pipeline",
      "wait for CP group", "wait for gradients", "wait for control", "wait for a core", "idle"};
  return kNames[static_cast<std::size_t>(cause)];
}

Cause wait_cause(SpanKind kind) {
  switch (kind) {
    case SpanKind::SEND_F:
    case SpanKind::RECV_F:
    case SpanKind::SEND_B:
    case SpanKind::RECV_B:
      return Cause::wait_pipeline;
    case SpanKind::F:
    case SpanKind::B:
    case SpanKind::GATHER_KV:
    case SpanKind::REDUCE_KV:
    case SpanKind::RING_KV:
    case SpanKind::REMAP:
      return Cause::wait_cp;  // inside a stage only the cp group is waited for
    case SpanKind::REDUCE_GRAD:
    case SpanKind::REDUCE_TIED:
    case SpanKind::UNSHARD:
    case SpanKind::RESHARD:
    case SpanKind::AWAIT:
    case SpanKind::EXCHANGE_TP:  // its members never wait for each other
    case SpanKind::REDUCE_NORM:
    case SpanKind::OPTIMIZER:
      return Cause::wait_gradients;
    case SpanKind::LOAD:
    case SpanKind::CONTROL:
    case SpanKind::CHECKPOINT:
      break;
  }
  return Cause::wait_control;
}

Seconds CauseSeconds::work() const {
  return (*this)[Cause::forward] + (*this)[Cause::backward] + (*this)[Cause::other_work];
}

Seconds CauseSeconds::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

std::vector<OwnTime> own_times(const Timeline& timeline) {
  std::vector<OwnTime> own(timeline.spans.size());
  for (const auto& [key, indices] : spans_by_rank_and_step(timeline)) {
    std::vector<std::size_t> open;  // spans that contain the current one, outermost first
    for (const std::size_t i : indices) {
      const Span& span = timeline.spans[i];
      if (is_background(span.kind)) continue;  // takes nothing of the rank's time
      while (!open.empty() && timeline.spans[open.back()].end <= span.begin) open.pop_back();
      own[i] = {span.end - span.begin, span.wait, span.lease};
      if (!open.empty()) {
        OwnTime& outer = own[open.back()];
        outer.busy -= span.end - span.begin;
        outer.wait -= span.wait;
        outer.lease -= span.lease;
      }
      open.push_back(i);
    }
  }
  for (OwnTime& time : own) {
    // Inner waits may be counted on the inner span only, and printed times are rounded.
    time.wait = std::max(time.wait, 0.0);
    time.lease = std::max(time.lease, 0.0);
    time.busy = std::max(time.busy - time.wait - time.lease, 0.0);
  }
  return own;
}

std::vector<StepExtent> step_extents(const Timeline& timeline) {
  std::map<std::int64_t, StepExtent> extents;
  for (const Span& span : timeline.spans) {
    const auto [found, fresh] = extents.try_emplace(span.step, StepExtent{span.step, span.begin, span.end});
    if (!fresh) {
      found->second.begin = std::min(found->second.begin, span.begin);
      found->second.end = std::max(found->second.end, span.end);
    }
  }
  std::vector<StepExtent> list;
  for (const auto& [step, extent] : extents) list.push_back(extent);
  return list;
}

namespace {

Seconds total_duration(const Timeline& timeline, const std::set<std::int64_t>& skip) {
  Seconds total = 0;
  for (const StepExtent& extent : step_extents(timeline)) {
    if (!skip.contains(extent.step)) total += extent.duration();
  }
  return total;
}

}  // namespace

LongestWait longest_wait(const Timeline& timeline, const std::set<std::int64_t>& skip) {
  std::map<std::pair<int, SpanKind>, Seconds> waits;
  const std::vector<OwnTime> own = own_times(timeline);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (!skip.contains(span.step)) waits[{span.rank, span.kind}] += own[i].wait;
  }
  LongestWait longest;
  for (const auto& [who, seconds] : waits) {
    if (seconds > longest.seconds) longest = {who.first, who.second, seconds, 0};
  }
  const Seconds total = total_duration(timeline, skip);
  if (total > 0) longest.share = longest.seconds / total;
  return longest;
}

std::vector<CauseSeconds> time_by_cause(const Timeline& timeline, const std::set<std::int64_t>& skip) {
  std::vector<CauseSeconds> by_rank(static_cast<std::size_t>(timeline.dims.world_size()));
  const std::vector<OwnTime> own = own_times(timeline);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (skip.contains(span.step)) continue;
    CauseSeconds& rank = by_rank[static_cast<std::size_t>(span.rank)];
    rank[busy_cause(span.kind)] += own[i].busy;
    rank[wait_cause(span.kind)] += own[i].wait;
    rank[Cause::wait_lease] += own[i].lease;
  }
  const Seconds total = total_duration(timeline, skip);
  for (CauseSeconds& rank : by_rank) rank[Cause::idle] = std::max(total - rank.total(), 0.0);
  return by_rank;
}

}  // namespace ballast
