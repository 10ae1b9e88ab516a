// Two or more runs against the first: speed-up with its spread, loss difference, and what else differs between them,
// so that a reader knows what the speed-up may be due to.
//
// Speed is compared by replayed step time where both runs have it for every step (ranks that share a core have no
// meaningful wall-clock), else by measured step time. The figure is total tokens / total step time of one run over the
// other's. Its spread is a percentile bootstrap over steps: both runs' steps are drawn again with replacement, by one
// draw of step numbers where both have the same steps with the same tokens (paired), apart otherwise; 1000 draws,
// seeded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ballast/ir/run_record.h"

namespace ballast {

// What is needed of a run; whoever reads run folders fills it in.
struct RunRecord {
  std::string name;
  RunSummary summary;
  CorpusRecord corpus;
  std::vector<StepMetrics> steps;  // in order, those left out (warm-up) already removed
};

enum class SpeedSource { measured, replayed, predicted };
std::string to_string(SpeedSource source);

// The step's time in that source, or empty.
std::optional<Seconds> seconds_of(const StepMetrics& step, SpeedSource source);
// Tokens a second over all steps, or empty where a step lacks the figure.
std::optional<double> tokens_per_second(const std::vector<StepMetrics>& steps, SpeedSource source);
// predicted, of a simulated run; replayed where every step has it; else measured.
SpeedSource speed_source(const std::vector<StepMetrics>& steps);

struct SpeedUp {
  double ratio = 1;
  double low = 1;   // 5th and
  double high = 1;  // 95th percentile
  bool paired = false;
  bool operator==(const SpeedUp&) const = default;
};

// Of `other` over `base`. REQUIRES: neither empty, every step has the figure.
SpeedUp speed_up(const std::vector<StepMetrics>& base, const std::vector<StepMetrics>& other, SpeedSource source);

// Median, least and greatest of speed-ups measured pair by pair (base, other, base, other, ...).
struct PairSpeedUps {
  std::vector<double> ratios;  // in the order given
  double median = 1;
  double min = 1;
  double max = 1;
};
PairSpeedUps pair_speed_ups(const std::vector<double>& tokens_per_second);  // REQUIRES: an even, positive number

struct Difference {
  std::string what;  // "packer"
  std::string base;
  std::string other;
  bool intended = false;  // packer and sharding: what such comparisons are for
  bool operator==(const Difference&) const = default;
};

struct RunComparison {
  SpeedSource source = SpeedSource::measured;
  SpeedUp speed;
  std::optional<double> predicted_ratio;  // by predicted step times of both
  double loss_difference = 0;             // other's last loss minus base's
  double late_loss_difference = 0;        // the same of the mean over the last quarter of steps, steadier
  bool same_tokens = false;               // both trained the same number of tokens
  std::vector<Difference> differences;
};

// REQUIRES: neither has an empty list of steps.
RunComparison compare_runs(const RunRecord& base, const RunRecord& other);

}  // namespace ballast
