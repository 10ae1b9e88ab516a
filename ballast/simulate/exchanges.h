// The exchanges of a timeline, taken apart: until when a span waited for the last party, and what the exchange itself
// cost. Recorded waits cannot tell, because a rank inside a collective is blocked in both.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/ir/timeline.h"

namespace ballast {

// The spans of one step as places in timeline.spans: by rank, in order of time.
struct StepSpans {
  std::int64_t step = 0;
  std::vector<std::vector<std::size_t>> ranks;
};
// In order of steps. REQUIRES: spans that begin at once stand outer before inner, as they are written.
std::vector<StepSpans> spans_by_step(const Timeline& timeline);

struct Exchange {
  // When the last party was there: the last member of a collective had begun; the receiver had begun and the sender had
  // ended. Where a partner was not recorded: the span's own begin plus the wait it recorded.
  Seconds ready = 0;
  // Collective: the shortest of its members' durations without lease time, the one of the last to arrive. Receive: from
  // `ready` to its end, without lease time. Send: its duration without waits and lease.
  Seconds cost = 0;
};

// By place in timeline.spans; only those of communication in this step are filled in. The n-th collective over an axis
// on one member is the n-th on the others.
std::vector<Exchange> exchanges(const Timeline& timeline, const StepSpans& step);

}  // namespace ballast
