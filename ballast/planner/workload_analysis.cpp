#include "ballast/planner/workload_analysis.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <optional>

#include "ballast/packing/balance.h"
#include "ballast/packing/packed_stream.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

namespace {

constexpr std::size_t kMostSteps = 300;
constexpr int kMostDelay = 20;        // steps, for the pool
constexpr double kWorthwhile = 1.05;  // a speed-up below this is not worth a change
constexpr Tokens kK = 1024;
constexpr Tokens kWindows[] = {32 * kK, 64 * kK, 128 * kK, 256 * kK, 512 * kK, 1024 * kK};

struct Method {
  const char* packer;
  const char* sharding;
};
constexpr Method kMethods[] = {
    {"plain", "per-sequence"}, {"plain", "per-document"}, {"plain", "adaptive"}, {"fixed-greedy", "adaptive"},
    {"wlb", "adaptive"},       {"pool", "adaptive"},      {"pool", "hybrid"}};

PackingSpec spec_of(const std::string& packer, Tokens window, int micro_batches) {
  PackingSpec spec;
  spec.packer = packer;
  spec.window = window;
  spec.micro_batches = micro_batches;
  if (spec.variable_length()) spec.max_tokens = window * 3 / 2;
  if (packer == "wlb" && window >= 4) spec.queues = {window / 4, window / 2, window * 3 / 4};
  if (packer == "pool") spec.max_delay = kMostDelay;
  return spec;
}

std::vector<PackedStep> pack(const PackingSpec& spec, const std::vector<Tokens>& lengths, const CostModel& cost) {
  PackedStream stream(spec, cost, documents_of(lengths));
  std::vector<PackedStep> steps;
  while (steps.size() < kMostSteps) {
    std::optional<PackedStep> step = stream.next();
    if (!step) break;
    steps.push_back(std::move(*step));
  }
  // Queues fill in the first steps; the last ones of the data are what is left. Neither is the rule.
  if (steps.size() >= 20) {
    if (stream.ended()) steps.resize(steps.size() - steps.size() / 10);
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 10));
  }
  return steps;
}

// Sums over steps.
struct Times {
  Seconds slowest = 0;             // slowest micro-batch, with its slowest rank
  Seconds slowest_even_ranks = 0;  // slowest micro-batch, if its ranks were even
  Seconds mean = 0;                // micro-batches and ranks all even
  Seconds attention = 0;
  Seconds work = 0;
  double cp_slowest = 0;  // over micro-batches: slowest rank of attention and linear part; and the mean
  double cp_mean = 0;
  double exchange = 0;  // of a layer, over micro-batches
  double layer = 0;     // its compute

  double imbalance() const { return mean > 0 ? slowest / mean : 1; }
};

class Evaluation {
 public:
  Evaluation(int cp, const CostModel& cost) : cp_(cp), cost_(cost) {}

  Times of(const std::vector<PackedStep>& steps, const std::string& sharding) const {
    Times times;
    for (const PackedStep& step : steps) {
      Seconds slowest = 0;
      Seconds slowest_even = 0;
      Seconds total = 0;
      for (const MicroBatch& micro_batch : step.micro_batches) {
        Seconds attention = 0;
        Seconds linear = 0;
        for (const Document& document : micro_batch.documents) {
          attention += cost_.document_attention(document.length);
          linear += cost_.document_linear(document.length);
        }
        const double uneven = attention > 0 ? unevenness(micro_batch, sharding, times) : 1;
        slowest = std::max(slowest, (linear + attention * uneven) / cp_);
        slowest_even = std::max(slowest_even, (linear + attention) / cp_);
        times.cp_slowest += linear + attention * uneven;
        times.cp_mean += linear + attention;
        total += (linear + attention) / cp_;
        times.attention += attention;
        times.work += linear + attention;
      }
      times.slowest += slowest;
      times.slowest_even_ranks += slowest_even;
      times.mean += total / static_cast<double>(step.micro_batches.size());
    }
    return times;
  }

 private:
  // Slowest rank's attention over the mean; notes what the exchange of keys and values takes beside it.
  double unevenness(const MicroBatch& micro_batch, const std::string& sharding, Times& times) const {
    if (cp_ == 1) return 1;
    const ShardPlan plan = make_shard_plan(sharding, micro_batch.cu_seqlens(), cp_, cost_);
    const Bytes bytes = plan.num_tokens() * cost_.kv_bytes_per_token();
    const Seconds exchange = cost_.collective(Collective::all_gather, Axis::cp, cp_, bytes) +
                             cost_.collective(Collective::reduce_scatter, Axis::cp, cp_, bytes);
    Seconds slowest = 0;
    Seconds sum = 0;
    for (const Seconds seconds : predict_attention(plan, cost_)) {
      slowest = std::max(slowest, seconds - exchange);
      sum += seconds - exchange;
    }
    times.exchange += exchange;
    times.layer += sum / cp_;
    for (const Pass pass : {Pass::forward, Pass::backward}) times.layer += cost_.layer(pass, plan.num_tokens() / cp_);
    return sum > 0 ? slowest * cp_ / sum : 1;
  }

  int cp_;
  const CostModel& cost_;
};

