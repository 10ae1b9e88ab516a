// Where each rank's time went, from a timeline: work, what it waited for, and what it moved. Everything between the
// first begin and the last end of a step (over all ranks) is accounted for exactly once, so the causes of a rank sum to
// the time its steps took.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "ballast/ir/timeline.h"

namespace ballast {

enum class Cause {
  forward,
  backward,
  other_work,      // reading tokens, optimizer, checkpoint
  transfer,        // inside a send, receive or collective but not blocked: copying, adding
  wait_pipeline,   // RECV_F, RECV_B, SEND_F, SEND_B: a neighbour in the pipeline was not ready
  wait_cp,         // GATHER_KV, REDUCE_KV: a rank of the cp group was not ready
  wait_gradients,  // REDUCE_GRAD, REDUCE_TIED, REDUCE_NORM: another replica or stage was not ready
  wait_control,    // CONTROL
  wait_lease,      // another rank of this machine held the core
  idle,            // no span: between actions, and before the first and after the last of the step
};
inline constexpr std::size_t kNumCauses = 10;

std::string_view to_string(Cause cause);  // "wait for pipeline", for people
Cause wait_cause(SpanKind kind);          // what a rank waits for that is blocked in such a span

struct CauseSeconds {
  std::array<Seconds, kNumCauses> seconds{};

  Seconds& operator[](Cause cause) { return seconds[static_cast<std::size_t>(cause)]; }
  Seconds operator[](Cause cause) const { return seconds[static_cast<std::size_t>(cause)]; }
  Seconds work() const;  // forward, backward, other_work
  Seconds total() const;
  bool operator==(const CauseSeconds&) const = default;
};

// A span's own share: its duration, wait and lease without those of the spans inside it. None is negative.
struct OwnTime {
  Seconds busy = 0;  // neither waiting for a rank nor for a core
  Seconds wait = 0;
  Seconds lease = 0;
};

// One entry a span, in the timeline's order. REQUIRES: spans of one rank nest or do not touch.
std::vector<OwnTime> own_times(const Timeline& timeline);

// One entry a rank, summed over the steps that `skip` does not hold.
std::vector<CauseSeconds> time_by_cause(const Timeline& timeline, const std::set<std::int64_t>& skip = {});

struct LongestWait {
  int rank = -1;  // -1: nobody waited
  SpanKind kind = SpanKind::CONTROL;
  Seconds seconds = 0;
  double share = 0;  // of the time the steps took
};

// The rank and the kind of action that it was longest blocked in, over the same steps. A core lease is not counted.
LongestWait longest_wait(const Timeline& timeline, const std::set<std::int64_t>& skip = {});

struct StepExtent {
  std::int64_t step = 0;
  Seconds begin = 0;  // first begin and last end of any rank
  Seconds end = 0;
  Seconds duration() const { return end - begin; }
};

// By step number.
std::vector<StepExtent> step_extents(const Timeline& timeline);

}  // namespace ballast
