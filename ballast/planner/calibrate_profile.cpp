#include "ballast/planner/calibrate_profile.h"

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "ballast/calibrate/fit.h"
#include "ballast/cost/cost_model.h"
#include "ballast/diagnose/time_by_cause.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/fast_step.h"

namespace ballast {

namespace {

constexpr std::array<const char*, 2> kPassNames = {"forward", "backward"};
constexpr std::array<const char*, 3> kPartNames = {"layer", "attention", "head"};

// Which of the profile's collectives an exchange is.
const char* operation_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::GATHER_KV:
      return "all_gather";
    case SpanKind::REDUCE_KV:
      return "reduce_scatter";
    case SpanKind::REDUCE_GRAD:
      return "all_reduce";
    case SpanKind::RECV_F:
    case SpanKind::RECV_B:
      return "send";
    default:
      return nullptr;
  }
}

struct Evidence {
  std::array<std::vector<FitSample>, 2> work;                                 // [pass]
  std::map<std::string, std::pair<Seconds, Seconds>> measured_and_predicted;  // by operation, and "optimizer"
  std::vector<std::pair<Seconds, Seconds>> steps;                             // measured, predicted
};

void add_work(Evidence& evidence, const CalibrationRun& run, const std::map<std::int64_t, StepCosts>& costs) {
  const std::vector<OwnTime> own = own_times(run.measured);
  std::map<std::int64_t, const StepPlan*> plans;
  for (const StepPlan& plan : run.plans) plans[plan.step] = &plan;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Span& span = run.measured.spans[i];
    const auto found = plans.find(span.step);
    if (found == plans.end() || (span.kind != SpanKind::F && span.kind != SpanKind::B)) continue;
    const RankCoordinate at = run.measured.dims.coordinate(span.rank);
    const StepCosts& of_step = costs.at(span.step);
    const ShareCosts& share =
        of_step.shares[static_cast<std::size_t>(at.dp)][static_cast<std::size_t>(span.micro_batch)]
                      [static_cast<std::size_t>(at.cp)];
    if (share.tokens == 0) continue;
    const std::size_t pass = span.kind == SpanKind::F ? 0 : 1;
    const auto layers = static_cast<double>(of_step.num_layers(span.stage));
    const bool last = span.stage + 1 == found->second->schedule.num_stages();
    evidence.work[pass].push_back({.measured = own[i].busy,
                                   .parts = {layers * share.layer[pass] + (span.stage == 0 ? share.embedding[pass] : 0),
                                             layers * share.attention[pass], last ? share.head[pass] : 0}});
  }
}

Evidence gather(const HardwareProfile& profile, const std::vector<CalibrationRun>& runs) {
  Evidence evidence;
  for (const CalibrationRun& run : runs) {
    const auto cost = make_profile_cost(profile, run.run.model);
    const ProgramSettings settings = program_settings(run.run);
    std::map<std::int64_t, StepCosts> costs;
    std::map<std::int64_t, StepTime> predicted;
    for (const StepPlan& plan : run.plans) {
      const StepCosts& priced =
          costs.emplace(plan.step, step_costs(plan, run.run.model, *cost, settings)).first->second;
      predicted.emplace(plan.step, fast_step(plan.dims, plan.schedule, priced, settings).time);
    }
    add_work(evidence, run, costs);
    for (const StepTime& step : analyze(run.measured)) {
      const auto found = predicted.find(step.step);
      if (found == predicted.end()) continue;
      evidence.steps.emplace_back(step.step_seconds(), found->second.step_seconds());
      const auto add = [&](const std::string& name, SpanKind kind) {
        const auto measured = step.seconds_by_kind.find(kind);
        const auto expected = found->second.seconds_by_kind.find(kind);
        if (measured == step.seconds_by_kind.end() || expected == found->second.seconds_by_kind.end()) return;
        if (!(expected->second > 0)) return;  // groups of one exchange nothing
        auto& [all_measured, all_predicted] = evidence.measured_and_predicted[name];
        all_measured += measured->second;
        all_predicted += expected->second;
      };
      for (const auto& [kind, seconds] : step.seconds_by_kind) {
        if (const char* operation = operation_of(kind)) add(operation, kind);
      }
      add("optimizer", SpanKind::OPTIMIZER);
    }
  }
  return evidence;
}

double step_error(const Evidence& evidence) {
  double sum = 0;
  for (const auto& [measured, predicted] : evidence.steps) sum += std::abs(predicted - measured) / measured;
  return sum / static_cast<double>(evidence.steps.size());
}

double work_error(const Evidence& evidence, const std::array<std::vector<double>, 2>& scales) {
  const auto count = [&](std::size_t pass) { return static_cast<double>(evidence.work[pass].size()); };
  if (count(0) + count(1) == 0) return 0;
  return (count(0) * mean_relative_error(evidence.work[0], scales[0]) +
          count(1) * mean_relative_error(evidence.work[1], scales[1])) /
         (count(0) + count(1));
}

}  // namespace

Calibration calibrate_profile(const HardwareProfile& profile, const std::vector<CalibrationRun>& runs) {
  const Evidence evidence = gather(profile, runs);
  if (evidence.steps.empty()) throw UserError("the runs hold no step that was both planned and measured");
  Calibration result{.profile = profile, .changes = {}};
  const std::vector<double> unchanged(kPartNames.size(), 1);
  std::array<std::vector<double>, 2> scales = {unchanged, unchanged};
  for (std::size_t pass = 0; pass < 2; ++pass) {
    if (evidence.work[pass].empty()) continue;
    scales[pass] = fit_scales(evidence.work[pass]);
    for (std::size_t part = 0; part < kPartNames.size(); ++part) {
      result.changes.push_back({std::string(kPartNames[part]) + " " + kPassNames[pass], scales[pass][part],
                                static_cast<std::int64_t>(evidence.work[pass].size())});
    }
  }
  HardwareProfile& fitted = result.profile;
  for (AttentionPoint& point : fitted.attention) {
    point.forward *= scales[0][1];
    point.backward *= scales[1][1];
  }
  for (LinearPoint& point : fitted.linear) {
    const std::size_t part = point.part == "head" ? 2 : 0;
    if (point.part == "reorder") continue;
    point.forward *= scales[0][part];
    point.backward *= scales[1][part];
  }
  for (const auto& [name, seconds] : evidence.measured_and_predicted) {
    const double scale = seconds.first / seconds.second;
    result.changes.push_back({name, scale, static_cast<std::int64_t>(evidence.steps.size())});
    if (name == "optimizer") fitted.optimizer_seconds_per_parameter *= scale;
    for (CollectivePoint& point : fitted.collectives) {
      if (point.operation == name) point.seconds *= scale;
    }
  }
  result.work_error_before = work_error(evidence, {unchanged, unchanged});
  result.work_error_after = work_error(evidence, scales);
  result.step_error_before = step_error(evidence);
  result.step_error_after = step_error(gather(fitted, runs));
  return result;
}

}  // namespace ballast
