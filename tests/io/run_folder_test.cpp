#include "ballast/io/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "ballast/base/error.h"
#include "ballast/io/run_record_json.h"
#include "ballast/io/timeline_json.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
bool any_holds(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return holds(text, part); });
}

StepMetrics metrics_of(std::int64_t step, Seconds seconds = 0.5) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 4.25;
  metrics.tokens = 1000;
  metrics.labels = 990;
  metrics.step_seconds = seconds;
  metrics.tokens_per_second = 1000 / seconds;
  metrics.grad_norm = 1.5;
  metrics.lr = 0.001;
  metrics.imbalance_micro_batch = 1.25;
  metrics.imbalance_measured = 1.2;
  metrics.predicted_step_seconds = 0.9 * seconds;
  metrics.planning_seconds = 0.001;
  metrics.recording_seconds = 0.002;
  metrics.wait_seconds = MeanMax{0.1, 0.2};
  metrics.token_delay_steps = MeanMax{0.5, 3};
  return metrics;
}

RunSummary summary_of() {
  RunSummary summary;
  summary.command = "ballast train run.toml";
  summary.device = "a \"machine\"";
  summary.cores = 2;
  summary.model = "layers 2";
  summary.window = 4096;
  summary.parallel = {.dp = 2, .pp = 1, .cp = 1};
  summary.packer = "wlb";
  summary.seed = 3;
  summary.steps = 2;
  summary.loss_first = 5;
  summary.loss_last = 4;
  summary.tokens = 2000;
  summary.tokens_per_second = 2000;
  summary.step_seconds_mean = summary.step_seconds_p50 = summary.step_seconds_max = 0.5;
  summary.prediction_error = MeanMax{0.1, 0.2};
  summary.token_delay_steps = Quantiles{0.5, 0, 2, 3};
  summary.token_delay_by_domain["code"] = Quantiles{1, 1, 3, 3};
  return summary;
}

class RunFolderOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("run_folder_test_" + std::to_string(::getpid())) / "balanced";
    fs::remove_all(folder_.parent_path());
    fs::create_directories(folder_ / "timeline");
    put("metrics.jsonl", to_json(metrics_of(0)) + "\n" + to_json(metrics_of(1)) + "\n");
    put("summary.json", to_json(summary_of()));
    put("corpus.json", to_json(CorpusRecord{"data/c", {"code", "prose"}, 10, 9000}));
    for (int rank = 0; rank < 2; ++rank) {
      TimelineWriter writer(folder_ / "timeline" / measured_timeline_name(rank), "measured",
                            {.dp = 2, .pp = 1, .cp = 1});
      Span span;
      span.rank = rank;
      span.end = 0.25;
      writer.append({span});
      span.step = 7;  // that metrics.jsonl does not have
      writer.append({span});
    }
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  void put(const char* name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }
  RunFolder read(RunParts parts = RunParts::everything) const { return read_run_folder(folder_, parts); }
  std::string error() const {
    try {
      read();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(RunFolderOnDisk, GivesBackWhatWasWritten) {
  const RunFolder run = read();
  EXPECT_EQ(run.name, "balanced");
  EXPECT_TRUE(run.finished);
  EXPECT_EQ(run.summary, summary_of());
  EXPECT_EQ(run.metrics, (std::vector<StepMetrics>{metrics_of(0), metrics_of(1)}));
  EXPECT_EQ(run.corpus.domains, (std::vector<std::string>{"code", "prose"}));
  ASSERT_EQ(run.timelines.size(), 1u);
  EXPECT_EQ(run.timelines[0].source, "measured");
}

TEST_F(RunFolderOnDisk, IsNamedByItsLastPartAlsoWithASlash) {
  EXPECT_EQ(read_run_folder(folder_.string() + "/", RunParts::figures).name, "balanced");
}

TEST_F(RunFolderOnDisk, LeavesTheStepsOutThatOnlySomeRanksRecorded) {
  const RunFolder run = read();
  EXPECT_EQ(run.timelines[0].spans.size(), 2u);
  EXPECT_TRUE(any_holds(run.notes, "1 steps of it, from step 7"));
}

TEST_F(RunFolderOnDisk, ToleratesHalfALastLineAndSaysSo) {
  put("metrics.jsonl", to_json(metrics_of(0)) + "\n" + to_json(metrics_of(1)).substr(0, 40));
  const RunFolder run = read();
  EXPECT_EQ(run.metrics.size(), 1u);
  EXPECT_TRUE(any_holds(run.notes, "metrics.jsonl: the last line is cut short and was left out"));
}

TEST_F(RunFolderOnDisk, RefusesABrokenLineInTheMiddle) {
  put("metrics.jsonl", "{\"step\":0,\n" + to_json(metrics_of(1)) + "\n");
  EXPECT_TRUE(holds(error(), "metrics.jsonl line 1")) << error();
}

TEST_F(RunFolderOnDisk, NamesTheKeyThatIsMissingOrWrong) {
  put("metrics.jsonl", "{\"step\":0,\"loss\":1,\"tokens\":5}\n");
  EXPECT_TRUE(holds(error(), "metrics.jsonl line 1: key \"step_seconds\" is missing")) << error();
  put("metrics.jsonl", "{\"step\":0,\"loss\":1,\"tokens\":\"five\",\"step_seconds\":1}\n");
  EXPECT_TRUE(holds(error(), "metrics.jsonl line 1: tokens: must be")) << error();
  put("metrics.jsonl", "{\"step\":0,\"loss\":1,\"tokens\":5,\"step_seconds\":0}\n");
  EXPECT_TRUE(holds(error(), "step_seconds")) << error();
}

TEST_F(RunFolderOnDisk, TakesTheLaterFiguresOfAStepThatWasRunAgain) {
  put("metrics.jsonl",
      to_json(metrics_of(0)) + "\n" + to_json(metrics_of(1, 9)) + "\n" + to_json(metrics_of(1, 2)) + "\n");
  const RunFolder run = read();
  ASSERT_EQ(run.metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(run.metrics[1].step_seconds, 2);
  EXPECT_TRUE(any_holds(run.notes, "after a resume"));
}

TEST_F(RunFolderOnDisk, SumsUpARunThatDidNotFinish) {
  fs::remove(folder_ / "summary.json");
  const RunFolder run = read();
  EXPECT_FALSE(run.finished);
  EXPECT_EQ(run.summary.tokens, 2000);
  EXPECT_DOUBLE_EQ(run.summary.tokens_per_second, 2000);
  EXPECT_NEAR(run.summary.prediction_error->mean, 0.1, 1e-12);
  EXPECT_TRUE(any_holds(run.notes, "no summary.json"));
}

TEST_F(RunFolderOnDisk, RefusesASummaryCutShort) {
  put("summary.json", to_json(summary_of()).substr(0, 100));
  EXPECT_TRUE(holds(error(), "summary.json")) << error();
}

TEST_F(RunFolderOnDisk, RefusesAFolderThatIsNone) {
  EXPECT_THROW(read_run_folder(folder_ / "absent", RunParts::figures), UserError);
  fs::remove(folder_ / "metrics.jsonl");
  EXPECT_TRUE(holds(error(), "not a run folder")) << error();
}

TEST_F(RunFolderOnDisk, RefusesARunWithoutAWholeStep) {
  put("metrics.jsonl", "");
  EXPECT_TRUE(holds(error(), "no whole step")) << error();
}

TEST_F(RunFolderOnDisk, TakesAPredictionOfNothingForNone) {
  TimelineWriter(folder_ / "timeline" / "predicted.jsonl", "predicted", {.dp = 2, .pp = 1, .cp = 1});
  ASSERT_EQ(read().timelines.size(), 1u);
  EXPECT_EQ(read().timelines[0].source, "measured");
}

TEST_F(RunFolderOnDisk, RefusesATimelineOfAnotherLayout) {
  fs::remove(folder_ / "timeline" / measured_timeline_name(1));
  TimelineWriter writer(folder_ / "timeline" / measured_timeline_name(1), "measured", {.dp = 1, .pp = 1, .cp = 1});
  EXPECT_TRUE(holds(error(), "timeline")) << error();
}

TEST(RunRecordJson, WritesALossThatIsNoNumberAsNull) {
  StepMetrics metrics = metrics_of(0);
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = to_json(metrics);
  EXPECT_TRUE(holds(text, "\"loss\":null")) << text;
  EXPECT_TRUE(std::isnan(step_metrics_from_json(text, "line").loss));
}

TEST(RunRecordJson, KeepsAFigureThatTheRunCannotHaveEmpty) {
  const std::string text = to_json(metrics_of(0));
  EXPECT_TRUE(holds(text, "\"replayed_step_seconds\":null")) << text;
  EXPECT_FALSE(step_metrics_from_json(text, "line").replayed_step_seconds.has_value());
}

}  // namespace
}  // namespace ballast
