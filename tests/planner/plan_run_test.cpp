// The planner: what it may choose, that its estimates are the steps the run would have, that its bound is one, and that
// nothing it turned away would have been better.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "ballast/io/cluster_toml.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/run_plan_json.h"
#include "ballast/planner/candidates.h"
#include "ballast/planner/make_run_plan.h"
#include "ballast/planner/plan_run.h"
#include "ballast/planner/step_stream.h"

namespace ballast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RunSubject small_subject() {
  RunSubject subject;
  subject.cluster = read_cluster(BALLAST_PROFILES "/clusters/h100_dgx.toml");
  subject.device = read_device_profile(subject.cluster.device);
  RunSpec& run = subject.run;
  run.model = *model_preset("llama3-8b");
  run.model.vocab_size = 128256;
  run.model.num_layers = 8;
  run.training.precision = Precision::bfloat16;
  run.packing.window = 16384;
  run.packing.micro_batches = 8;
  run.packing.max_delay = 8;
  run.plan.gpus = 16;
  run.plan.final_steps = 3;
  for (int i = 0; i < 3000; ++i) subject.lengths.push_back(100 + (i * 7919) % 3000 + (i % 41 == 0 ? 12000 : 0));
  subject.domains.assign(subject.lengths.size(), 0);
  return subject;
}

std::vector<RunChoice> all_choices(const RunSubject& subject) {
  std::vector<RunChoice> all;
  for_each_frame(
      subject.run, subject.cluster,
      [&](const Frame& frame) {
        for (const RunChoice& choice : completions(subject.run, frame)) all.push_back(choice);
      },
      [](const std::string&, const std::string&) {});
  return all;
}

