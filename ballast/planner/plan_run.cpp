#include "ballast/planner/plan_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "ballast/planner/candidates.h"
#include "ballast/planner/run_queues.h"

namespace ballast {

namespace {

constexpr int kSkippedSteps = 12;  // in which packers that hold documents back fill up
constexpr const char* kSimulatedReason = "slower: simulated";
constexpr int kMostClimbs = 8;
constexpr std::size_t kKeptOfDegrees = 2;  // so that a ranking shows more than one set of degrees
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
  found.step_spread =
      std::sqrt(std::max(0.0, squares / count - found.step_seconds * found.step_seconds)) / found.step_seconds;
  found.bubble_share /= count;
  found.exposed_communication_share /= count;
  return found;
}

void sort_fastest_first(std::vector<RankedCandidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const RankedCandidate& a, const RankedCandidate& b) {
    if (a.tokens_per_second != b.tokens_per_second) return a.tokens_per_second > b.tokens_per_second;
    return a.peak_memory_bytes < b.peak_memory_bytes;
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
    judge_degrees();
    vary_best();
    planning_.run = subject_.run;
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
    RunSpec run = with_choice(subject_.run, {.packer = "wlb"});
    const auto cost = make_cluster_cost(subject_.device, subject_.cluster, run.model, {}, false, run.software);
    tune_run_queues(run, *cost,
                    DocumentStream(subject_.lengths, subject_.domains, {.shuffle = run.shuffle, .seed = run.seed}),
                    kSampleSteps);
    packing.queues = run.packing.queues;
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
          DegreesVerdict& verdict = verdict_of(frame.choice);
          for (const RunChoice& choice : choices) {
            ++verdict.choices;
            const RunSpec chosen = with_choice(run, choice);
            const Tokens cap = chosen.packing.most_tokens();
            const auto [at, made] = by_cap.try_emplace(cap);
            if (made) at->second = peak_memory(chosen, estimator_.schedule(choice));
            const Bytes missing = at->second - subject_.cluster.memory_bytes;
            if (missing <= 0) {
              ++verdict.fit;
              open_.push_back({.choice = choice, .memory = at->second});
              continue;
            }
            const bool first = verdict.least_missing_bytes == 0;
            verdict.least_missing_bytes = first ? missing : std::min(verdict.least_missing_bytes, missing);
            reject(kNoMemoryReason);
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

  // Most promising first. What is sure to be slower than all that will be ranked, or than those ranked of its degrees,
  // needs no simulation.
  void simulate() {
    const int steps = subject_.run.plan.steps;
    for (Open& open : open_) {
      open.bound = estimator_.tokens(open.choice, steps) / estimator_.lower_bound(open.choice, steps);
    }
    std::stable_sort(open_.begin(), open_.end(), [](const Open& a, const Open& b) { return a.bound > b.bound; });
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Open& open = open_[i];
      if (open.bound <= least_ranked_) {
        const auto left = static_cast<std::int64_t>(open_.size() - i);
        reject(kBoundedReason, left);
        return;
      }
      const std::vector<RankedCandidate>& same_degrees = leaders_[degrees_of(open.choice)];
      if (same_degrees.size() == kKeptOfDegrees && open.bound <= same_degrees.back().tokens_per_second) {
        reject(kBoundedReason);
        continue;
      }
      const RankedCandidate found = summarize(open.choice, estimator_.estimate(open.choice, steps), open.memory);
      ++planning_.considered;
      planning_.simulated.push_back(found);
      lead(found);
      if (progress_) progress_(planning_.considered, best_);
    }
  }

  // The best of its degrees so far. One of two that are equally fast is enough: the one that needs less memory.
  void lead(const RankedCandidate& found) {
    std::vector<RankedCandidate>& leaders = leaders_[degrees_of(found.choice)];
    best_ = std::max(best_, found.tokens_per_second);
    for (RankedCandidate& leader : leaders) {
      const bool equal = std::abs(leader.tokens_per_second / found.tokens_per_second - 1) < 1e-9;
      if (!equal) continue;
      if (found.peak_memory_bytes < leader.peak_memory_bytes) leader = found;
      return;
    }
    leaders.push_back(found);
    sort_fastest_first(leaders);
    if (leaders.size() > kKeptOfDegrees) leaders.pop_back();
    const std::vector<RankedCandidate> all = all_leaders();
    const auto keep = static_cast<std::size_t>(subject_.run.plan.keep);
    if (all.size() >= keep) least_ranked_ = all[keep - 1].tokens_per_second;
  }

  std::vector<RankedCandidate> all_leaders() const {
    std::vector<RankedCandidate> all;
    for (const auto& [degrees, leaders] : leaders_) all.insert(all.end(), leaders.begin(), leaders.end());
    sort_fastest_first(all);
    return all;
  }

  using Degrees = std::array<int, 4>;
  static Degrees degrees_of(const RunChoice& choice) {
    return {choice.tp, choice.dims.cp, choice.dims.pp, choice.dims.dp};
  }

  // What one change of the best is worth. Over more steps than candidates were sorted out by, a change may turn out
  // faster: then it is the best, and is varied in turn.
  void vary_best() {
    for (int climb = 0; climb < kMostClimbs && !planning_.ranked.empty(); ++climb) {
      planning_.variations.clear();
      std::optional<RankedCandidate> faster;
      const RankedCandidate best = planning_.ranked.front();
      for (const auto& [what, choice] : single_changes(subject_.run, best.choice)) {
        const Bytes memory = peak_memory(with_choice(subject_.run, choice), estimator_.schedule(choice));
        const RankedCandidate found =
            summarize(choice, estimator_.estimate(choice, subject_.run.plan.final_steps), memory);
        planning_.variations.push_back({.what = what,
                                        .choice = choice,
                                        .missing_bytes = std::max<Bytes>(0, memory - subject_.cluster.memory_bytes),
                                        .tokens_per_second = found.tokens_per_second});
        const double least = faster ? faster->tokens_per_second : best.tokens_per_second * (1 + 1e-9);
        if (memory <= subject_.cluster.memory_bytes && found.tokens_per_second > least) faster = found;
      }
      if (!faster || climb + 1 == kMostClimbs) return;
      rank_first(*faster);
    }
  }

  // A choice that had been turned away, or stood further down.
  void rank_first(const RankedCandidate& candidate) {
    std::vector<RankedCandidate>& ranked = planning_.ranked;
    const auto same = [&](const RankedCandidate& other) { return other.choice == candidate.choice; };
    if (std::erase_if(ranked, same) == 0) {
      const auto& simulated = planning_.simulated;
      const bool was_simulated = std::any_of(simulated.begin(), simulated.end(), same);
      --planning_.rejected.count;
      --planning_.rejected.by_reason[was_simulated ? kSimulatedReason : kBoundedReason];
    }
    ranked.insert(ranked.begin(), candidate);
  }

  DegreesVerdict& verdict_of(const RunChoice& choice) {
    const auto [at, made] = verdicts_.try_emplace(degrees_of(choice));
    at->second.dims = choice.dims;
    at->second.tp = choice.tp;
    return at->second;
  }

  void judge_degrees() {
    const auto take = [&](const RunChoice& choice, Bytes memory, double tokens_per_second, bool simulated) {
      DegreesVerdict& verdict = verdict_of(choice);
      if (verdict.simulated && !simulated) return;
      if (verdict.simulated == simulated && tokens_per_second <= verdict.tokens_per_second) return;
      verdict.best = choice;
      verdict.simulated = simulated;
      verdict.tokens_per_second = tokens_per_second;
      verdict.peak_memory_bytes = memory;
    };
    for (const Open& open : open_) take(open.choice, open.memory, open.bound, false);
    for (const RankedCandidate& c : planning_.simulated) take(c.choice, c.peak_memory_bytes, c.tokens_per_second, true);
    for (const auto& [degrees, verdict] : verdicts_) planning_.degrees.push_back(verdict);
    std::stable_sort(planning_.degrees.begin(), planning_.degrees.end(),
                     [](const DegreesVerdict& a, const DegreesVerdict& b) {
                       if (a.fit == 0 || b.fit == 0) {
                         return a.fit > 0 || (b.fit == 0 && a.least_missing_bytes < b.least_missing_bytes);
                       }
                       return a.tokens_per_second > b.tokens_per_second;
                     });
  }

  void rank() {
    const PlanSpec& plan = subject_.run.plan;
    sort_fastest_first(planning_.simulated);
    std::vector<RankedCandidate> leaders = all_leaders();
    leaders.resize(std::min(leaders.size(), static_cast<std::size_t>(plan.keep)));
    for (const RankedCandidate& leader : leaders) {
      planning_.ranked.push_back(
          summarize(leader.choice, estimator_.estimate(leader.choice, plan.final_steps), leader.peak_memory_bytes));
    }
    const auto others = static_cast<std::int64_t>(planning_.simulated.size() - planning_.ranked.size());
    planning_.rejected.count += others;
    if (others > 0) planning_.rejected.by_reason[kSimulatedReason] = others;
    sort_fastest_first(planning_.ranked);
  }

  RunSubject subject_;
  const std::function<void(std::int64_t, double)>& progress_;
  StepEstimator estimator_;
  RunPlanning planning_;
  std::vector<Open> open_;
  std::map<Degrees, DegreesVerdict> verdicts_;
  std::map<Degrees, std::vector<RankedCandidate>> leaders_;  // fastest first
  double best_ = 0;                                          // tokens a second
  double least_ranked_ = 0;                                  // of the slowest to be ranked; 0 while more are wanted
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
