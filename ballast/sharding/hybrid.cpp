// Hybrid sharding (requirement W10): long documents are cut, short ones stay whole, so that their blocks are few and
// long.
#include <algorithm>
#include <utility>

#include "ballast/sharding/placement.h"
#include "ballast/sharding/predict_layer.h"
#include "ballast/sharding/ranges.h"
#include "ballast/sharding/sharder.h"

namespace ballast {

namespace {

// Thresholds tried: these shares of what a rank holds. A document longer than that cannot stay whole.
constexpr Tokens kThresholdDivisors[] = {1, 2, 4, 8};

}  // namespace

ShardPlan shard_whole_below(const std::vector<Tokens>& cu_seqlens, int num_ranks, Tokens threshold,
                            const CostModel& cost) {
  ShardPlan plan = empty_plan("hybrid", cu_seqlens, num_ranks);
  const std::size_t ranks = plan.ranges.size();
  std::size_t next_rank = 0;
  std::vector<TokenRange> whole;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    const TokenRange document{cu_seqlens[d], cu_seqlens[d + 1]};
    if (document.empty()) continue;
    if (document.size() >= threshold) {
      deal_document(plan, document.begin, document.end, next_rank);
    } else {
      whole.push_back(document);
    }
  }
  std::stable_sort(whole.begin(), whole.end(),
                   [](const TokenRange& a, const TokenRange& b) { return a.size() > b.size(); });

  // In all, every rank holds the same number of tokens, the first ones one more.
  std::vector<Tokens> room;
  const Tokens share = plan.num_tokens() / num_ranks;
  const Tokens longer = plan.num_tokens() % num_ranks;
  for (std::size_t r = 0; r < ranks; ++r) {
    room.push_back(share + (static_cast<Tokens>(r) < longer ? 1 : 0) - plan.num_tokens(static_cast<int>(r)));
  }
  RankLoads open(room);
  std::vector<TokenRange> to_cut;
  for (const TokenRange& document : whole) {
    const std::size_t rank = open.best_for(document.size());
    if (open.room(rank) < document.size()) {
      to_cut.push_back(document);
      continue;
    }
    open.put(rank, document.size(), cost.layer_attention({document, document}));
    plan.ranges[rank].push_back(document);
  }
  for (const TokenRange& document : to_cut) {
    for (Tokens at = document.begin; at < document.end;) {
      const std::size_t rank = open.roomiest();
      const TokenRange piece{at, std::min(document.end, at + open.room(rank))};
      open.put(rank, piece.size(), cost.layer_attention({piece, {document.begin, piece.end}}));
      plan.ranges[rank].push_back(piece);
      at = piece.end;
    }
  }

  for (std::vector<TokenRange>& ranges : plan.ranges) {
    std::vector<TokenRange> unordered = std::exchange(ranges, {});
    std::sort(unordered.begin(), unordered.end(),
              [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
    for (const TokenRange& range : unordered) append(ranges, range);
  }
  return plan;
}

ShardPlan shard_hybrid(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost) {
  auto [best, best_seconds] = fastest_of_two(cu_seqlens, num_ranks, cost);
  if (num_ranks == 1) return best;
  // Documents uncut and shared out evenly: where the choice is as fast as that, whole documents have nothing to give.
  const Seconds uncut = uncut_attention(cu_seqlens, cost);
  constexpr double kWorthTrying = 1.001;
  if (best_seconds - exchange_seconds(best, cost) <= kWorthTrying * uncut / num_ranks) return best;
  for (const Tokens divisor : kThresholdDivisors) {
    const Tokens threshold = best.num_tokens() / num_ranks / divisor;
    ShardPlan plan = shard_whole_below(cu_seqlens, num_ranks, threshold, cost);
    const Seconds seconds = predict_slowest(plan, cost);
    if (seconds < best_seconds) {
      best_seconds = seconds;
      best = std::move(plan);
    }
  }
  return best;
}

}  // namespace ballast
