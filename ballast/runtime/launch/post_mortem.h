// From how each rank ended to what a person needs to read: which rank failed first, what it was doing, and why.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/runtime/launch/status_board.h"

namespace ballast {

struct RankEnd {
  enum class How { running, stopped, exited, killed };

  int rank = 0;
  pid_t pid = 0;
  How how = How::running;
  int code = 0;    // exit code, or signal
  Seconds at = 0;  // monotonic
  RankReport report;
};

struct PostMortem {
  int exit_code = 0;               // 0: all finished; 1: the work failed; 2: the input is at fault
  std::vector<std::string> lines;  // the last ones name the rank that failed first, its last action and its error
};

// Whether this end alone tells that the run has failed, whether it can be the first cause (a rank that lost a peer
// mostly is not, so it pays to wait a little for the peer's own end), and when it came.
bool has_failed(const RankEnd& end);
bool is_first_cause(const RankEnd& end);
Seconds time_of(const RankEnd& end);

// Ranks killed by a signal come first, then those with an error of their own, those that left without a word, those
// that are stopped, and last those that lost a peer; among equals the earliest.
PostMortem examine(const std::vector<RankEnd>& ends);

}  // namespace ballast
