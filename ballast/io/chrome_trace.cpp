#include "ballast/io/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

namespace {

using Json = nlohmann::ordered_json;

struct Extent {
  Seconds begin = 0;
  Seconds end = 0;
  void cover(const Span& span) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
};

// What to add to a step's times: nothing where steps follow one another, else what lays them end to end.
std::map<std::int64_t, Seconds> step_shifts(const Timeline& timeline) {
  std::map<std::int64_t, Extent> extents;
  for (const Span& span : timeline.spans)
    extents.try_emplace(span.step, Extent{span.begin, span.end}).first->second.cover(span);
  std::map<std::int64_t, Seconds> shifts;
  Seconds last_end = 0;
  for (const auto& [step, extent] : extents) {
    const Seconds shift = !shifts.empty() && extent.begin < last_end ? last_end - extent.begin : 0;
    shifts[step] = shift;
    last_end = extent.end + shift;
  }
  return shifts;
}

std::string category(SpanKind kind) {
  if (is_compute(kind)) return "compute";
  return is_collective(kind) ? "collective" : "p2p";
}

std::string label(const Span& span) {
  return to_string(span.kind) + (span.micro_batch >= 0 ? std::to_string(span.micro_batch) : "");
}

// Kineto's names for what a collective or a message is.
void add_communication(Json& args, const Span& span, const ParallelDims& dims) {
  args["bytes"] = span.bytes;
  args["dtype"] = "Byte";
  args["In msg nelems"] = span.bytes;
  if (is_collective(span.kind)) {
    const std::vector<int> group = axis_group(dims, span.axis, span.rank);
    const bool gathers = span.kind == SpanKind::GATHER_KV || span.kind == SpanKind::UNSHARD;
    const bool scatters = span.kind == SpanKind::REDUCE_KV || span.kind == SpanKind::RESHARD;
    args["Collective name"] = gathers ? "allgather" : scatters ? "reduce_scatter" : "allreduce";
    args["Group size"] = group.size();
    args["Process Group Name"] = to_string(span.axis);
    args["Process Group Ranks"] = group;
  } else {
    const bool sends = span.kind == SpanKind::SEND_F || span.kind == SpanKind::SEND_B;
    args["Collective name"] = sends ? "send" : "recv";
    args["Src Rank"] = sends ? span.rank : span.peer;
    args["Dst Rank"] = sends ? span.peer : span.rank;
  }
}

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const ChromeTraceOptions& options,
              const std::function<void(std::string_view)>& write)
      : timeline_(timeline), options_(options), write_(write), shifts_(step_shifts(timeline)) {
    has_background_ = std::any_of(timeline.spans.begin(), timeline.spans.end(),
                                  [](const Span& span) { return is_background(span.kind); });
  }

  void run() {
    const int world = timeline_.dims.world_size();
    const Json head = {{"backend", "gloo"}, {"rank", options_.rank.value_or(0)}, {"world_size", world}};
    write_(fmt::format(
        "{{\"schemaVersion\":1,\"deviceProperties\":[],\"distributedInfo\":{},\n\"source\":{},\"traceEvents\":[\n",
        head.dump(), Json(timeline_.source).dump()));
    for (int rank = 0; rank < world; ++rank) {
      if (wanted(rank)) name_process(rank);
    }
    write_steps();
    for (const Span& span : timeline_.spans) {
      if (!wanted(span.rank)) continue;
      write_span(span);
      write_flow(span);
    }
    write_("\n],\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0}\n");
  }

 private:
  bool wanted(int rank) const { return !options_.rank || *options_.rank == rank; }
  double micros(const Span& span, Seconds at) const { return round(1e6 * (at + shifts_.at(span.step))); }
  static double round(double micros) {
    return std::max(0.0, static_cast<double>(static_cast<std::int64_t>(micros * 10 + 0.5)) / 10);
  }

  void event(const Json& value) {
    write_(first_ ? "" : ",\n");
    write_(value.dump(-1, ' ', false, Json::error_handler_t::replace));
    first_ = false;
  }

  void name_process(int rank) {
    const RankCoordinate at = timeline_.dims.coordinate(rank);
    const std::string name =
        fmt::format("rank {} (dp {}, pp {}, cp {}), {}", rank, at.dp, at.pp, at.cp, timeline_.source);
    const auto metadata = [&](const char* what, Json args) {
      event({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", 0}, {"ts", 0}, {"args", std::move(args)}});
    };
    metadata("process_name", {{"name", name}});
    metadata("process_labels", {{"labels", options_.device}});
    metadata("process_sort_index", {{"sort_index", rank}});
    metadata("thread_name", {{"name", "actions"}});
    if (has_background_) {
      event({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", rank},
             {"tid", 1},
             {"ts", 0},
             {"args", {{"name", "background"}}}});
    }
  }

  void write_steps() {
    std::map<std::pair<int, std::int64_t>, Extent> extents;
    for (const Span& span : timeline_.spans) {
      extents.try_emplace({span.rank, span.step}, Extent{span.begin, span.end}).first->second.cover(span);
    }
    for (const auto& [key, extent] : extents) {
      const auto [rank, step] = key;
      if (!wanted(rank)) continue;
      const double begin = round(1e6 * (extent.begin + shifts_.at(step)));
      const double end = round(1e6 * (extent.end + shifts_.at(step)));
      event({{"ph", "X"},
             {"cat", "user_annotation"},
             {"name", "ProfilerStep#" + std::to_string(step)},
             {"pid", rank},
             {"tid", 0},
             {"ts", begin},
             {"dur", round(end - begin)},
             {"args", {{"step", step}}}});
    }
  }

  void write_span(const Span& span) {
    const double begin = micros(span, span.begin);
    const double end = micros(span, span.end);
    Json args = {{"step", span.step},
                 {"rank", span.rank},
                 {"wait_us", round(1e6 * span.wait)},
                 {"lease_us", round(1e6 * span.lease)}};
    if (span.stage >= 0) args["stage"] = span.stage;
    if (span.micro_batch >= 0) args["micro_batch"] = span.micro_batch;
    if (span.layer >= 0) args["layer"] = span.layer;
    if (!is_compute(span.kind) && span.kind != SpanKind::AWAIT) add_communication(args, span, timeline_.dims);
    event({{"ph", "X"},
           {"cat", category(span.kind)},
           {"name", label(span)},
           {"pid", span.rank},
           {"tid", is_background(span.kind) ? 1 : 0},
           {"ts", begin},
           {"dur", round(end - begin)},
           {"args", std::move(args)}});
    if (is_compute(span.kind)) return;
    // First the peers, then the core: as the span recorder sees them.
    const double waited = std::min(end, micros(span, span.begin + span.wait));
    const double leased = std::min(end, micros(span, span.begin + span.wait + span.lease));
    const auto inner = [&](const char* name, double from, double to) {
      if (to - from < 0.05) return;
      event({{"ph", "X"},
             {"cat", "wait"},
             {"name", name},
             {"pid", span.rank},
             {"tid", 0},
             {"ts", from},
             {"dur", round(to - from)},
             {"args", {{"step", span.step}}}});
    };
    inner("waits for a rank", begin, waited);
    inner("waits for a core", waited, leased);
  }

  // A send and its receive share what moves (kind, step, micro-batch), the stage it leaves, and both ranks.
  void write_flow(const Span& span) {
    const bool sends = span.kind == SpanKind::SEND_F || span.kind == SpanKind::SEND_B;
    const bool receives = span.kind == SpanKind::RECV_F || span.kind == SpanKind::RECV_B;
    if (options_.rank || (!sends && !receives)) return;  // the other end is in another file
    const bool forward = span.kind == SpanKind::SEND_F || span.kind == SpanKind::RECV_F;
    const int stage = sends ? span.stage : span.stage + (forward ? -1 : 1);
    const int from = sends ? span.rank : span.peer;
    const int to = sends ? span.peer : span.rank;
    const auto id =
        flows_.try_emplace({span.step, forward, stage, span.micro_batch, from, to}, flows_.size() + 1).first->second;
    Json flow = {{"ph", sends ? "s" : "f"},
                 {"cat", "p2p"},
                 {"name", forward ? "activations" : "gradients"},
                 {"id", id},
                 {"pid", span.rank},
                 {"tid", 0},
                 {"ts", micros(span, sends ? span.begin : span.begin + span.wait)}};
    if (receives) flow["bp"] = "e";
    event(flow);
  }

  const Timeline& timeline_;
  const ChromeTraceOptions& options_;
  const std::function<void(std::string_view)>& write_;
  std::map<std::int64_t, Seconds> shifts_;
  std::map<std::tuple<std::int64_t, bool, int, int, int, int>, std::size_t> flows_;
  bool has_background_ = false;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const Timeline& timeline, const ChromeTraceOptions& options,
                        const std::function<void(std::string_view)>& write) {
  if (options.rank && (*options.rank < 0 || *options.rank >= timeline.dims.world_size())) {
    throw UserError("rank " + std::to_string(*options.rank) + ": the run has ranks 0 to " +
                    std::to_string(timeline.dims.world_size() - 1));
  }
  TraceWriter(timeline, options, write).run();
}

}  // namespace ballast
