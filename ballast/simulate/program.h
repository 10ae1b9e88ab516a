// What every rank does in one step, as a list of operations with known durations: the common form of a prediction
// (durations from the cost model, predict.h) and of a replay (durations from a measured timeline, replay.h). The engine
// runs it and writes a timeline.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/cost/ring_pass.h"
#include "ballast/ir/timeline.h"

namespace ballast {

struct Op {
  enum class Kind {
    begin,  // opens a span of a compute kind; the operations up to its `end` lie inside
    end,
    compute,     // the rank works for `seconds`
    collective,  // begins when its last member arrives and lasts `seconds`; members are label.axis of the rank
    send,        // the rank works for `seconds`, then the message is on its way; never blocks
    receive,     // begins when this rank is here and the message was sent, and lasts `seconds`
    post,        // starts a collective beside the rank's work, once all members have posted theirs and the transfers of
                 // this axis that they posted before are done; the rank goes on
    await,       // the rank waits until what it posted under `handle` is done
    rings,       // one pass of a layer's attention in rings: the cp ranks end as `pass` says for when each arrived
  };

  Kind kind = Kind::compute;
  Span label;  // of all but compute and end: kind, stage, micro-batch, layer, bytes, peer, axis
  Seconds seconds = 0;
  int handle = -1;  // of a post, and of the await for it: a number of the rank's own
  std::shared_ptr<const std::vector<RingPass>> passes = {};  // of rings, with
  std::size_t pass = 0;                                      // which of them
  double compute_factor = 1;                                 // how many times as long the rank computes
};

Op begin_span(const Span& label);
Op end_span();
Op compute(Seconds seconds);
// Collective, send or receive, by label.kind.
Op communicate(const Span& label, Seconds seconds);
// REQUIRES: label.kind is of the background.
Op post(const Span& label, Seconds seconds, int handle);
Op await(int handle, int stage);
// The micro-batch's rings at `layer`; the label of their waits.
Op ring_attention(const Span& label, std::shared_ptr<const std::vector<RingPass>> passes, std::size_t pass);

// How a pass of rings ends for the members of its group, in order.
struct RingsEnd {
  std::vector<Seconds> ends;
  std::vector<std::vector<Span>> waits;  // what each waited for, labelled as its operation
};
// `ops`: each member's, of kind rings.
RingsEnd end_of_rings(const std::vector<int>& group, const std::vector<const Op*>& ops,
                      const std::vector<Seconds>& arrivals, std::int64_t step);

// Appends the spans of a rank, `own` and those of its background, in order of time. REQUIRES: `own` are.
void append_in_order(std::vector<Span>& spans, const std::vector<Span>& own, const std::vector<Span>& background);

struct Program {
  std::int64_t step = 0;
  ParallelDims dims;
  std::vector<std::vector<Op>> ranks;

  // A list a rank, spans closed that were opened, durations finite and 0 or more, peers and groups that exist.
  Violations violations() const;
};

// Names the message that a send or receive span is about, alike on both sides.
struct MessageKey {
  int from = 0;
  int to = 0;
  bool forward = true;
  int stage = 0;  // of the sender
  int micro_batch = 0;
  auto operator<=>(const MessageKey&) const = default;
};
// REQUIRES: kind is a send or receive.
MessageKey message_of(const Span& span, int rank);
bool is_send(SpanKind kind);
bool is_receive(SpanKind kind);

}  // namespace ballast