TEST(Candidates, AreRunsWithoutViolationsEachOnce) {
  const RunSubject subject = small_subject();
  const std::vector<RunChoice> all = all_choices(subject);
  EXPECT_GT(all.size(), 10'000U);
  std::set<std::string> seen;
  for (const RunChoice& choice : all) {
    ASSERT_TRUE(seen.insert(to_string(choice)).second) << to_string(choice) << " twice";
    ASSERT_EQ(choice.dims.world_size() * choice.tp, subject.run.plan.gpus);
  }
  for (std::size_t i = 0; i < all.size(); i += 97) {
    EXPECT_THAT(with_choice(subject.run, all[i]).violations(), IsEmpty()) << to_string(all[i]);
  }
}

TEST(Candidates, KeepToWhatIsAskedFor) {
  RunSubject subject = small_subject();
  subject.run.plan.tp = {2};
  subject.run.plan.cp = {4};
  subject.run.plan.pp = {2};
  subject.run.plan.virtual_stages = {2};
  subject.run.plan.zero = {1};
  subject.run.plan.recompute = {"none"};
  subject.run.plan.windows = {1};
  subject.run.plan.packers = {"plain"};
  subject.run.plan.shardings = {"hybrid"};
  subject.run.plan.mappings = {"tp-pp-cp-dp"};
  const std::vector<RunChoice> all = all_choices(subject);
  ASSERT_THAT(all, SizeIs(3)) << "rounds of pp, of twice as many, and of all micro-batches";
  EXPECT_EQ(to_string(all[0]),
            "tp 2 cp 4 pp 2 dp 1 (tp-pp-cp-dp), interleaved V 2 nc 2, zero 1, recompute none, 1 window, plain, hybrid");
}

TEST(Candidates, SayWhichRuleAChoiceBreaks) {
  RunSubject subject = small_subject();
  subject.run.plan.tp = {3, 5};
  subject.run.plan.gpus = 15;
  subject.run.model.ffn_dim = 15000;
  std::vector<std::string> refused;
  for_each_frame(
      subject.run, subject.cluster, [](const Frame&) {},
      [&](const std::string& rule, const std::string& which) { refused.push_back(which + ": " + rule); });
  EXPECT_THAT(refused, Contains("tp 3: heads and widths divide by tp"));
  EXPECT_THAT(refused, Contains("tp 5: heads and widths divide by tp"));
}

TEST(Candidates, TakeTheStatedShardingInBesideThoseThatGatherKeys) {
  RunSubject subject = small_subject();
  const auto in_rings = [&] {
    const std::vector<RunChoice> all = all_choices(subject);
    return std::count_if(all.begin(), all.end(), [](const RunChoice& choice) { return choice.sharding == "zeppelin"; });
  };
  EXPECT_EQ(in_rings(), 0);
  subject.run.sharding = "zeppelin";
  EXPECT_GT(in_rings(), 100);
  subject.run.plan.shardings = {"hybrid"};
  EXPECT_EQ(in_rings(), 0) << "what [plan] shardings names is all there is";
}

void expect_steps_as_planned(const RunSubject& subject, const std::vector<RunChoice>& all, std::size_t tried) {
  constexpr int kSkip = 3;
  StepEstimator estimator(subject, kSkip);
  for (std::size_t i = 0; i < all.size(); i += all.size() / tried) {
    SCOPED_TRACE(to_string(all[i]));
    const RunSpec run = with_choice(subject.run, all[i]);
    const auto cost = make_cluster_cost(subject.device, subject.cluster, run.model, mesh_of(all[i]), run.overlap_tp);
    StepStream stream(run, *cost, DocumentStream(subject.lengths, subject.domains, {.seed = run.seed}),
                      {.timelines = false});
    for (int step = 0; step < kSkip; ++step) stream.next();
    const std::vector<StepEstimate> estimates = estimator.estimate(all[i], 2);
    Seconds sum = 0;
    for (const StepEstimate& estimate : estimates) {
      const PlannedStep planned = *stream.next();
      EXPECT_EQ(estimate.seconds, planned.predicted_seconds);
      EXPECT_EQ(estimate.tokens, planned.plan.num_tokens());
      sum += estimate.seconds;
    }
    EXPECT_LE(estimator.lower_bound(all[i], 2), sum);
    EXPECT_GT(estimator.lower_bound(all[i], 2), 0.2 * sum);
  }
}

TEST(StepEstimator, GivesTheStepsThatTheRunWouldPlanAndPredict) {
  const RunSubject subject = small_subject();
  expect_steps_as_planned(subject, all_choices(subject), 60);
}

TEST(StepEstimator, GivesThemInRingsToo) {
  RunSubject subject = small_subject();
  subject.run.sharding = "zeppelin";
  std::vector<RunChoice> all = all_choices(subject);
  std::erase_if(all, [](const RunChoice& choice) { return choice.sharding != "zeppelin"; });
  expect_steps_as_planned(subject, all, 10);
}

TEST(PlanRun, FindsTheFastestOfAllThatFit) {
  RunSubject subject = small_subject();
  subject.run.plan.packers = {"plain"};
  subject.run.plan.shardings = {"per-sequence", "per-document"};
  subject.run.plan.windows = {1};
  subject.run.plan.tp = {1, 2};
  const RunPlanning planning = plan_run(subject);
  ASSERT_THAT(planning.ranked, SizeIs(subject.run.plan.keep));
  EXPECT_EQ(planning.considered, planning.rejected.count + static_cast<std::int64_t>(planning.ranked.size()));

  StepEstimator estimator(subject, 12);
  double best = 0;
  for (const RunChoice& choice : all_choices(subject)) {
    const RunSpec run = with_choice(subject.run, choice);
    if (peak_memory(run, estimator.schedule(choice)) > subject.cluster.memory_bytes) continue;
    Seconds seconds = 0;
    double tokens = 0;
    for (const StepEstimate& step : estimator.estimate(choice, subject.run.plan.steps)) {
      seconds += step.seconds;
      tokens += static_cast<double>(step.tokens);
    }
    best = std::max(best, tokens / seconds);
  }
  EXPECT_NEAR(planning.simulated.front().tokens_per_second, best, 1e-9 * best) << "of all choices";
  for (const Variation& variation : planning.variations) {
    if (variation.missing_bytes > 0) continue;
    EXPECT_LE(variation.tokens_per_second, (1 + 1e-8) * planning.ranked.front().tokens_per_second) << variation.what;
  }
}

TEST(PlanRun, SaysWhatComesNearestWhereNothingFits) {
  RunSubject subject = small_subject();
  subject.run.plan.packers = {"plain"};
  subject.cluster.memory_bytes = Bytes{1} << 20;
  const RunPlanning planning = plan_run(subject);
  EXPECT_THAT(planning.ranked, IsEmpty());
  ASSERT_TRUE(planning.nearest.has_value());
  const RunSpec nearest = with_choice(subject.run, *planning.nearest);
  StepEstimator estimator(subject, 0);
  EXPECT_EQ(peak_memory(nearest, estimator.schedule(*planning.nearest)) - subject.cluster.memory_bytes,
            planning.missing_bytes);
  subject.cluster.memory_bytes += planning.missing_bytes;
  EXPECT_THAT(plan_run(subject).ranked, Not(IsEmpty())) << "so many bytes more are enough";
}

TEST(RunPlan, OfTheFastestHoldsAndRoundTrips) {
  RunSubject subject = small_subject();
  subject.run.plan.packers = {"pool"};
  subject.run.plan.shardings = {"adaptive"};
  subject.run.plan.windows = {1};
  subject.run.plan.tp = {4};
  const RunPlanning planning = plan_run(subject);
  const RunPlan plan = make_run_plan(subject, planning);
  EXPECT_THAT(plan.violations(), IsEmpty());
  EXPECT_EQ(run_plan_from_json(to_json(plan), "plan.json"), plan);
  EXPECT_EQ(plan.choice, planning.ranked.front().choice);
  EXPECT_GT(plan.bytes_by_tier.at("nvlink") + plan.bytes_by_tier.at("network"), 0);
  Bytes memory = 0;
  for (const auto& [part, bytes] : plan.memory_by_part) memory += bytes;
  EXPECT_EQ(plan.memory_bytes - memory, plan.headroom_bytes);
}

TEST(RunPlan, ThatIsBrokenIsRefusedByKey) {
  RunSubject subject = small_subject();
  subject.run.plan.packers = {"plain"};
  subject.run.plan.tp = {4};
  subject.run.plan.windows = {1};
  const std::string good = to_json(make_run_plan(subject, plan_run(subject)));
  const auto refusal = [](const std::string& text) {
    try {
      run_plan_from_json(text, "plan.json");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_EQ(refusal(with("\"gpus\": 16", "\"gpus\": 17")), "plan.json: gpus = 17: the degrees multiply to 16");
  EXPECT_THAT(refusal(with("\"version\": 1", "\"version\": 2")), ::testing::HasSubstr("version"));
  EXPECT_THAT(refusal(with("\"mapping\": \"tp", "\"mapping\": \"xp")), ::testing::HasSubstr("mapping"));
  EXPECT_THAT(refusal(with("\"zero\"", "\"zro\"")), ::testing::HasSubstr("zero"));
  EXPECT_THAT(refusal(good.substr(0, good.size() / 2)), ::testing::HasSubstr("plan.json"));
}

}  // namespace
}  // namespace ballast
