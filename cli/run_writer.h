// Writes what one rank of a training run leaves in the run folder (docs/formats/run_folder.md): every rank its
// timeline, rank 0 also plans, predictions, metrics, the placement and the progress line. Files grow by whole lines; on
// resume what they hold of steps that run again is cut off first.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ballast/io/timeline_json.h"
#include "ballast/ir/run_record.h"
#include "ballast/runtime/train/trainer.h"
#include "cli/placement_file.h"

namespace ballast::cli {

// A file of one JSON object a line, each with a "step".
class StepLog {
 public:
  // Keeps the lines of steps before `first_step`, drops the rest and a line that was never finished.
  StepLog(std::filesystem::path path, std::int64_t first_step);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  void append(const std::string& line);  // throws RunError where the disk is full

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

class RunWriter final : public TrainObserver {
 public:
  // `cost`: as PlacementFile takes it. `total_steps` for the time left. `progress`: print a line a step to stderr.
  RunWriter(std::filesystem::path folder, const ParallelDims& dims, int rank, const CostModel* cost,
            std::int64_t first_step, std::int64_t total_steps, bool progress);

  void spans(std::int64_t step, const std::vector<Span>& spans) override;
  void step_done(const StepResult& result, const SourcedStep& step) override;

 private:
  struct Rank0Files {
    Rank0Files(const std::filesystem::path& folder, const ParallelDims& dims, const CostModel* cost,
               std::int64_t first_step);
    StepLog plans;
    StepLog metrics;
    TimelineWriter predicted;
    PlacementFile placement;
  };

  void print_progress(const StepMetrics& metrics);

  TimelineWriter timeline_;
  std::unique_ptr<Rank0Files> rank0_;  // empty on the other ranks
  std::int64_t total_steps_;
  bool progress_;
  Seconds seconds_so_far_ = 0;
  std::int64_t steps_so_far_ = 0;
};

}  // namespace ballast::cli
