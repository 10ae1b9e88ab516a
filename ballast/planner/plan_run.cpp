#include "ballast/planner/plan_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "ballast/packing/queue_tuning.h"
#include "ballast/planner/candidates.h"
#include "ballast/workload/document_stream.h"

namespace ballast {

namespace {

constexpr int kSkippedSteps = 12;        // in which packers that hold documents back fill up
constexpr std::int64_t kSampleSteps = 60;  // that wlb's queues are tuned on

RankedCandidate summarize(const RunChoice& choice, const std::vector<StepEstimate>& steps, Bytes memory) {
  RankedCandidate found{.choice = choice, .peak_memory_bytes = memory};
  double squares = 0;
  double tokens = 0;
  Seconds seconds = 0;
  for (const StepEstimate& step : steps) {
    seconds += step.seconds;
    squares += step.seconds * step.seconds;
    tokens += static_cast<double>(step.tokens);
    found.bubble_share += step.bubble_share;
    found.exposed_communication_share += step.exposed_communication_share;
  }
  const auto count = static_cast<double>(steps.size());
  double imbalance = 0;
  for (const StepEstimate& step : steps) imbalance += step.imbalance;
  found.imbalance = imbalance / count;
  found.step_seconds = seconds / count;
  found.tokens_per_second = tokens / seconds;
  found.step_spread = std::sqrt(std::max(0.0, squares / count - found.step_seconds * found.step_seconds)) /
                      found.step_seconds;
  found.bubble_share /= count;
  found.exposed_communication_share /= count;
  return found;
}

void sort_fastest_first(std::vector<RankedCandidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const RankedCandidate& a, const RankedCandidate& b) {
    return a.tokens_per_second > b.tokens_per_second;
  });
}

class Search {
 public:
  Search(const RunSubject& subject, const std::function<void(std::int64_t, double)>& progress)
      : subject_(subject), progress_(progress), estimator_(subject_, kSkippedSteps) {
    tune();
  }

  RunPlanning run() {
    const auto begin = std::chrono::steady_clock::now();
    cut_by_memory();
    simulate();
    rank();
    planning_.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(planning_);
  }

 private:
  struct Open {
    RunChoice choice;
    Bytes memory = 0;
    double bound = 0;  // tokens a second that it cannot exceed
  };

  // wlb without queues would only be a variable-length packer.
  void tune() {
    const std::vector<std::string>& packers = subject_.run.plan.packers;
    PackingSpec& packing = subject_.run.packing;
    const bool wanted = packers.empty() || std::find(packers.begin(), packers.end(), "wlb") != packers.end();
    if (!wanted || !packing.queues.empty()) return;
    PackingSpec spec = packing;
    spec.packer = "wlb";
    spec.tune_queues = false;
    if (spec.max_tokens == 0) spec.max_tokens = spec.window + spec.window / 4;
    DocumentStream documents(subject_.lengths, subject_.domains,
                             {.shuffle = subject_.run.shuffle, .seed = subject_.run.seed, .num_epochs = 1});
    std::vector<Tokens> sample;
    Tokens tokens = 0;
    while (tokens < kSampleSteps * spec.micro_batches * spec.window) {
      const std::optional<Document> document = documents.next();
      if (!document) break;
      sample.push_back(document->length);
      tokens += document->length;
    }
    const auto cost = make_cluster_cost(subject_.device, subject_.cluster, subject_.run.model, {});
    packing.queues = tune_queues(spec, *cost, sample).chosen.queues;
  }

  void reject(const std::string& reason, std::int64_t count = 1) {
    planning_.rejected.count += count;
    planning_.rejected.by_reason[reason] += count;
    planning_.considered += count;
  }

