// The training loop over several ranks (as threads): twenty steps give the losses of one rank at any layout, ranks
// agree before they exchange, a loss that is not finite stops all of them, and a request to stop reaches all at one
// step.
#include "ballast/runtime/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "ballast/packing/packer.h"
#include "ballast/runtime/comm/thread_ranks.h"
#include "ballast/sharding/sharder.h"
#include "tests/multi_rank/small_run.h"

namespace ballast {
namespace {

class PlanList final : public StepSource {
 public:
  explicit PlanList(std::vector<StepPlan> plans) : plans_(std::move(plans)) {}
  std::optional<SourcedStep> next() override {
    if (next_ == plans_.size()) return std::nullopt;
    SourcedStep step;
    step.plan = plans_[next_++];
    step.state_after = std::to_string(next_);
    return step;
  }

 private:
  std::vector<StepPlan> plans_;
  std::size_t next_ = 0;
};

struct Losses final : TrainObserver {
  void spans(std::int64_t, const std::vector<Span>& spans) override {
    all_spans.insert(all_spans.end(), spans.begin(), spans.end());
  }
  void step_done(const StepResult& result, const SourcedStep&) override { losses.push_back(result.loss); }
  std::vector<double> losses;
  std::vector<Span> all_spans;
};

struct RunOptions {
  std::function<void(int rank, std::vector<StepPlan>&)> change_plans = [](int, std::vector<StepPlan>&) {};
  std::function<void(int rank, PipelineStages&)> change_model = [](int, PipelineStages&) {};
  std::function<bool(int rank, std::size_t steps_done)> stop = [](int, std::size_t) { return false; };
};

struct RunResult {
  std::vector<std::vector<double>> losses;  // by rank
  std::vector<TrainOutcome> outcomes;
  std::vector<std::int64_t> saved_after;  // rank 0
  Timeline timeline;
};

RunResult run(const RunSpec& spec, int num_steps, const RunOptions& options = {}) {
  RunResult result;
  result.losses.resize(static_cast<std::size_t>(spec.parallel.world_size()));
  result.outcomes.resize(result.losses.size());
  result.timeline = {"measured", spec.parallel, {}};
  std::mutex mutex;
  const std::vector<StepPlan> all = plans(spec, num_steps);
  run_thread_mesh(spec.parallel, [&](Mesh& mesh) {
    RankHooks hooks;
    SpanRecorder recorder(mesh.rank, std::chrono::steady_clock::now(), hooks);
    PipelineStages model(spec.model, all[0].stage_layers, mesh.at.pp, spec.parallel.pp, spec.training.precision,
                         spec.seed);
    options.change_model(mesh.rank, model);
    AdamW optimizer(model.parameters(), spec.training);
    std::vector<StepPlan> mine = all;
    options.change_plans(mesh.rank, mine);
    PlanList source(mine);
    Losses losses;
    TrainingSpec training = spec.training;
    training.steps = num_steps;
    Trainer trainer(
        model, optimizer, mesh, recorder, hooks, read_text, training,
        [&] { return options.stop(mesh.rank, losses.losses.size()); },
        [&](std::int64_t steps_done, const std::string& state) {
          EXPECT_EQ(state, std::to_string(steps_done));
          if (mesh.rank == 0) result.saved_after.push_back(steps_done);
        });
    const TrainOutcome outcome = trainer.train(source, 0, losses);
    const std::scoped_lock lock(mutex);
    result.losses[static_cast<std::size_t>(mesh.rank)] = losses.losses;
    result.outcomes[static_cast<std::size_t>(mesh.rank)] = outcome;
    result.timeline.spans.insert(result.timeline.spans.end(), losses.all_spans.begin(), losses.all_spans.end());
  });
  return result;
}

void expect_losses_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * want[i]) << "step " << i;
}

class TwentySteps : public testing::TestWithParam<ParallelDims> {
 protected:
  // Packers and sharders take turns over the layouts, so that every one, and nearly every pair, is some layout's.
  void expect_the_losses_of_one_rank(Precision precision, double tolerance) {
    const std::vector<ParallelDims> all = layouts();
    const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), GetParam()) - all.begin());
    RunSpec spec = small_run({1, 1, 1}, 1, packer_names()[at % packer_names().size()],
                             sharding_names()[at % sharding_names().size()]);
    spec.training.precision = precision;
    // One rank holds every shard: what it loses depends on the packer alone.
    static std::map<std::string, std::vector<double>> of_one_rank;
    std::vector<double>& want = of_one_rank[spec.packing.packer + to_string(precision)];
    if (want.empty()) want = run(spec, 20).losses[0];
    EXPECT_LT(want.back(), want.front());
    spec.parallel = GetParam();
    if (can_interleave(GetParam())) spec.schedule = {"interleaved", 2};
    expect_losses_near(run(spec, 20).losses[0], want, tolerance);
  }
};

TEST_P(TwentySteps, LoseTheSameAsOneRankInFloat64) { expect_the_losses_of_one_rank(Precision::float64, 1e-10); }

