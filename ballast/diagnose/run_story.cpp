#include "ballast/diagnose/run_story.h"

#include <cmath>
#include <cstdio>

namespace ballast {

namespace {

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2fx", ratio);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f%%" : "%.0f%%", 100 * share);
  return text;
}

// 1234567 as "1,234,567".
std::string grouped(double value) {
  std::string digits = std::to_string(static_cast<long long>(std::llround(value)));
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::optional<double> mean_imbalance(const RunRecord& run) {
  double sum = 0;
  std::size_t count = 0;
  for (const StepMetrics& step : run.steps) {
    if (!step.imbalance_measured) continue;
    sum += *step.imbalance_measured;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional<double>(sum / static_cast<double>(count));
}

// "plain's slowest rank worked 1.31x the mean, rank 1 waited 23% of its time in REDUCE_GRAD"; empty where unknown.
std::string losses(const RunEvidence& run) {
  std::string text;
  if (const auto imbalance = mean_imbalance(run.record)) {
    text = run.record.name + "'s slowest rank worked " + times(*imbalance) + " the mean";
  }
  const LongestWait& wait = run.longest_wait;
  if (wait.rank >= 0) {
    text += (text.empty() ? "in " + run.record.name + " rank " : ", rank ") + std::to_string(wait.rank) + " waited " +
            percent(wait.share) + " of its time in " + to_string(wait.kind);
  }
  return text;
}

std::string spread(const SpeedUp& speed) {
  return "90% interval over steps " + times(speed.low) + " to " + times(speed.high);
}

std::string caution(const std::string& base, const RunEvidence& other, const std::vector<Difference>& differences) {
  std::string what;
  for (const Difference& difference : differences) {
    if (difference.intended) continue;
    what +=
        (what.empty() ? "" : "; ") + difference.what + " (" + difference.base + " against " + difference.other + ")";
  }
  if (what.empty()) return what;
  return "Careful: " + base + " and " + other.record.name + " also differ in " + what + ".";
}

}  // namespace

RunStory::Verdict verdict_of(const SpeedUp& speed) {
  if (speed.low > 1) return RunStory::Verdict::faster;
  if (speed.high < 1) return RunStory::Verdict::slower;
  return RunStory::Verdict::no_difference;
}

RunStory tell_story(const std::vector<RunEvidence>& runs) {
  RunStory story;
  const RunEvidence& base = runs.front();
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) story.details.push_back(std::move(sentence));
  };
  const auto add_losses = [&](const RunEvidence& run) {
    const std::string text = losses(run);
    if (!text.empty()) add(text + ".");
  };

  if (runs.size() == 1) {
    const SpeedSource source = speed_source(base.record.steps);
    const std::string text = losses(base);
    const char* does = source == SpeedSource::predicted ? " would train " : " trained ";
    story.headline = base.record.name + does + grouped(tokens_per_second(base.record.steps, source).value()) +
                     " tokens a second (" + to_string(source) + ", " + std::to_string(base.record.steps.size()) +
                     " steps)" + (text.empty() ? "." : ": " + text + ".");
  }

  // The headline is the run furthest from the base; the others follow.
  std::size_t furthest = 0;
  std::vector<RunComparison> comparisons(runs.size());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    comparisons[i] = compare_runs(base.record, runs[i].record);
    const auto distance = [&](std::size_t k) { return std::abs(std::log(comparisons[k].speed.ratio)); };
    if (furthest == 0 || distance(i) > distance(furthest)) furthest = i;
  }
  const auto sentence = [&](std::size_t i) {
    const RunComparison& comparison = comparisons[i];
    const std::string& name = runs[i].record.name;
    const std::string& base_name = base.record.name;
    switch (verdict_of(comparison.speed)) {
      case RunStory::Verdict::faster:
        return name + " ran " + times(comparison.speed.ratio) + " as fast as " + base_name;
      case RunStory::Verdict::slower:
        return name + " ran slower than " + base_name + ", at " + times(comparison.speed.ratio) + " its speed";
      default:
        break;
    }
    return "No difference beyond the spread over steps: " + name + " ran at " + times(comparison.speed.ratio) + " " +
           base_name + "'s speed";
  };
  if (furthest > 0) {
    const RunComparison& comparison = comparisons[furthest];
    story.verdict = verdict_of(comparison.speed);
    // A loss explains the slower run: the base where the other gained.
    const bool base_lost = comparison.speed.ratio >= 1;
    const std::string text = losses(base_lost ? base : runs[furthest]);
    const bool differs = story.verdict != RunStory::Verdict::no_difference;
    story.headline = sentence(furthest) + (text.empty() || !differs ? "." : ": " + text + ".");
    add("Speed is " + to_string(comparison.source) + "; " + spread(comparison.speed) +
        (comparison.predicted_ratio ? "; predicted " + times(*comparison.predicted_ratio) : "") + ".");
    if (!differs && !text.empty()) add(text + ".");
    add_losses(base_lost ? runs[furthest] : base);
    add(caution(base.record.name, runs[furthest], comparison.differences));
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (i == furthest) continue;
      add(sentence(i) + " (" + to_string(comparisons[i].source) + "; " + spread(comparisons[i].speed) + ").");
      add(caution(base.record.name, runs[i], comparisons[i].differences));
    }
  }
  for (const RunEvidence& run : runs) {
    if (const auto& error = run.record.summary.prediction_error) {
      add("The prediction of " + run.record.name + "'s step time was off by " + percent(error->mean) + " on average, " +
          percent(error->max) + " at worst.");
    }
  }
  return story;
}

}  // namespace ballast
