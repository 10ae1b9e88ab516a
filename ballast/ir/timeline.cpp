#include "ballast/ir/timeline.h"

#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace ballast {

namespace {

constexpr std::array<std::pair<SpanKind, std::string_view>, 20> kKindNames{{
    {SpanKind::LOAD, "LOAD"},
    {SpanKind::F, "F"},
    {SpanKind::B, "B"},
    {SpanKind::SEND_F, "SEND_F"},
    {SpanKind::RECV_F, "RECV_F"},
    {SpanKind::SEND_B, "SEND_B"},
    {SpanKind::RECV_B, "RECV_B"},
    {SpanKind::GATHER_KV, "GATHER_KV"},
    {SpanKind::REDUCE_KV, "REDUCE_KV"},
    {SpanKind::EXCHANGE_TP, "EXCHANGE_TP"},
    {SpanKind::REDUCE_GRAD, "REDUCE_GRAD"},
    {SpanKind::UNSHARD, "UNSHARD"},
    {SpanKind::RESHARD, "RESHARD"},
    {SpanKind::AWAIT, "AWAIT"},
    {SpanKind::REDUCE_TIED, "REDUCE_TIED"},
    {SpanKind::REDUCE_NORM, "REDUCE_NORM"},
    {SpanKind::OPTIMIZER, "OPTIMIZER"},
    {SpanKind::CONTROL, "CONTROL"},
    {SpanKind::RING_KV, "RING_KV"},
    {SpanKind::REMAP, "REMAP"},
}};

constexpr std::array<std::pair<Axis, std::string_view>, 7> kAxisNames{{
    {Axis::none, "none"},
    {Axis::tp, "tp"},
    {Axis::cp, "cp"},
    {Axis::dp_cp, "dp_cp"},
    {Axis::pp, "pp"},
    {Axis::tied, "tied"},
    {Axis::world, "world"},
}};

}  // namespace

std::string to_string(SpanKind kind) {
  for (const auto& [value, name] : kKindNames) {
    if (value == kind) return std::string(name);
  }
  return "CHECKPOINT";
}

std::string to_string(Axis axis) {
  for (const auto& [value, name] : kAxisNames) {
    if (value == axis) return std::string(name);
  }
  return "?";
}

SpanKind parse_span_kind(std::string_view text) {
  for (const auto& [value, name] : kKindNames) {
    if (name == text) return value;
  }
  if (text == "CHECKPOINT") return SpanKind::CHECKPOINT;
  throw UserError("\"" + std::string(text) + "\" is not a kind of span");
}

Axis parse_axis(std::string_view text) {
  for (const auto& [value, name] : kAxisNames) {
    if (name == text) return value;
  }
  throw UserError("\"" + std::string(text) + "\" is not an axis: none, tp, cp, dp_cp, pp, tied, world");
}

bool is_compute(SpanKind kind) {
  return kind == SpanKind::F || kind == SpanKind::B || kind == SpanKind::LOAD || kind == SpanKind::OPTIMIZER ||
         kind == SpanKind::CHECKPOINT;
}

bool is_background(SpanKind kind) { return kind == SpanKind::UNSHARD || kind == SpanKind::RESHARD; }

bool is_collective(SpanKind kind) {
  return kind == SpanKind::GATHER_KV || kind == SpanKind::REDUCE_KV || kind == SpanKind::EXCHANGE_TP ||
         is_background(kind) || kind == SpanKind::REDUCE_GRAD || kind == SpanKind::REDUCE_TIED ||
         kind == SpanKind::REDUCE_NORM || kind == SpanKind::CONTROL;
}

std::vector<int> axis_group(const ParallelDims& dims, Axis axis, int rank) {
  switch (axis) {
    case Axis::none:
    case Axis::tp:
      return {rank};
    case Axis::cp:
      return dims.cp_group(rank);
    case Axis::dp_cp:
      return dims.dp_cp_group(rank);
    case Axis::pp:
      return dims.pp_group(rank);
    case Axis::tied:
      return dims.tied_group(rank);
    case Axis::world:
      break;
  }
  std::vector<int> all(static_cast<std::size_t>(dims.world_size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Violations Timeline::violations() const {
  Violations found = dims.violations();
  if (!found.empty()) return found;
  constexpr Seconds kSlack = 1e-9;                                         // rounding of printed times
  using Message = std::tuple<std::int64_t, SpanKind, int, int, int, int>;  // step, kind, stage, micro-batch, from, to
  std::map<Message, int> messages;
  for (const Span& span : spans) {
    const std::string name =
        "rank " + std::to_string(span.rank) + " step " + std::to_string(span.step) + " " + to_string(span.kind);
    if (span.rank < 0 || span.rank >= dims.world_size()) found.push_back(name + ": no such rank");
    if (span.end < span.begin - kSlack) found.push_back(name + ": ends before it begins");
    if (span.wait < 0 || span.lease < 0 || span.wait + span.lease > span.end - span.begin + kSlack + 1e-6) {
      found.push_back(name + ": waits longer than it lasts");
    }
    switch (span.kind) {
      case SpanKind::SEND_F:
        ++messages[{span.step, SpanKind::F, span.stage, span.micro_batch, span.rank, span.peer}];
        break;
      case SpanKind::RECV_F:
        --messages[{span.step, SpanKind::F, span.stage - 1, span.micro_batch, span.peer, span.rank}];
        break;
      case SpanKind::SEND_B:
        ++messages[{span.step, SpanKind::B, span.stage, span.micro_batch, span.rank, span.peer}];
        break;
      case SpanKind::RECV_B:
        --messages[{span.step, SpanKind::B, span.stage + 1, span.micro_batch, span.peer, span.rank}];
        break;
      default:
        break;
    }
  }
  for (const auto& [message, balance] : messages) {
    if (balance != 0) {
      found.push_back("step " + std::to_string(std::get<0>(message)) + ": a " + to_string(std::get<1>(message)) +
                      " message of stage " + std::to_string(std::get<2>(message)) + " micro-batch " +
                      std::to_string(std::get<3>(message)) + " lacks its " + (balance > 0 ? "receive" : "send"));
    }
  }
  return found;
}

}  // namespace ballast
