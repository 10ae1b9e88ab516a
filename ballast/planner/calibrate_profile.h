// Refits a hardware profile from runs that were predicted with it: what `ballast profile` measured alone, at rest,
// against what the same kernels did in training (requirement W6; the "calibrate").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/ir/hardware_profile.h"
#include "ballast/ir/step_plan.h"
#include "ballast/ir/timeline.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct CalibrationRun {
  RunSpec run;
  std::vector<StepPlan> plans;  // of the steps that count
  Timeline measured;            // measured or replayed, of those steps
};

struct ProfileChange {
  std::string part;  // "layer forward", "attention backward", "all_gather"
  double scale = 1;  // times as long as the profile said
  std::int64_t samples = 0;
};

struct Calibration {
  HardwareProfile profile;  // with the scales applied
  std::vector<ProfileChange> changes;
  // Mean relative error of an F's or B's work, and of a step, before and after.
  double work_error_before = 0;
  double work_error_after = 0;
  double step_error_before = 0;
  double step_error_after = 0;
};

// Work of every F and B is fitted as layers + attention + head, forward and backward apart; optimizer and exchanges by
// the ratio of their sums. Throws UserError as make_profile_cost does and where the runs hold no step.
Calibration calibrate_profile(const HardwareProfile& profile, const std::vector<CalibrationRun>& runs);

}  // namespace ballast
