#include "ballast/diagnose/run_comparison.h"

#include <algorithm>
#include <numeric>

#include "ballast/base/error.h"
#include "ballast/base/random.h"

namespace ballast {

namespace {

constexpr int kNumDraws = 1000;
constexpr std::uint64_t kBootstrapSeed = 0xba11a57;

struct Sum {
  double tokens = 0;
  Seconds seconds = 0;
  void add(const StepMetrics& step, SpeedSource source) {
    tokens += static_cast<double>(step.tokens);
    seconds += seconds_of(step, source).value();
  }
  double rate() const { return tokens / seconds; }
};

bool same_steps(const std::vector<StepMetrics>& a, const std::vector<StepMetrics>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const StepMetrics& x, const StepMetrics& y) {
    return x.step == y.step && x.tokens == y.tokens;
  });
}

double late_loss(const std::vector<StepMetrics>& steps) {
  const std::size_t count = std::max<std::size_t>(1, steps.size() / 4);
  double sum = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) sum += steps[i].loss;
  return sum / static_cast<double>(count);
}

Tokens total_tokens(const std::vector<StepMetrics>& steps) {
  return std::accumulate(steps.begin(), steps.end(), Tokens{0},
                         [](Tokens sum, const StepMetrics& step) { return sum + step.tokens; });
}

}  // namespace

std::string to_string(SpeedSource source) {
  switch (source) {
    case SpeedSource::measured:
      return "measured";
    case SpeedSource::replayed:
      return "replayed";
    case SpeedSource::predicted:
      break;
  }
  return "predicted";
}

std::optional<Seconds> seconds_of(const StepMetrics& step, SpeedSource source) {
  switch (source) {
    case SpeedSource::measured:
      if (step.simulated) return std::nullopt;
      return step.step_seconds;
    case SpeedSource::replayed:
      return step.replayed_step_seconds;
    case SpeedSource::predicted:
      break;
  }
  return step.predicted_step_seconds;
}

std::optional<double> tokens_per_second(const std::vector<StepMetrics>& steps, SpeedSource source) {
  Sum sum;
  for (const StepMetrics& step : steps) {
    if (!seconds_of(step, source)) return std::nullopt;
    sum.add(step, source);
  }
  if (!(sum.seconds > 0)) return std::nullopt;
  return sum.rate();
}

SpeedSource speed_source(const std::vector<StepMetrics>& steps) {
  if (std::any_of(steps.begin(), steps.end(), [](const StepMetrics& step) { return step.simulated; })) {
    return SpeedSource::predicted;
  }
  return tokens_per_second(steps, SpeedSource::replayed) ? SpeedSource::replayed : SpeedSource::measured;
}

SpeedUp speed_up(const std::vector<StepMetrics>& base, const std::vector<StepMetrics>& other, SpeedSource source) {
  SpeedUp result;
  result.ratio = tokens_per_second(other, source).value() / tokens_per_second(base, source).value();
  result.paired = same_steps(base, other);
  Random random(kBootstrapSeed);
  std::vector<double> ratios;
  ratios.reserve(kNumDraws);
  for (int draw = 0; draw < kNumDraws; ++draw) {
    Sum base_sum;
    Sum other_sum;
    for (std::size_t i = 0; i < base.size(); ++i) {
      const auto drawn = static_cast<std::size_t>(random.below(base.size()));
      base_sum.add(base[drawn], source);
      if (result.paired) other_sum.add(other[drawn], source);
    }
    if (!result.paired) {
      for (std::size_t i = 0; i < other.size(); ++i) {
        other_sum.add(other[static_cast<std::size_t>(random.below(other.size()))], source);
      }
    }
    ratios.push_back(other_sum.rate() / base_sum.rate());
  }
  std::sort(ratios.begin(), ratios.end());
  result.low = ratios[kNumDraws / 20];
  result.high = ratios[kNumDraws - 1 - kNumDraws / 20];
  return result;
}

PairSpeedUps pair_speed_ups(const std::vector<double>& rates) {
  BALLAST_ASSERT(!rates.empty() && rates.size() % 2 == 0, "pairs need an even, positive number of runs");
  PairSpeedUps result;
  for (std::size_t i = 0; i < rates.size(); i += 2) result.ratios.push_back(rates[i + 1] / rates[i]);
  std::vector<double> sorted = result.ratios;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  result.median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  result.min = sorted.front();
  result.max = sorted.back();
  return result;
}

namespace {

// A simulated run has predictions alone.
SpeedSource common_source(const RunRecord& base, const RunRecord& other) {
  const SpeedSource of_base = speed_source(base.steps);
  const SpeedSource of_other = speed_source(other.steps);
  if (of_base != SpeedSource::predicted && of_other != SpeedSource::predicted) {
    return of_base == of_other ? of_base : SpeedSource::measured;
  }
  for (const RunRecord* run : {&base, &other}) {
    if (tokens_per_second(run->steps, SpeedSource::predicted)) continue;
    throw UserError(run->name +
                    ": has no predictions, so that a simulated run has nothing to be compared with; train "
                    "with a [cost] profile");
  }
  return SpeedSource::predicted;
}

}  // namespace

RunComparison compare_runs(const RunRecord& base, const RunRecord& other) {
  RunComparison result;
  const auto base_predicted = tokens_per_second(base.steps, SpeedSource::predicted);
  const auto other_predicted = tokens_per_second(other.steps, SpeedSource::predicted);
  result.source = common_source(base, other);
  result.speed = speed_up(base.steps, other.steps, result.source);
  if (base_predicted && other_predicted) result.predicted_ratio = *other_predicted / *base_predicted;
  result.loss_difference = other.steps.back().loss - base.steps.back().loss;
  result.late_loss_difference = late_loss(other.steps) - late_loss(base.steps);
  result.same_tokens = total_tokens(base.steps) == total_tokens(other.steps);

  const auto differ = [&](const char* what, const std::string& a, const std::string& b, bool intended = false) {
    if (a != b) result.differences.push_back({what, a, b, intended});
  };
  const RunSummary& a = base.summary;
  const RunSummary& b = other.summary;
  differ("packer", a.packer, b.packer, true);
  differ("sharding", a.sharding, b.sharding, true);
  differ("model", a.model, b.model);
  differ("precision", a.precision, b.precision);
  differ("window", std::to_string(a.window), std::to_string(b.window));
  differ("parallel degrees", to_string(a.parallel), to_string(b.parallel));
  differ("virtual stages", std::to_string(a.virtual_stages), std::to_string(b.virtual_stages));
  differ("corpus", base.corpus.path, other.corpus.path);
  differ("seed", std::to_string(a.seed), std::to_string(b.seed));
  differ("machine", a.device, b.device);
  differ("cores", std::to_string(a.cores), std::to_string(b.cores));
  differ("steps compared", std::to_string(base.steps.size()), std::to_string(other.steps.size()));
  return result;
}

}  // namespace ballast
