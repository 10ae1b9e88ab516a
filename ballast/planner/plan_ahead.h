// Plans the next steps on a thread of its own while the current one trains, so that planning is off the critical path.
// It looks no further ahead than told, since a plan made is a plan to throw away when the run stops.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "ballast/planner/step_stream.h"

namespace ballast {

class PlanAhead {
 public:
  // Starts at once. REQUIRES: steps_ahead is 1 or more.
  PlanAhead(std::unique_ptr<StepStream> stream, int steps_ahead);
  ~PlanAhead();  // waits for the step being planned
  PlanAhead(const PlanAhead&) = delete;
  PlanAhead& operator=(const PlanAhead&) = delete;

  // The next step; waits where it is not planned yet. Nothing once the data has ended. Throws what planning it threw.
  std::optional<PlannedStep> next();

  // What to resume from after the step that next() returned last (before the first: what the stream began with),
  // however many steps have been planned since.
  const PackerState& state() const { return returned_state_; }

 private:
  struct Planned {
    std::optional<PlannedStep> step;
    PackerState state_after;
    std::exception_ptr error;
  };

  void work();

  const std::size_t steps_ahead_;
  std::unique_ptr<StepStream> stream_;  // the thread's own
  PackerState returned_state_;          // the caller's own
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Planned> planned_;  // guarded by mutex_
  bool stopping_ = false;        // guarded by mutex_
  bool ended_ = false;           // the caller's own: the end or an error was handed out
  std::thread thread_;
};

}  // namespace ballast
