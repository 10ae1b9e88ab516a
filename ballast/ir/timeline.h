// What every rank did and when: one format for prediction, measurement and replay. Requirement B1: the same plan gives
// a timeline in the simulator and in the trainer, and their difference is printed.
//
// Spans of one rank are in order of time. Spans of `compute` kinds (F, B, LOAD, OPTIMIZER) may contain communication
// spans (a gather inside a layer); those lie inside and never cross their ends. What is left of a compute span without
// the spans inside it is its work. Spans of `background` kinds (RESHARD, UNSHARD) run beside all others, on a stream of
// their own, and lie inside none; where a rank waits for one it has an AWAIT.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"
#include "ballast/spec/parallel_dims.h"

namespace ballast {

enum class SpanKind {
  LOAD,  // read the step's tokens
  F,     // forward of a stage
  B,     // backward of a stage
  SEND_F,
  RECV_F,
  SEND_B,
  RECV_B,
  GATHER_KV,    // context parallel: all-gather of keys and values
  REDUCE_KV,    // context parallel: reduce-scatter of their gradients
  EXCHANGE_TP,  // tensor parallel: a layer's all-gathers and reduce-scatters among the GPUs that stand as one rank
  REDUCE_GRAD,  // gradients over the dp x cp axis
  REDUCE_TIED,  // gradient of a tied embedding between first and last stage
  UNSHARD,      // background: all-gather of a stage's weights over the dp x cp axis
  RESHARD,      // background: reduce-scatter of a stage's gradients over the dp x cp axis
  AWAIT,        // until a background transfer of this rank is done
  REDUCE_NORM,  // loss and gradient norm over all ranks
  OPTIMIZER,
  CONTROL,  // agreement on plan, stop flags
  RING_KV,  // context parallel: waits for keys, values or their gradients on their way round a ring
  REMAP,    // context parallel: tokens moved between attention and linear order
  CHECKPOINT,
};

// Which group of ranks a collective spans; the members follow from ParallelDims.
// tp: GPUs of a tensor parallel group do the same work and stand as one rank, so the group has one member here.
enum class Axis { none, tp, cp, dp_cp, pp, tied, world };

struct Span {
  int rank = 0;
  std::int64_t step = 0;
  SpanKind kind = SpanKind::F;
  int stage = -1;        // -1: not of a stage
  int micro_batch = -1;  // of this rank's pipeline; -1: of none
  int layer = -1;
  Seconds begin = 0;  // one clock for all ranks; 0 is the start of the run (of the step, where predicted)
  Seconds end = 0;
  Seconds wait = 0;        // of the span, blocked on another rank (all but nothing for compute kinds themselves)
  Seconds lease = 0;       // of the span, blocked on this machine's core, which another rank held (see `replayed`)
  Bytes bytes = 0;         // sent by this rank
  int peer = -1;           // the other rank, of a send or receive
  Axis axis = Axis::none;  // the group, of a collective

  bool operator==(const Span&) const = default;
};

struct Timeline {
  std::string source;  // "measured", "predicted" or "replayed"
  ParallelDims dims;
  std::vector<Span> spans;

  // Ranks in range, ends not before begins, waits within spans, sends with their receive.
  Violations violations() const;
  bool operator==(const Timeline&) const = default;
};

std::string to_string(SpanKind kind);
std::string to_string(Axis axis);
SpanKind parse_span_kind(std::string_view text);  // throws UserError
Axis parse_axis(std::string_view text);           // throws UserError
bool is_compute(SpanKind kind);                   // F, B, LOAD, OPTIMIZER, CHECKPOINT
bool is_background(SpanKind kind);                // UNSHARD, RESHARD
bool is_collective(SpanKind kind);                // every member of the axis group takes part
std::vector<int> axis_group(const ParallelDims& dims, Axis axis, int rank);

}  // namespace ballast
