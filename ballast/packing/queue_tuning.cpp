#include "ballast/packing/queue_tuning.h"

#include <algorithm>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/packing/balance.h"
#include "ballast/packing/packed_stream.h"

namespace ballast {

namespace {

constexpr Tokens kParts = 8;  // of the window: where thresholds may lie

// As if all that waits in queues were trained in the next step.
PackedStep held(const PackerState& state) {
  PackedStep step{.step = state.next_step, .micro_batches = {{}}};
  for (const std::vector<Document>& queue : state.queues) {
    step.micro_batches[0].documents.insert(step.micro_batches[0].documents.end(), queue.begin(), queue.end());
  }
  return step;
}

// The sample packed; a trial of fewer steps than others has only packed the same tokens in fewer.
QueueTrial try_queues(PackingSpec spec, std::vector<Tokens> queues, const CostModel& cost,
                      const std::vector<Tokens>& lengths, std::int64_t& steps) {
  spec.tune_queues = false;
  spec.queues = queues;
  PackedStream stream(spec, cost, documents_of(lengths));
  std::vector<PackedStep> packed;
  std::vector<PackedStep>
      late;  // what the end of the data, or of the sample, leaves: no rule for balance, but it waits
  while (static_cast<std::int64_t>(packed.size()) < kTuningSteps || stream.ended()) {
    std::optional<PackedStep> step = stream.next();
    if (!step) break;
    (stream.ended() && !packed.empty() ? late : packed).push_back(std::move(*step));
  }
  if (packed.empty()) throw UserError("queues = auto: the sample is shorter than a step");
  if (!stream.ended()) late.push_back(held(stream.state()));
  steps = static_cast<std::int64_t>(packed.size());
  QueueTrial trial{.queues = std::move(queues)};
  double sum = 0;
  TokenDelay delay;
  const std::size_t first = packed.size() / 10;  // queues fill
  for (std::size_t i = first; i < packed.size(); ++i) {
    sum += imbalance(predicted_work(packed[i], cost));
    delay.add(packed[i]);
  }
  for (const PackedStep& step : late) delay.add(step);
  trial.imbalance = sum / static_cast<double>(packed.size() - first);
  trial.delay_steps = delay.overall().mean;
  return trial;
}

// Every set of up to three of the eighths of the window, none first.
std::vector<std::vector<Tokens>> threshold_sets(Tokens window) {
  std::vector<Tokens> places;
  for (Tokens part = 1; part < kParts; ++part) {
    const Tokens place = window * part / kParts;
    if (place > 0 && (places.empty() || place > places.back())) places.push_back(place);
  }
  std::vector<std::vector<Tokens>> sets = {{}};
  for (std::size_t a = 0; a < places.size(); ++a) {
    sets.push_back({places[a]});
    for (std::size_t b = a + 1; b < places.size(); ++b) {
      sets.push_back({places[a], places[b]});
      for (std::size_t c = b + 1; c < places.size(); ++c) sets.push_back({places[a], places[b], places[c]});
    }
  }
  return sets;
}

}  // namespace

QueueTuning tune_queues(const PackingSpec& spec, const CostModel& cost, const std::vector<Tokens>& lengths,
                        double most_delay) {
  QueueTuning tuning;
  std::vector<QueueTrial> trials;
  for (std::vector<Tokens>& queues : threshold_sets(spec.window)) {
    trials.push_back(try_queues(spec, std::move(queues), cost, lengths, tuning.steps));
  }
  tuning.trials = static_cast<std::int64_t>(trials.size());
  // By delay, then imbalance, then fewer queues: whoever is no better than one before it is not on the frontier.
  std::stable_sort(trials.begin(), trials.end(), [](const QueueTrial& a, const QueueTrial& b) {
    return std::pair(a.delay_steps, a.imbalance) < std::pair(b.delay_steps, b.imbalance);
  });
  for (QueueTrial& trial : trials) {
    if (tuning.frontier.empty() || trial.imbalance < tuning.frontier.back().imbalance) {
      tuning.frontier.push_back(std::move(trial));
    }
  }
  tuning.chosen = tuning.frontier.front();
  for (const QueueTrial& trial : tuning.frontier) {
    if (trial.delay_steps <= most_delay) tuning.chosen = trial;
  }
  return tuning;
}

}  // namespace ballast
