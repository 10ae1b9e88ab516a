// What one rank's spans of a step amount to.
#pragma once

#include <vector>

#include "ballast/ir/timeline.h"

namespace ballast {

struct Work {
  Seconds work_seconds = 0;  // inside compute spans, without the communication, waits and lease inside them
  Seconds wait_seconds = 0;  // blocked on another rank, anywhere
};

// REQUIRES: spans of one rank, by begin, outer before inner (as SpanRecorder gives them).
Work work_of(const std::vector<Span>& spans);

}  // namespace ballast