std::vector<LengthBand> bands_of(const std::vector<Tokens>& lengths) {
  std::map<Tokens, LengthBand> bands;
  double tokens = 0;
  double squares = 0;
  for (const Tokens length : lengths) {
    const auto from = length == 0 ? 0 : static_cast<Tokens>(std::bit_floor(static_cast<std::uint64_t>(length)));
    LengthBand& band = bands[from];
    band.from = from;
    band.to = from == 0 ? 1 : 2 * from;
    ++band.documents;
    const double as_double = static_cast<double>(length);
    band.token_share += as_double;
    band.squares_share += as_double * as_double;
    tokens += as_double;
    squares += as_double * as_double;
  }
  std::vector<LengthBand> result;
  for (auto& [from, band] : bands) {
    if (tokens > 0) band.token_share /= tokens;
    if (squares > 0) band.squares_share /= squares;
    result.push_back(band);
  }
  return result;
}

std::string percent(double share) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f%%", 100 * share);
  return buffer;
}

std::string factor(double ratio) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2fx", ratio);
  return buffer;
}

void judge(WorkloadAnalysis& analysis) {
  const auto best = std::max_element(analysis.strategies.begin(), analysis.strategies.end(),
                                     [](const auto& a, const auto& b) { return a.speedup < b.speedup; });
  const StrategyForecast& plain = analysis.strategies.front();
  const double waste = 1 - 1 / (plain.imbalance_micro_batch * plain.imbalance_cp);
  if (analysis.communication_share > waste && analysis.communication_share > 1 - 1 / kWorthwhile) {
    analysis.verdict = Verdict::communication_bound;
    analysis.why = "ranks spend " + percent(analysis.communication_share) +
                   " of a layer exchanging keys and values, but only " + percent(waste) +
                   " of a step waiting for slower ones: fewer context parallel ranks, or a faster network, come first";
  } else if (best->speedup < kWorthwhile) {
    analysis.verdict = Verdict::not_imbalanced;
    analysis.why = "under plain packing ranks wait " + percent(waste) +
                   " of the time for slower ones, and the best strategy gains " + factor(best->speedup);
    if (analysis.attention_share < 0.2) {
      analysis.why += "; attention is only " + percent(analysis.attention_share) +
                      " of the work, so equal tokens are nearly equal work";
    }
  } else {
    analysis.verdict = Verdict::balance_bound;
    analysis.why = "under plain packing ranks wait " + percent(waste) + " of the time for slower ones; " +
                   best->packer + " packing with " + best->sharding + " sharding gains " + factor(best->speedup);
  }
}

}  // namespace

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::balance_bound:
      return "balance-bound";
    case Verdict::communication_bound:
      return "communication-bound";
    case Verdict::not_imbalanced:
      return "not imbalanced";
  }
  BALLAST_ASSERT(false, "a verdict");
}

WorkloadAnalysis analyze_workload(const std::vector<Tokens>& lengths, Tokens window, int micro_batches, int cp,
                                  const CostModel& cost) {
  WorkloadAnalysis analysis;
  analysis.documents = static_cast<std::int64_t>(lengths.size());
  for (const Tokens length : lengths) analysis.tokens += length;
  analysis.bands = bands_of(lengths);
  const Evaluation evaluation(cp, cost);

  Times plain;
  for (const auto& [packer, sharding] : kMethods) {
    if (cp == 1 && std::string(sharding) != (std::string(packer) == "plain" ? "per-sequence" : "adaptive")) continue;
    const std::vector<PackedStep> steps = pack(spec_of(packer, window, micro_batches), lengths, cost);
    const Times times = evaluation.of(steps, sharding);
    if (analysis.strategies.empty()) {
      plain = times;
      analysis.attention_share = times.work > 0 ? times.attention / times.work : 0;
      analysis.communication_share = times.exchange > 0 ? times.exchange / (times.exchange + times.layer) : 0;
    }
    TokenDelay delay;
    for (const PackedStep& step : steps) delay.add(step);
    analysis.strategies.push_back({.packer = packer,
                                   .sharding = sharding,
                                   .imbalance_micro_batch = times.mean > 0 ? times.slowest_even_ranks / times.mean : 1,
                                   .imbalance_cp = times.cp_mean > 0 ? times.cp_slowest / times.cp_mean : 1,
                                   .token_delay_steps = delay.overall().mean,
                                   .speedup = plain.imbalance() / times.imbalance()});
  }

  std::vector<Tokens> windows(std::begin(kWindows), std::end(kWindows));
  if (std::find(windows.begin(), windows.end(), window) == windows.end()) windows.push_back(window);
  std::sort(windows.begin(), windows.end());
  for (const Tokens asked : windows) {
    const Times before = evaluation.of(pack(spec_of("plain", asked, micro_batches), lengths, cost), "per-sequence");
    const Times after = evaluation.of(pack(spec_of("pool", asked, micro_batches), lengths, cost),
                                      cp == 1 ? "per-sequence" : "adaptive");
    analysis.windows.push_back({.window = asked,
                                .imbalance = before.imbalance(),
                                .attention_share = before.work > 0 ? before.attention / before.work : 0,
                                .speedup = before.imbalance() / after.imbalance()});
  }
  judge(analysis);
  return analysis;
}

}  // namespace ballast
