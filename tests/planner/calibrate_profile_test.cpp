// A profile that is off is refitted from runs that show by how much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ballast/planner/calibrate_profile.h"
#include "ballast/planner/make_step_plan.h"
#include "ballast/simulate/predict.h"

namespace ballast {
namespace {

HardwareProfile profile() {
  HardwareProfile made;
  made.key = {.device = "d", .kernel_build = "k", .precision = "float32", .mapping = "m"};
  made.measured_by = "hand";
  for (const Tokens size : {16, 256, 4096}) {
    const auto n = static_cast<double>(size);
    made.attention.push_back({size, size, true, 2e-8 * n * n, 5e-8 * n * n});
    made.attention.push_back({size, 4096, false, 4e-8 * n * 4096, 1e-7 * n * 4096});
    made.linear.push_back({"layer", size, 1e-5 * n, 2e-5 * n});
    made.linear.push_back({"embedding", size, 1e-7 * n, 1e-7 * n});
    made.linear.push_back({"head", size, 3e-6 * n, 5e-6 * n});
  }
  for (const char* operation : {"all_gather", "reduce_scatter", "all_reduce", "send"}) {
    for (const Bytes bytes : {1024, 1 << 20}) made.collectives.push_back({operation, 2, bytes, 1e-9 * bytes});
  }
  made.optimizer_seconds_per_parameter = 1e-9;
  return made;
}

// Steps of documents of differing lengths, so that layers and attention can be told apart.
std::vector<StepPlan> plans(const RunSpec& run, const CostModel& cost) {
  std::vector<StepPlan> made;
  for (int step = 0; step < 4; ++step) {
    PackedStep packed{.step = step, .micro_batches = {}};
    for (int m = 0; m < 4; ++m) {
      MicroBatch& micro_batch = packed.micro_batches.emplace_back();
      const int documents = 1 + (step + m) % 4;
      for (int d = 0; d < documents; ++d) micro_batch.documents.push_back({.length = 1024 / documents + 64 * m});
    }
    made.push_back(make_step_plan(packed, step_plan_settings(run), cost));
  }
  return made;
}

TEST(CalibrateProfile, FindsByHowMuchEachPartIsOff) {
  RunSpec run;
  run.model.num_layers = 4;
  run.parallel = {.dp = 1, .pp = 2, .cp = 2};
  const HardwareProfile believed = profile();
  HardwareProfile real = believed;
  for (AttentionPoint& point : real.attention) {
    point.forward *= 0.8;
    point.backward *= 1.1;
  }
  for (LinearPoint& point : real.linear) {
    if (point.part == "layer") point.forward *= 1.3;
    if (point.part == "head") point.backward *= 2;
  }
  for (CollectivePoint& point : real.collectives) {
    if (point.operation == "all_gather") point.seconds *= 1.5;
  }
  real.optimizer_seconds_per_parameter *= 3;

  const auto cost = make_profile_cost(believed, run.model);
  const auto real_cost = make_profile_cost(real, run.model);
  CalibrationRun seen{
      .run = run, .plans = plans(run, *cost), .measured = {.source = "measured", .dims = run.parallel, .spans = {}}};
  for (const StepPlan& plan : seen.plans) {
    const Timeline step = predict(plan, run.model, *real_cost, program_settings(run));
    seen.measured.spans.insert(seen.measured.spans.end(), step.spans.begin(), step.spans.end());
  }
  const Calibration calibration = calibrate_profile(believed, {seen});
  std::map<std::string, double> scale;
  for (const ProfileChange& change : calibration.changes) scale[change.part] = change.scale;
  EXPECT_NEAR(scale["layer forward"], 1.3, 0.02);
  EXPECT_NEAR(scale["attention forward"], 0.8, 0.02);
  EXPECT_NEAR(scale["attention backward"], 1.1, 0.02);
  EXPECT_NEAR(scale["layer backward"], 1, 0.02);
  EXPECT_NEAR(scale["head backward"], 2, 0.1);
  EXPECT_NEAR(scale["all_gather"], 1.5, 1e-6);
  EXPECT_NEAR(scale["send"], 1, 1e-6);
  EXPECT_NEAR(scale["optimizer"], 3, 1e-6);
  EXPECT_GT(calibration.step_error_before, 0.05);
  EXPECT_LT(calibration.step_error_after, 0.01);
  EXPECT_LT(calibration.work_error_after, 0.01);
  EXPECT_EQ(calibration.profile.violations(), Violations{});
}

TEST(CalibrateProfile, RefusesRunsWithoutAStep) {
  RunSpec run;
  EXPECT_THROW(calibrate_profile(
                   profile(), {{.run = run, .plans = {}, .measured = {.source = "measured", .dims = {}, .spans = {}}}}),
               UserError);
}

}  // namespace
}  // namespace ballast
