#include "ballast/sharding/placement.h"

#include <string>

#include "ballast/base/error.h"
#include "ballast/sharding/ranges.h"

namespace ballast {

std::vector<std::size_t> longest_first(const std::vector<Tokens>& cu_seqlens) {
  std::vector<std::size_t> documents;
  documents.reserve(cu_seqlens.size());
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    if (cu_seqlens[d + 1] > cu_seqlens[d]) documents.push_back(d);
  }
  std::stable_sort(documents.begin(), documents.end(), [&](std::size_t a, std::size_t b) {
    return cu_seqlens[a + 1] - cu_seqlens[a] > cu_seqlens[b + 1] - cu_seqlens[b];
  });
  return documents;
}

Tokens rank_capacity(Tokens stated, const std::vector<Tokens>& cu_seqlens, int num_ranks) {
  const Tokens all = cu_seqlens.back();
  const Tokens capacity = stated > 0 ? stated : 2 * ((all + num_ranks - 1) / num_ranks);
  if (capacity * num_ranks >= all) return capacity;
  Tokens longest = 0;
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d)
    longest = std::max(longest, cu_seqlens[d + 1] - cu_seqlens[d]);
  const bool one = longest > capacity * num_ranks;
  throw UserError("rank_tokens = " + std::to_string(capacity) + ": " + std::to_string(num_ranks) + " ranks hold " +
                  std::to_string(capacity * num_ranks) + " tokens, " +
                  (one ? "a sequence has " + std::to_string(longest) : "the micro-batch has " + std::to_string(all)) +
                  ": " + std::to_string((one ? longest : all) - capacity * num_ranks) +
                  " too many; raise [sharding] rank_tokens to " + std::to_string((all + num_ranks - 1) / num_ranks) +
                  " or use more ranks");
}

std::vector<Tokens> PlacedDocuments::put_in_ring(std::size_t document, Tokens length, std::vector<int> ranks) {
  const std::size_t size = ranks.size();
  std::vector<Tokens> tokens(size, 0);
  for (std::size_t c = 0; c < 2 * size; ++c)
    tokens[rank_of_chunk(c, size)] += chunk_tokens(length, 2 * size, c, longer_);
  ringed_.emplace(document, Ringed{std::move(ranks), longer_});
  longer_ = longer_after(longer_, length, size);
  return tokens;
}

ShardPlan PlacedDocuments::plan(const char* name, const std::vector<Tokens>& cu_seqlens, int num_ranks,
                                int ranks_per_node) const {
  ShardPlan plan = empty_plan(name, cu_seqlens, num_ranks);
  plan.exchange = KvExchange::rings;
  plan.ranks_per_node = ranks_per_node;
  std::map<std::vector<int>, std::size_t> ring_of;  // by its ranks
  const auto join_ring = [&](const std::vector<int>& ranks, std::size_t document) {
    if (ranks.size() < 2) return;
    const auto [at, made] = ring_of.try_emplace(ranks, plan.rings.size());
    if (made) plan.rings.push_back({ranks, {}});
    plan.rings[at->second].documents.push_back(document);
  };
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    const TokenRange document{cu_seqlens[d], cu_seqlens[d + 1]};
    if (home_[d] >= 0) {
      append(plan.ranges[static_cast<std::size_t>(home_[d])], document);
    } else if (const auto ringed = ringed_.find(d); ringed != ringed_.end()) {
      deal_to_ring(plan, document.begin, document.end, ringed->second.ranks, ringed->second.longer);
      join_ring(ringed->second.ranks, d);
    } else if (const auto found = pieces_.find(d); found != pieces_.end()) {
      std::vector<int> ranks;
      Tokens at = document.begin;
      for (const auto& [rank, tokens] : found->second) {
        append(plan.ranges[static_cast<std::size_t>(rank)], {at, at + tokens});
        at += tokens;
        ranks.push_back(rank);
      }
      join_ring(ranks, d);
    }
  }
  return plan;
}

}  // namespace ballast