  void cut_by_memory() {
    const RunSpec& run = subject_.run;
    for_each_frame(
        run, subject_.cluster,
        [&](const Frame& frame) {
          const std::vector<RunChoice> choices = completions(run, frame);
          // Memory knows of a packer only how long its micro-batches may be.
          std::map<Tokens, Bytes> by_cap;
          for (const RunChoice& choice : choices) {
            const RunSpec chosen = with_choice(run, choice);
            const Tokens cap = chosen.packing.variable_length() ? chosen.packing.cap() : chosen.packing.window;
            const auto [at, made] = by_cap.try_emplace(cap);
            if (made) at->second = peak_memory(chosen, estimator_.schedule(choice));
            const Bytes missing = at->second - subject_.cluster.memory_bytes;
            if (missing <= 0) {
              open_.push_back({.choice = choice, .memory = at->second});
              continue;
            }
            reject("does not fit in memory");
            if (!planning_.nearest || missing < planning_.missing_bytes) {
              planning_.nearest = choice;
              planning_.missing_bytes = missing;
            }
          }
        },
        [&](const std::string& rule, const std::string&) { reject("rule: " + rule); });
    if (!open_.empty()) {
      planning_.nearest.reset();
      planning_.missing_bytes = 0;
    }
  }

  // Most promising first; once as many as are to be kept are faster than the rest can be, the rest need no simulation.
  void simulate() {
    const PlanSpec& plan = subject_.run.plan;
    for (Open& open : open_) {
      open.bound = estimator_.tokens(open.choice, plan.steps) / estimator_.lower_bound(open.choice, plan.steps);
    }
    std::stable_sort(open_.begin(), open_.end(), [](const Open& a, const Open& b) { return a.bound > b.bound; });
    std::vector<double> best;  // tokens a second, of the fastest to be kept, falling
    const auto keep = static_cast<std::size_t>(plan.keep);
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Open& open = open_[i];
      if (best.size() == keep && open.bound <= best.back()) {
        const auto left = static_cast<std::int64_t>(open_.size() - i);
        reject("slower: not even without a bubble or an exchange as fast as those ranked", left);
        return;
      }
      const RankedCandidate found =
          summarize(open.choice, estimator_.estimate(open.choice, plan.steps), open.memory);
      ++planning_.considered;
      best.insert(std::upper_bound(best.begin(), best.end(), found.tokens_per_second, std::greater<>()),
                  found.tokens_per_second);
      if (best.size() > keep) best.pop_back();
      planning_.simulated.push_back(found);
      if (progress_) progress_(planning_.considered, best.front());
    }
  }

  void rank() {
    const PlanSpec& plan = subject_.run.plan;
    sort_fastest_first(planning_.simulated);
    for (std::size_t i = 0; i < planning_.simulated.size(); ++i) {
      const RankedCandidate& candidate = planning_.simulated[i];
      if (i >= static_cast<std::size_t>(plan.keep)) {
        ++planning_.rejected.count;
        ++planning_.rejected.by_reason["slower: simulated"];
        continue;
      }
      planning_.ranked.push_back(summarize(candidate.choice, estimator_.estimate(candidate.choice, plan.final_steps),
                                           candidate.peak_memory_bytes));
    }
    sort_fastest_first(planning_.ranked);
  }

  RunSubject subject_;
  const std::function<void(std::int64_t, double)>& progress_;
  StepEstimator estimator_;
  RunPlanning planning_;
  std::vector<Open> open_;
};

}  // namespace

Bytes peak_memory(const RunSpec& run, const Schedule& schedule, MemoryParts* worst) {
  Bytes most = 0;
  for (int pp = 0; pp < schedule.num_ranks; ++pp) {
    const MemoryParts parts = memory_of_rank(run, schedule, pp);
    if (parts.total() <= most) continue;
    most = parts.total();
    if (worst != nullptr) *worst = parts;
  }
  return most;
}

RunPlanning plan_run(const RunSubject& subject, const std::function<void(std::int64_t, double)>& progress) {
  return Search(subject, progress).run();
}

}  // namespace ballast