TEST_P(TwentySteps, LoseTheSameAsOneRankInFloat32) { expect_the_losses_of_one_rank(Precision::float32, 1e-5); }

INSTANTIATE_TEST_SUITE_P(AllDegrees, TwentySteps, testing::ValuesIn(layouts()), layout_name);

TEST(Trainer, LosesTheSameUnderEverySchedule) {
  RunSpec spec = small_run({1, 1, 1}, 1, "wlb", "adaptive");
  spec.packing.micro_batches = 5;  // no multiple of the rounds
  const std::vector<double> want = run(spec, 3).losses[0];
  spec.parallel = {1, 2, 1};
  for (const ScheduleSpec& schedule : std::vector<ScheduleSpec>{{"1f1b", 1},
                                                                {"interleaved", 2},
                                                                {"interleaved", 2, 3},
                                                                {"interleaved", 2, 5},
                                                                {"all-forward-all-backward", 1},
                                                                {"all-forward-all-backward", 2},
                                                                {"1f1b", 1, 0, {3, 1}},
                                                                {"interleaved", 2, 0, {0, 2, 2, 0}}}) {
    SCOPED_TRACE(schedule.name + " V " + std::to_string(schedule.virtual_stages) + " round " +
                 std::to_string(schedule.round_size));
    spec.schedule = schedule;
    expect_losses_near(run(spec, 3).losses[0], want, 1e-10);
  }
}

TEST(Trainer, TrainsInBfloat16CloseToFloat32) {
  RunSpec spec = small_run({1, 1, 1}, 1, "wlb", "adaptive");
  spec.training.precision = Precision::float32;
  const std::vector<double> want = run(spec, 20).losses[0];
  spec.training.precision = Precision::bfloat16;
  spec.parallel = {2, 2, 2};
  expect_losses_near(run(spec, 20).losses[0], want, 0.01);  // 8 bits of mantissa, averaged over hundreds of labels
}

TEST(Trainer, GivesEveryRankTheSameLossAndATimelineWithoutViolations) {
  const RunResult result = run(small_run({2, 2, 2}, 1, "wlb", "adaptive"), 3);
  for (const auto& losses : result.losses) EXPECT_EQ(losses, result.losses[0]);
  EXPECT_EQ(result.timeline.violations(), Violations{});
  EXPECT_EQ(result.saved_after, std::vector<std::int64_t>{3});
}

TEST(Trainer, StopsWithAllDigestsWhereRanksHaveDifferentPlans) {
  RunOptions options;
  options.change_plans = [](int rank, std::vector<StepPlan>& plans) {
    if (rank == 1) plans[1].micro_batches[0][0].documents[0].id += 1;
  };
  try {
    run(small_run({2, 1, 1}, 1, "plain", "per-sequence"), 3, options);
    FAIL() << "trained on different plans";
  } catch (const RunError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("ranks have different plans for the next step; rank "), std::string::npos) << said;
    EXPECT_NE(said.find("rank 0: "), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1: "), std::string::npos) << said;
  }
}

TEST(Trainer, NamesStepRankMicroBatchAndDocumentsOfALossThatIsNotFinite) {
  RunOptions options;
  options.change_model = [](int, PipelineStages& model) {
    for (const Parameter& parameter : model.parameters().parameters()) {
      if (parameter.name == "final_norm.weight")
        parameter.value.detach().fill_(std::numeric_limits<double>::quiet_NaN());
    }
  };
  try {
    run(small_run({1, 2, 2}, 1, "plain", "per-sequence"), 2, options);
    FAIL() << "trained on NaN";
  } catch (const RunError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("step 0: the loss is nan; rank 2 (dp 0, pp 1, cp 0), micro-batch 0, documents "), 0U) << text;
    EXPECT_NE(text.find("stopped before the optimizer step"), std::string::npos) << text;
  }
}

TEST(Trainer, StopsAllRanksAfterTheSameStepAndSaves) {
  RunOptions options;
  options.stop = [](int rank, std::size_t steps_done) { return rank == 1 && steps_done == 1; };
  const RunResult result = run(small_run({2, 2, 1}, 1, "wlb", "adaptive"), 5, options);
  for (const TrainOutcome& outcome : result.outcomes) {
    EXPECT_TRUE(outcome.stopped);
    EXPECT_EQ(outcome.next_step, 2);
  }
  EXPECT_EQ(result.saved_after, std::vector<std::int64_t>{2});
}

TEST(Trainer, EndsWithTheData) {
  RunSpec spec = small_run({1, 1, 2}, 1, "plain", "per-document");
  RunOptions options;
  options.change_plans = [](int, std::vector<StepPlan>& plans) { plans.resize(2); };
  const RunResult result = run(spec, 4, options);
  EXPECT_TRUE(result.outcomes[0].data_ended);
  EXPECT_EQ(result.losses[0].size(), 2U);
}

}  // namespace
}  // namespace ballast
