// The same numbers at any layout: loss and every parameter's gradient after one step, and the loss of 20 steps, equal
// the one-rank reference (slow attention with an explicit document mask), for every product of degrees up to 8 ranks,
// interleaved too, for each packer and sharder. Ranks are threads here; tests/cli runs them as processes.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "ballast/packing/packer.h"
#include "ballast/runtime/attention/reference.h"
#include "ballast/runtime/comm/thread_ranks.h"
#include "ballast/runtime/train/trainer.h"
#include "ballast/sharding/sharder.h"
#include "tests/multi_rank/small_run.h"

namespace ballast {
namespace {

struct StepNumbers {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;
};

struct Case {
  RunSpec spec;
  StepPlan plan;
  std::string name;
};

Case case_of(const RunSpec& spec, std::string name) { return {spec, plans(spec, 1).front(), std::move(name)}; }

// One step of each case on all ranks of one mesh, a new model each.
std::vector<StepNumbers> run_steps(const ParallelDims& dims, const std::vector<Case>& cases) {
  std::vector<StepNumbers> all(cases.size());
  std::mutex mutex;
  run_thread_mesh(dims, [&](Mesh& mesh) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& [spec, plan, name] = cases[i];
      RankHooks hooks;
      SpanRecorder recorder(mesh.rank, std::chrono::steady_clock::now(), hooks);
      PipelineStages model(spec.model, plan.stage_layers, mesh.at.pp, dims.pp, spec.training.precision, spec.seed);
      Executor executor(model, mesh, recorder, hooks, read_text);
      const StepLoss loss = executor.run(plan);
      const std::scoped_lock lock(mutex);
      all[i].loss += loss.sum;
      for (const Parameter& parameter : model.parameters().parameters()) {
        if (parameter.owned) all[i].gradients[parameter.name] = parameter.gradient.clone();
      }
    }
  });
  return all;
}

// The same step on one device with the slow attention and no plan but the documents.
StepNumbers reference_step(const RunSpec& spec, const StepPlan& plan) {
  PipelineStages model(spec.model, {spec.model.num_layers}, 0, 1, spec.training.precision, spec.seed);
  StepNumbers numbers;
  for (const auto& pipeline : plan.micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) {
      const std::vector<Tokens> cu_seqlens = micro_batch.cu_seqlens();
      ShardPlan whole{"whole", cu_seqlens, {{}}};
      if (whole.num_tokens() > 0) whole.ranges[0].push_back({0, whole.num_tokens()});
      const MicroBatchData data = load_micro_batch(micro_batch, whole, 0, read_text);
      if (data.tokens_T.numel() == 0) continue;
      const at::Tensor hidden = model.stage(0).forward(
          data.tokens_T, data.positions_T, [&](int, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
            return reference_attention(q, k, v, cu_seqlens);
          });
      const at::Tensor loss = model.stage(0).loss(hidden, data.labels_T) / static_cast<double>(plan.num_labels());
      loss.backward();
      numbers.loss += loss.item<double>();
    }
  }
  for (const Parameter& parameter : model.parameters().parameters())
    numbers.gradients[parameter.name] = parameter.gradient;
  return numbers;
}

void expect_same(const StepNumbers& got, const StepNumbers& want, double tolerance, const std::string& what) {
  EXPECT_NEAR(got.loss, want.loss, tolerance * std::abs(want.loss)) << what;
  ASSERT_EQ(got.gradients.size(), want.gradients.size()) << what;
  for (const auto& [name, gradient] : want.gradients) {
    ASSERT_TRUE(got.gradients.contains(name)) << what << ": " << name;
    const double scale = gradient.abs().max().item<double>();
    const double error = (got.gradients.at(name) - gradient).abs().max().item<double>();
    EXPECT_LE(error, tolerance * scale) << what << ": gradient of " << name;
  }
}

class Layout : public testing::TestWithParam<ParallelDims> {};

// For each packer with each sharder, interleaved too with one of them: the schedule changes neither documents nor
// shards.
void expect_the_references_numbers(const ParallelDims& dims, Precision precision, double tolerance) {
  std::vector<Case> cases;
  std::map<std::string, StepNumbers> want;  // by packer: sharding does not change what it packs
  for (const std::string& packer : packer_names()) {
    if (packer == "fixed-solver") continue;  // to the executor no other than fixed-greedy
    for (const std::string& sharding : sharding_names()) {
      for (const int virtual_stages : {1, 2}) {
        if (virtual_stages > 1 && (sharding != "adaptive" || !can_interleave(dims))) continue;
        RunSpec spec = small_run(dims, virtual_stages, packer, sharding);
        spec.training.precision = precision;
        cases.push_back(
            case_of(spec, packer + ", " + sharding + ", " + std::to_string(virtual_stages) + " virtual stages"));
      }
    }
    want[packer] = reference_step(cases.back().spec, cases.back().plan);
  }
  const std::vector<StepNumbers> got = run_steps(dims, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    expect_same(got[i], want.at(cases[i].spec.packing.packer), tolerance, cases[i].name);
  }
}

TEST_P(Layout, GivesTheReferencesLossAndGradientsInFloat64ForEveryPackerAndSharder) {
  expect_the_references_numbers(GetParam(), Precision::float64, 1e-10);
}

TEST_P(Layout, GivesTheReferencesLossAndGradientsInFloat32ForEveryPackerAndSharder) {
  expect_the_references_numbers(GetParam(), Precision::float32, 1e-5);
}

TEST_P(Layout, GivesTheReferencesNumbersWithATiedHead) {
  for (const int virtual_stages : {1, 2}) {
    if (virtual_stages > 1 && !can_interleave(GetParam())) continue;
    RunSpec spec = small_run(GetParam(), virtual_stages, "wlb", "adaptive");
    spec.model = small_model(true);
    const Case tied = case_of(spec, "tied");
    expect_same(run_steps(GetParam(), {tied})[0], reference_step(spec, tied.plan), 1e-10, tied.name);
  }
}

INSTANTIATE_TEST_SUITE_P(AllDegrees, Layout, testing::ValuesIn(layouts()), layout_name);

}  // namespace
}  // namespace ballast
