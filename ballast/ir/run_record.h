// What a training run leaves behind besides its timeline: figures by step and a summary. The trainer writes them into
// the run folder (docs/formats/run_folder.md); `compare` and `report` read them. A figure that the run could not have
// (no profile, so no prediction; no core lease, so no replay) is empty, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/spec/parallel_dims.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct MeanMax {
  double mean = 0;
  double max = 0;
  bool operator==(const MeanMax&) const = default;
};

struct Quantiles {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
  bool operator==(const Quantiles&) const = default;
};

// One line of metrics.jsonl.
struct StepMetrics {
  std::int64_t step = 0;
  double loss = 0;  // mean over all valid labels of all ranks; NaN is written as null
  Tokens tokens = 0;
  Tokens labels = 0;
  Seconds step_seconds = 0;  // wall-clock, slowest rank; predicted, of a simulated run
  bool simulated = false;    // nothing of it was measured
  double tokens_per_second = 0;
  double grad_norm = 0;  // NaN is written as null
  double lr = 0;
  // Slowest x N / total: 1 is perfect. The first two are predicted by the cost model, the third is measured.
  std::optional<double> imbalance_micro_batch;
  std::optional<double> imbalance_cp;
  std::optional<double> imbalance_measured;
  std::optional<Seconds> predicted_step_seconds;
  std::optional<Seconds> replayed_step_seconds;  // as if every rank had its own core; needs a core lease
  Seconds planning_seconds = 0;
  Seconds recording_seconds = 0;
  std::optional<MeanMax> wait_seconds;  // over ranks
  std::optional<MeanMax> work_seconds;  // over ranks
  std::optional<MeanMax> token_delay_steps;
  std::optional<double> peak_memory_bytes;  // measured: the most that tensors held at once on a rank

  bool operator==(const StepMetrics&) const = default;
};

// summary.json
struct RunSummary {
  std::string command;
  std::string date;
  std::string device;  // "Intel Xeon ... " as the system names it
  int cores = 0;       // that the run could use
  std::string model;   // to_string(ModelSpec)
  std::string precision;
  Tokens window = 0;
  ParallelDims parallel;
  int virtual_stages = 1;
  std::string packer;
  std::string sharding;
  std::string profile;  // file of the hardware profile; empty: none
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  double loss_first = 0;
  double loss_last = 0;
  Tokens tokens = 0;
  double tokens_per_second = 0;
  Seconds step_seconds_mean = 0;
  Seconds step_seconds_p50 = 0;
  Seconds step_seconds_max = 0;
  std::optional<double> tokens_per_second_replayed;
  std::optional<double> imbalance_micro_batch;
  std::optional<double> imbalance_cp;
  std::optional<double> imbalance_measured;
  std::optional<double> peak_memory_bytes;            // of any step
  std::optional<double> predicted_peak_memory_bytes;  // of the fullest rank
  std::optional<MeanMax> prediction_error;            // |predicted - measured| / measured, over steps
  // Documents that the stream gave, that were trained, and what a policy did to some.
  std::int64_t documents_in = 0;
  std::int64_t documents_out = 0;
  std::int64_t documents_truncated = 0;
  std::int64_t documents_split = 0;
  std::int64_t documents_held = 0;
  std::optional<Quantiles> token_delay_steps;
  std::map<std::string, Quantiles> token_delay_by_domain;

  bool operator==(const RunSummary&) const = default;
};

// The fields of a summary that the run's own statement gives, the others as they are by default.
RunSummary summary_of(const RunSpec& spec);

// How many steps of a run of `num_steps` speeds leave out: the first, which warms allocator and kernels up, where there
// are more.
inline std::size_t warm_up_steps(std::size_t num_steps) { return num_steps > 1 ? 1 : 0; }

// Fills the figures that follow from the steps: number, tokens and losses of all of them; speeds, imbalances and the
// prediction's error (against replayed time where there is one: ranks that share a core have no wall-clock of their
// own) of those after the first `num_left_out`. REQUIRES: num_left_out < steps.size().
void add_steps(RunSummary& summary, const std::vector<StepMetrics>& steps, std::size_t num_left_out);

// corpus.json
struct CorpusRecord {
  std::string path;
  std::vector<std::string> domains;  // a document's `domain` is an index into this
  std::int64_t documents = 0;
  Tokens tokens = 0;
  bool operator==(const CorpusRecord&) const = default;
};

}  // namespace ballast
