#include "ballast/packing/balance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ballast {

double imbalance(const std::vector<Seconds>& work) {
  const Seconds total = std::accumulate(work.begin(), work.end(), 0.0);
  if (!(total > 0)) return 1;
  return *std::max_element(work.begin(), work.end()) * static_cast<double>(work.size()) / total;
}

std::vector<Seconds> predicted_work(const PackedStep& step, const CostModel& cost) {
  std::vector<Seconds> work;
  work.reserve(step.micro_batches.size());
  for (const MicroBatch& micro_batch : step.micro_batches) work.push_back(cost.micro_batch(micro_batch));
  return work;
}

Seconds lower_bound(const PackedStep& step, const CostModel& cost) {
  Seconds total = 0;
  Seconds longest = 0;
  for (const MicroBatch& micro_batch : step.micro_batches) {
    for (const Document& document : micro_batch.documents) {
      const Seconds work = cost.document(document.length);
      total += work;
      longest = std::max(longest, work);
    }
  }
  return std::max(longest, step.micro_batches.empty() ? 0.0 : total / static_cast<double>(step.micro_batches.size()));
}

double lower_bound_gap(const PackedStep& step, const CostModel& cost) {
  const Seconds bound = lower_bound(step, cost);
  if (!(bound > 0)) return 0;
  const std::vector<Seconds> work = predicted_work(step, cost);
  return std::max(0.0, *std::max_element(work.begin(), work.end()) / bound - 1);  // rounding may undercut the bound
}

void DomainMix::add(const PackedStep& step) {
  std::map<int, Tokens>& tokens = steps_.emplace_back();
  for (const MicroBatch& micro_batch : step.micro_batches) {
    for (const Document& document : micro_batch.documents) tokens[document.domain] += document.length;
  }
}

double DomainMix::mean_apart() const {
  std::map<int, double> mix;
  double all = 0;
  for (const auto& step : steps_) {
    for (const auto& [domain, tokens] : step) {
      mix[domain] += static_cast<double>(tokens);
      all += static_cast<double>(tokens);
    }
  }
  if (!(all > 0)) return 0;
  double sum = 0;
  for (const auto& step : steps_) {
    double total = 0;
    for (const auto& [domain, tokens] : step) total += static_cast<double>(tokens);
    if (!(total > 0)) continue;
    for (const auto& [domain, tokens] : mix) {
      const auto of_step = step.find(domain);
      const double share = of_step == step.end() ? 0 : static_cast<double>(of_step->second) / total;
      sum += std::abs(share - tokens / all) / 2;
    }
  }
  return sum / static_cast<double>(steps_.size());
}

void TokenDelay::add(const PackedStep& step) {
  for (const MicroBatch& micro_batch : step.micro_batches) {
    for (const Document& document : micro_batch.documents) {
      domains_[document.domain][std::max<std::int64_t>(0, step.step - document.due_step)] += document.length;
    }
  }
}

Quantiles TokenDelay::quantiles(const Histogram& tokens_by_delay) {
  double total = 0;
  double sum = 0;
  for (const auto& [delay, tokens] : tokens_by_delay) {
    total += static_cast<double>(tokens);
    sum += static_cast<double>(tokens) * static_cast<double>(delay);
  }
  if (!(total > 0)) return {};
  const auto quantile = [&](double share) {
    double below = 0;
    std::int64_t last = 0;
    for (const auto& [delay, tokens] : tokens_by_delay) {
      if (tokens == 0) continue;
      last = delay;
      below += static_cast<double>(tokens);
      if (below >= share * total) break;
    }
    return static_cast<double>(last);
  };
  return {.mean = sum / total, .p50 = quantile(0.5), .p99 = quantile(0.99), .max = quantile(1)};
}

Quantiles TokenDelay::overall() const {
  Histogram all;
  for (const auto& [domain, histogram] : domains_) {
    for (const auto& [delay, tokens] : histogram) all[delay] += tokens;
  }
  return quantiles(all);
}

std::map<int, Quantiles> TokenDelay::by_domain() const {
  std::map<int, Quantiles> result;
  for (const auto& [domain, histogram] : domains_) result[domain] = quantiles(histogram);
  return result;
}

}  // namespace ballast
