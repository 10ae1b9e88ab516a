#include "ballast/packing/release.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace ballast {

namespace {

constexpr std::size_t kMostPairs = 16;   // candidates whose sums of two are levels to try
constexpr std::size_t kMostLevels = 48;  // of single candidates; more than these are sampled evenly...
constexpr std::size_t kMany = 512;  // ...and half of them where candidates are so many that any level comes out even
constexpr double kSlack = 0.01;     // above a level still counts as level
constexpr double kUrgencyPerStep = 0.5;  // a step waited makes waiting on that much dearer

struct Bin {
  Seconds work = 0;
  Tokens tokens = 0;
};

struct Filled {
  Seconds slowest = 0;
  Seconds total = 0;
  Tokens left_over = 0;  // short tokens that no micro-batch has room for
};

// The short documents poured over the bins: each rises from its work to a common level, unless its tokens are full.
Filled pour(const std::vector<Bin>& bins, const ReleaseProblem& problem) {
  const double work_per_token =
      problem.short_tokens > 0 ? problem.short_work / static_cast<double>(problem.short_tokens) : 0;
  struct Edge {
    Seconds level;
    int change;  // of the number of bins that rise
  };
  std::vector<Edge> edges;
  Filled filled;
  for (const Bin& bin : bins) {
    filled.total += bin.work;
    filled.slowest = std::max(filled.slowest, bin.work);
    const Seconds room = static_cast<double>(problem.cap - bin.tokens) * work_per_token;
    edges.push_back({bin.work, 1});
    edges.push_back({bin.work + room, -1});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.level != b.level ? a.level < b.level : a.change > b.change; });
  Seconds left = problem.short_work;
  int rising = 0;
  Seconds level = edges.front().level;
  for (const Edge& edge : edges) {
    const Seconds step = (edge.level - level) * rising;
    if (left <= step) break;
    left -= step;
    level = edge.level;
    rising += edge.change;
  }
  if (rising > 0) {
    level += left / rising;
    left = 0;
  }
  filled.total += problem.short_work - left;
  if (problem.short_work > left) filled.slowest = std::max(filled.slowest, level);
  if (work_per_token > 0) filled.left_over = static_cast<Tokens>(left / work_per_token);
  return filled;
}

enum class Into { emptiest, fullest };

class Search {
 public:
  explicit Search(const ReleaseProblem& problem) : problem_(problem) {}

  Release best() {
    for (const Seconds level : levels()) {
      consider(level, Into::emptiest);
      consider(level, Into::fullest);
    }
    return best_;
  }

 private:
  std::vector<Seconds> levels() const {
    const std::vector<Candidate>& candidates = problem_.candidates;
    std::vector<Seconds> levels = {0, std::numeric_limits<double>::infinity()};
    const std::size_t every = candidates.size() / (candidates.size() > kMany ? kMostLevels / 2 : kMostLevels) + 1;
    for (std::size_t i = 0; i < candidates.size(); i += every) levels.push_back(candidates[i].work);
    if (candidates.size() <= kMostPairs) {
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        for (std::size_t j = i + 1; j < candidates.size(); ++j) {
          levels.push_back(candidates[i].work + candidates[j].work);
        }
      }
    }
    return levels;
  }

  void consider(Seconds level, Into into) {
    const std::vector<Candidate>& candidates = problem_.candidates;
    std::vector<Bin> bins(static_cast<std::size_t>(problem_.micro_batches));
    std::set<std::pair<Seconds, int>> by_work;
    for (int b = 0; b < problem_.micro_batches; ++b) by_work.emplace(0.0, b);
    std::vector<int> placed(candidates.size(), -1);
    const auto put = [&](std::size_t i, std::set<std::pair<Seconds, int>>::iterator at) {
      const int b = at->second;
      by_work.erase(at);
      Bin& bin = bins[static_cast<std::size_t>(b)];
      bin.work += candidates[i].work;
      bin.tokens += candidates[i].tokens;
      by_work.emplace(bin.work, b);
      placed[i] = b;
    };
    const auto fits = [&](std::size_t i, int b) {
      return bins[static_cast<std::size_t>(b)].tokens + candidates[i].tokens <= problem_.cap;
    };
    for (const bool must : {true, false}) {
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].must != must) continue;
        if (must || into == Into::emptiest) {
          const auto emptiest = by_work.begin();
          const bool below = must || emptiest->first + candidates[i].work <= level * (1 + kSlack);
          if (below && fits(i, emptiest->second)) put(i, emptiest);
          continue;
        }
        auto at = by_work.upper_bound({level * (1 + kSlack) - candidates[i].work, problem_.micro_batches});
        if (at != by_work.begin() && fits(i, std::prev(at)->second)) put(i, std::prev(at));
      }
    }
    judge(bins, std::move(placed));
  }

  void judge(const std::vector<Bin>& bins, std::vector<int> placed) {
    const Filled filled = pour(bins, problem_);
    Tokens trained = problem_.short_tokens - filled.left_over;
    double waiting = static_cast<double>(filled.left_over);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const Candidate& candidate = problem_.candidates[i];
      if (placed[i] >= 0) {
        trained += candidate.tokens;
      } else {
        waiting += static_cast<double>(candidate.tokens) * (1 + kUrgencyPerStep * candidate.waited);
      }
    }
    const double nominal = static_cast<double>(problem_.nominal);
    const double imbalance = filled.total > 0 ? filled.slowest * problem_.micro_batches / filled.total : 1;
    const double swing = std::abs(static_cast<double>(trained) / nominal - 1);
    const double over = problem_.token_swing > 0 ? std::max(0.0, swing - problem_.token_swing) : 0;
    // A swing beyond its bound is worse than any imbalance: it is taken only where nothing else is there.
    const double score = imbalance - 1 + problem_.delay_price * waiting / nominal +
                         problem_.mix_weight * wrong_domain(placed, trained, filled.left_over) +
                         1000 * over * problem_.micro_batches;
    if (best_.bin.empty() || score < best_score_) {
      best_score_ = score;
      best_ = {.bin = std::move(placed), .imbalance = imbalance};
    }
  }

  // Share of the trained tokens that would have to be of another domain for the mix to be the wanted one. Short
  // documents are left over from all domains alike.
  double wrong_domain(const std::vector<int>& placed, Tokens trained, Tokens short_left_over) const {
    if (problem_.mix_weight <= 0 || trained <= 0) return 0;
    const double filled = problem_.short_tokens > 0
                              ? 1 - static_cast<double>(short_left_over) / static_cast<double>(problem_.short_tokens)
                              : 0;
    std::vector<double> tokens(problem_.mix.size());
    for (std::size_t d = 0; d < tokens.size(); ++d) {
      tokens[d] = filled * static_cast<double>(problem_.short_domain_tokens[d]);
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const Candidate& candidate = problem_.candidates[i];
      if (placed[i] >= 0) tokens[static_cast<std::size_t>(candidate.domain)] += static_cast<double>(candidate.tokens);
    }
    double apart = 0;
    for (std::size_t d = 0; d < tokens.size(); ++d) {
      apart += std::abs(tokens[d] / static_cast<double>(trained) - problem_.mix[d]);
    }
    return apart / 2;
  }

  const ReleaseProblem& problem_;
  Release best_;
  double best_score_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Release choose_release(const ReleaseProblem& problem) { return Search(problem).best(); }

}  // namespace ballast
