#include "cli/run_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/run_record_json.h"

namespace ballast::cli {

namespace {

// The number after "step": of a line; every line written here begins with a few short keys.
std::optional<std::int64_t> step_of(std::string_view line) {
  const std::size_t at = line.find("\"step\":");
  if (at == std::string_view::npos) return std::nullopt;
  return std::strtoll(line.data() + at + 7, nullptr, 10);
}

MeanMax mean_max(const std::vector<Seconds>& values) {
  MeanMax result;
  if (values.empty()) return result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.max = *std::max_element(values.begin(), values.end());
  return result;
}

// Steps a token waited from the global batch that brought it to the step that trains it.
MeanMax token_delay(const StepPlan& plan) {
  MeanMax delay;
  Tokens tokens = 0;
  for (const auto& pipeline : plan.micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) {
      for (const Document& document : micro_batch.documents) {
        const auto waited = static_cast<double>(plan.step - document.due_step);
        delay.mean += waited * static_cast<double>(document.length);
        if (document.length > 0) delay.max = std::max(delay.max, waited);
        tokens += document.length;
      }
    }
  }
  if (tokens > 0) delay.mean /= static_cast<double>(tokens);
  return delay;
}

}  // namespace

StepLog::StepLog(std::filesystem::path path, std::int64_t first_step) : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) {
    const std::string before = read_file(path_);
    std::string kept;
    std::size_t at = 0;
    while (true) {
      const std::size_t end = before.find('\n', at);
      if (end == std::string::npos) break;
      const std::string_view line(before.data() + at, end - at);
      const auto step = step_of(line);
      if (step && *step < first_step) kept.append(before, at, end + 1 - at);
      at = end + 1;
    }
    if (kept != before) write_file_atomically(path_, kept);
  }
  file_ = std::fopen(path_.c_str(), "ab");
  if (file_ == nullptr) throw UserError(path_.string() + ": cannot be written: " + std::strerror(errno));
}

StepLog::~StepLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void StepLog::append(const std::string& line) {
  if (std::fputs((line + '\n').c_str(), file_) < 0 || std::fflush(file_) != 0) {
    throw RunError(path_.string() + ": cannot be written: " + std::strerror(errno));
  }
}

RunWriter::Rank0Files::Rank0Files(const std::filesystem::path& folder, const ParallelDims& dims, const CostModel* cost,
                                  std::int64_t first_step)
    : plans(folder / "plan.jsonl", first_step),
      metrics(folder / "metrics.jsonl", first_step),
      predicted(folder / "timeline" / "predicted.jsonl", "predicted", dims, first_step),
      placement(folder, cost, first_step) {}

RunWriter::RunWriter(std::filesystem::path folder, const ParallelDims& dims, int rank, const CostModel* cost,
                     std::int64_t first_step, std::int64_t total_steps, bool progress)
    : timeline_(folder / "timeline" / measured_timeline_name(rank), "measured", dims, first_step),
      total_steps_(total_steps),
      progress_(progress) {
  if (rank == 0) rank0_ = std::make_unique<Rank0Files>(folder, dims, cost, first_step);
}

void RunWriter::spans(std::int64_t /*step*/, const std::vector<Span>& spans) { timeline_.append(spans); }

void RunWriter::step_done(const StepResult& result, const SourcedStep& step) {
  if (!rank0_) return;
  StepMetrics metrics;
  metrics.step = result.step;
  metrics.loss = result.loss;
  metrics.tokens = step.plan.num_tokens();
  metrics.labels = step.plan.num_labels();
  metrics.step_seconds = result.step_seconds;
  metrics.tokens_per_second = static_cast<double>(metrics.tokens) / result.step_seconds;
  metrics.grad_norm = result.grad_norm;
  metrics.lr = result.lr;
  metrics.imbalance_micro_batch = step.imbalance_micro_batch;
  metrics.imbalance_cp = step.imbalance_cp;
  if (step.predicted_seconds > 0) metrics.predicted_step_seconds = step.predicted_seconds;
  metrics.planning_seconds = step.planning_seconds;
  metrics.recording_seconds = result.recording_seconds;
  metrics.work_seconds = mean_max(result.work_seconds);
  metrics.wait_seconds = mean_max(result.wait_seconds);
  if (metrics.work_seconds->mean > 0)
    metrics.imbalance_measured = metrics.work_seconds->max / metrics.work_seconds->mean;
  metrics.token_delay_steps = token_delay(step.plan);
  if (result.peak_memory_bytes > 0) metrics.peak_memory_bytes = static_cast<double>(result.peak_memory_bytes);

  rank0_->plans.append(to_json(step.plan));
  rank0_->predicted.append(step.predicted.spans);
  rank0_->placement.add(step.plan);
  rank0_->metrics.append(to_json(metrics));
  seconds_so_far_ += result.step_seconds;
  ++steps_so_far_;
  if (progress_) print_progress(metrics);
}

void RunWriter::print_progress(const StepMetrics& metrics) {
  const auto left =
      static_cast<double>(total_steps_ - metrics.step - 1) * seconds_so_far_ / static_cast<double>(steps_so_far_);
  fmt::print(stderr,
             "step {:>5}/{}  loss {:.4f}  {:>8.0f} tokens/s  {:.3f} s  imbalance {:.3f}  {:.0f}:{:02.0f} left\n",
             metrics.step + 1, total_steps_, metrics.loss, metrics.tokens_per_second, metrics.step_seconds,
             metrics.imbalance_measured.value_or(1), std::floor(left / 60), std::fmod(left, 60));
}

}  // namespace ballast::cli
