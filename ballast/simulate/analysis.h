// Where the time of a step went, from any timeline: predicted, measured or replayed. Time of a rank, from the first
// begin of the step to its last end on any rank, is divided into parts that add up:
//   work           inside compute spans, without the communication in them
//   communication  exchanges at their cost, once every party was there
//   wait           for a peer to be there
//   lease          for this machine's core, which another rank held
//   idle           in no span: unrecorded work, or begun later or ended earlier than others
// A transfer of the background takes none of its rank's time; to wait for it (AWAIT) is communication.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ballast/ir/timeline.h"

namespace ballast {

struct RankTime {
  Seconds work = 0;
  Seconds communication = 0;
  Seconds wait = 0;
  Seconds lease = 0;
  Seconds idle = 0;
};

struct StepTime {
  std::int64_t step = 0;
  Seconds begin = 0;
  Seconds end = 0;
  std::vector<RankTime> ranks;
  // Work of compute kinds and cost of communication, over all ranks.
  std::map<SpanKind, Seconds> seconds_by_kind;
  // Of the time from the first F or B to the last, over all ranks: the share in which a rank ran none of them,
  // transfers aside. On equal stages this is the schedule's bubble; on others also what inequality costs.
  double bubble_share = 0;

  Seconds step_seconds() const { return end - begin; }
  Seconds total_work() const;
  // Slowest rank's work x ranks / total: 1 is perfect. 1 where nobody works.
  double imbalance() const;
  // Of all ranks' time, the share spent in communication while not working.
  double exposed_communication_share() const;
};

// In order of steps.
std::vector<StepTime> analyze(const Timeline& timeline);

struct PredictionError {
  std::int64_t step = 0;
  Seconds predicted = 0;
  Seconds measured = 0;
  double relative = 0;                          // (predicted - measured) / measured
  std::map<SpanKind, double> relative_by_kind;  // of seconds_by_kind, where the measured is over 0
};

// Of the steps that both have.
std::vector<PredictionError> prediction_errors(const Timeline& predicted, const Timeline& measured);

}  // namespace ballast
