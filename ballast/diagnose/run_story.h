// The answer in words, computed from the figures, for whoever has to decide at night: how fast against the first run,
// whether the difference exceeds the spread over steps, and what the time was lost to.
#pragma once

#include <string>
#include <vector>

#include "ballast/diagnose/run_comparison.h"
#include "ballast/diagnose/time_by_cause.h"

namespace ballast {

struct RunStory {
  enum class Verdict { single, faster, slower, no_difference };
  Verdict verdict = Verdict::single;
  std::string headline;              // one sentence
  std::vector<std::string> details;  // further sentences, most important first
};

struct RunEvidence {
  RunRecord record;
  LongestWait longest_wait;  // rank -1 where the run has no timeline of its `speed_source`
};

// Whether the speed-up is beyond the spread over steps.
RunStory::Verdict verdict_of(const SpeedUp& speed);

// The first run is the base. REQUIRES: at least one run, none with an empty list of steps.
RunStory tell_story(const std::vector<RunEvidence>& runs);

}  // namespace ballast
