#include "cli/plan_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ballast/io/plan_json.h"
#include "ballast/planner/imbalance.h"
#include "ballast/planner/plan_ahead.h"
#include "ballast/simulate/predict.h"

namespace ballast::cli {

namespace {

constexpr int kStepsPlannedAhead = 2;

SourcedStep sourced(PlannedStep planned, const PackerState& state_after, bool predicts) {
  SourcedStep step;
  step.plan = std::move(planned.plan);
  if (predicts) {
    step.predicted = std::move(planned.predicted);
    step.predicted_seconds = planned.predicted_seconds;
  }
  step.planning_seconds = planned.planning_seconds;
  step.imbalance_micro_batch = planned.imbalance_micro_batch;
  step.imbalance_cp = planned.imbalance_cp;
  step.state_after = to_json(state_after);
  return step;
}

class CorpusPlans final : public StepSource {
 public:
  CorpusPlans(const RunSetup& setup, const std::string& state) : predicts_(setup.cost_is_seconds) {
    const RunSpec& spec = setup.spec;
    auto stream = std::make_unique<StepStream>(spec, *setup.cost, documents_of_run(spec, *setup.corpus));
    if (!state.empty()) stream->restore(packer_state_from_json(state, "the checkpoint's source_state"));
    ahead_.emplace(std::move(stream), kStepsPlannedAhead);
  }

  std::optional<SourcedStep> next() override {
    std::optional<PlannedStep> planned = ahead_->next();
    if (!planned) return std::nullopt;
    return sourced(std::move(*planned), ahead_->state(), predicts_);
  }

 private:
  bool predicts_;  // the cost model's unit is seconds
  std::optional<PlanAhead> ahead_;
};

class FilePlans final : public StepSource {
 public:
  FilePlans(const RunSetup& setup, const std::string& path, std::int64_t first_step)
      : setup_(setup), plans_(read_step_plans(path)) {
    while (next_ < plans_.size() && plans_[next_].step < first_step) ++next_;
    for (std::size_t i = next_; i < plans_.size(); ++i) check(plans_[i], path);
  }

  std::optional<SourcedStep> next() override {
    if (next_ == plans_.size()) return std::nullopt;
    SourcedStep step;
    step.plan = plans_[next_++];
    step.imbalance_micro_batch = micro_batch_imbalance(step.plan.packed(), *setup_.cost);
    step.imbalance_cp = cp_imbalance(step.plan, *setup_.cost);
    if (setup_.cost_is_seconds) {
      step.predicted = predict(step.plan, setup_.spec.model, *setup_.cost, program_settings(setup_.spec));
      for (const Span& span : step.predicted.spans) step.predicted_seconds = std::max(step.predicted_seconds, span.end);
    }
    return step;
  }

 private:
  void check(const StepPlan& plan, const std::string& path) const {
    const std::string where = fmt::format("{}: step {}", path, plan.step);
    if (plan.dims != setup_.spec.parallel) {
      throw UserError(
          fmt::format("{}: is for {}, this run has {}", where, to_string(plan.dims), to_string(setup_.spec.parallel)));
    }
    if (const std::vector<int> layers = setup_.spec.layers_by_stage(); plan.stage_layers != layers) {
      throw UserError(fmt::format("{}: its stages hold {} layers, this run's {}", where,
                                  fmt::join(plan.stage_layers, ", "), fmt::join(layers, ", ")));
    }
    const Tokens most = setup_.spec.packing.cap();
    for (const auto& pipeline : plan.micro_batches) {
      for (const MicroBatch& micro_batch : pipeline) {
        if (micro_batch.num_tokens() > most) {
          throw UserError(
              fmt::format("{}: a micro-batch of {} tokens, this run's [packing] takes {}: the plan is of "
                          "another window",
                          where, micro_batch.num_tokens(), most));
        }
        for (const Document& document : micro_batch.documents) {
          if (document.id >= setup_.corpus->num_documents() ||
              document.begin + document.length + (document.ends ? 0 : 1) > setup_.corpus->length(document.id)) {
            throw UserError(
                fmt::format("{}: document {} is not in the corpus {}", where, to_string(document), setup_.spec.corpus));
          }
        }
      }
    }
  }

  const RunSetup& setup_;
  std::vector<StepPlan> plans_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<StepSource> plan_from_corpus(const RunSetup& setup, const std::string& state) {
  return std::make_unique<CorpusPlans>(setup, state);
}

std::unique_ptr<StepSource> plans_from_file(const RunSetup& setup, const std::string& path, std::int64_t first_step) {
  return std::make_unique<FilePlans>(setup, path, first_step);
}

}  // namespace ballast::cli
