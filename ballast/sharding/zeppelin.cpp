#include "ballast/sharding/zeppelin.h"

#include <cmath>
#include <numeric>
#include <optional>

#include "ballast/cost/zones.h"
#include "ballast/sharding/placement.h"
#include "ballast/sharding/predict_layer.h"
#include "ballast/sharding/ranges.h"

namespace ballast {

namespace {

// Slacks that are tried: how much more than an even share of attention a document may be before it is cut.
constexpr double kSlacks[] = {1, 1.5, 2.5};
constexpr double kTokenWeights[] = {1, 0.25, 0};
// Up to so many documents and ranks, times ranks, every try is priced in full; beyond, by an estimate.
constexpr std::size_t kPricedInFull = 1U << 16;

Tokens tokens_of_fullest(const ShardPlan& plan) {
  const std::vector<Tokens> tokens = plan.tokens_per_rank();
  return *std::max_element(tokens.begin(), tokens.end());
}

// One way to place the documents of a micro-batch.
class Partition {
 public:
  Partition(const std::vector<Tokens>& cu_seqlens, const std::vector<std::size_t>& documents,
            const std::vector<Seconds>& attention, int num_ranks, const CostModel& cost, Tokens capacity, double slack,
            Seconds load_of_token)
      : cu_seqlens_(cu_seqlens),
        cost_(cost),
        links_(cost.cp_links()),
        ranks_(num_ranks),
        per_node_(links_.ranks_per_node > 0 ? std::min(links_.ranks_per_node, num_ranks) : num_ranks),
        capacity_(capacity),
        load_of_token_(load_of_token),
        loads_(static_cast<std::size_t>(num_ranks), capacity),
        transfers_(static_cast<std::size_t>(num_ranks), 0),
        placed_(cu_seqlens.size() - 1) {
    Seconds all = 0;
    for (const Seconds seconds : attention) all += seconds;
    share_ = slack * all / num_ranks;
    for (std::size_t i = 0; i < documents.size(); ++i) place(documents[i], attention[i]);
  }

  ShardPlan plan() const { return placed_.plan("zeppelin", cu_seqlens_, ranks_, links_.ranks_per_node); }

  // The slowest rank's attention, or its messages where they take longer.
  Seconds estimate() const {
    Seconds slowest = 0;
    for (std::size_t r = 0; r < transfers_.size(); ++r) {
      const Seconds attention = loads_.load(r) - load_of_token_ * static_cast<double>(capacity_ - loads_.room(r));
      slowest = std::max({slowest, attention, transfers_[r]});
    }
    return slowest;
  }

 private:
  void place(std::size_t document, Seconds attention) {
    const Tokens length = cu_seqlens_[document + 1] - cu_seqlens_[document];
    const int ring = ring_size(length, attention);
    if (ring == 1) {
      const std::size_t rank = loads_.best_for(length);
      if (loads_.room(rank) >= length) {
        placed_.put_whole(document, rank);
        loads_.put(rank, length, attention + load_of_token_ * static_cast<double>(length));
        return;
      }
    }
    // Where so many ranks have no room, more of them may, each with less to hold.
    for (int size = std::max(2, ring); size <= ranks_; size = size < per_node_ ? size + 1 : size + per_node_) {
      const std::vector<int> chosen = choose(std::min(size, ranks_), length);
      if (chosen.empty()) continue;
      put_in_ring(document, length, attention, chosen);
      return;
    }
    put_in_pieces(document, length, attention);
  }

  int ring_size(Tokens length, Seconds attention) const {
    const auto fits = static_cast<int>((length + capacity_ - 1) / capacity_);
    const auto wanted = share_ > 0 ? std::min<double>(ranks_, std::ceil(attention / share_ - 1e-9)) : 1.0;
    if (wanted <= 1 && fits <= 1) return 1;
    const auto most = static_cast<int>(std::max(1.0, wanted));
    int ring = largest_hidden_ring(cost_, links_, length, attention, std::min(most, per_node_), false);
    if (most > per_node_) {
      ring = std::max(ring, largest_hidden_ring(cost_, links_, length, attention, most, true));
    }
    ring = std::max(ring, fits);
    if (ring <= per_node_) return ring;
    const int nodes = (ring + per_node_ - 1) / per_node_;
    return std::min(ranks_, (ring + nodes - 1) / nodes * nodes);
  }

  // Ranks of a ring, in ring order: those of least load that have room, of the nodes of least load; empty: there are
  // not enough.
  std::vector<int> choose(int size, Tokens length) const {
    const Tokens each = most_of_ring(length, size);
    const int wanted_nodes = (size + per_node_ - 1) / per_node_;
    const int of_node = (size + wanted_nodes - 1) / wanted_nodes;
    std::vector<std::pair<Seconds, int>> nodes;  // load, node; of those with enough room
    for (int node = 0; node * per_node_ < ranks_; ++node) {
      const int first = node * per_node_;
      const int last = std::min(ranks_, first + per_node_);
      int open = 0;
      Seconds load = 0;
      for (int rank = first; rank < last; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        open += loads_.room(r) >= each ? 1 : 0;
        load += loads_.load(r);
      }
      if (open >= of_node) nodes.emplace_back(load / (last - first), node);
    }
    if (static_cast<int>(nodes.size()) < wanted_nodes) return {};
    std::partial_sort(nodes.begin(), nodes.begin() + wanted_nodes, nodes.end());
    nodes.resize(static_cast<std::size_t>(wanted_nodes));
    std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<int> chosen;
    for (const auto& [load, node] : nodes) {
      std::vector<std::pair<Seconds, int>> open;
      for (int rank = node * per_node_; rank < std::min(ranks_, (node + 1) * per_node_); ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (loads_.room(r) >= each) open.emplace_back(loads_.load(r), rank);
      }
      std::sort(open.begin(), open.end());
      std::vector<int> own;
      for (int i = 0; i < of_node; ++i) own.push_back(open[static_cast<std::size_t>(i)].second);
      std::sort(own.begin(), own.end());
      chosen.insert(chosen.end(), own.begin(), own.end());
    }
    return chosen;
  }

  void put_in_ring(std::size_t document, Tokens length, Seconds attention, const std::vector<int>& ring) {
    const auto size = static_cast<int>(ring.size());
    const bool across = links_.node_of(ring.front()) != links_.node_of(ring.back());
    const Seconds transfer = (size - 1) * round_transfer(cost_, links_, (length + size - 1) / size, across);
    const std::vector<Tokens> tokens = placed_.put_in_ring(document, length, ring);
    for (std::size_t place = 0; place < ring.size(); ++place) {
      const auto r = static_cast<std::size_t>(ring[place]);
      loads_.put(r, tokens[place], attention / size + load_of_token_ * static_cast<double>(tokens[place]));
      transfers_[r] += transfer;
    }
  }

  // What is left, where rounding has used up the last room of even chunks: wherever there is room.
  void put_in_pieces(std::size_t document, Tokens length, Seconds attention) {
    std::vector<std::pair<int, Tokens>> pieces;
    for (Tokens left = length; left > 0;) {
      const std::size_t rank = loads_.roomiest();
      const Tokens piece = std::min(left, loads_.room(rank));
      BALLAST_ASSERT(piece > 0, "the ranks hold all tokens: rank_capacity has seen to it");
      const double part = static_cast<double>(piece) / static_cast<double>(length);
      loads_.put(rank, piece, attention * part + load_of_token_ * static_cast<double>(piece));
      pieces.emplace_back(static_cast<int>(rank), piece);
      left -= piece;
    }
    std::sort(pieces.begin(), pieces.end());
    placed_.put_in_pieces(document, std::move(pieces));
  }

  const std::vector<Tokens>& cu_seqlens_;
  const CostModel& cost_;
  const CpLinks links_;
  const int ranks_;
  const int per_node_;
  const Tokens capacity_;
  const Seconds load_of_token_;
  Seconds share_ = 0;  // of all attention, with slack
  RankLoads loads_;
  std::vector<Seconds> transfers_;
  PlacedDocuments placed_;
};

}  // namespace

ZeppelinPlan shard_zeppelin(const std::vector<Tokens>& cu_seqlens, int num_ranks, const CostModel& cost,
                            const PlacementOptions& options) {
  if (num_ranks < 1) throw UserError("cp = " + std::to_string(num_ranks) + ": must be 1 or more");
  const Tokens capacity = rank_capacity(options.rank_tokens, cu_seqlens, num_ranks);
  const std::vector<std::size_t> documents = longest_first(cu_seqlens);
  DocumentWork work(cost);
  std::vector<Seconds> attention;
  attention.reserve(documents.size());
  Seconds all = 0;
  for (const std::size_t d : documents) {
    attention.push_back(work(cu_seqlens[d + 1] - cu_seqlens[d]));
    all += attention.back();
  }
  const Tokens share = std::max<Tokens>(1, (cu_seqlens.back() + num_ranks - 1) / num_ranks);
  const Seconds linear = linear_seconds(share, cost);
  const Seconds a_token = linear / static_cast<double>(share);
  const auto partition = [&](double slack, double token_weight) {
    return Partition(cu_seqlens, documents, attention, num_ranks, cost, capacity, slack, token_weight * a_token);
  };

  ZeppelinPlan best;
  best.even_share = all / num_ranks + linear;
  if (num_ranks == 1) {  // no profile entry of exchanges is needed
    best.plan = partition(1, 1).plan();
    best.slowest = best.even_share;
    return best;
  }
  const auto ranks = static_cast<std::size_t>(num_ranks);
  if ((documents.size() + ranks) * ranks > kPricedInFull) {
    const Partition chosen = partition(1, options.moves ? 0.25 : 1);
    best.plan = chosen.plan();
    best.estimated = true;
    if (options.moves) add_moves(best.plan);
    best.slowest = chosen.estimate() + (options.moves ? linear : linear_seconds(tokens_of_fullest(best.plan), cost));
    return best;
  }
  const auto consider = [&](ShardPlan plan) {
    const Seconds slowest = options.moves ? add_moves_that_pay(plan, cost) : predict_slowest_layer(plan, cost);
    if (!best.plan.ranges.empty() && slowest >= best.slowest) return;
    best.slowest = slowest;
    best.plan = std::move(plan);
  };
  for (const double slack : kSlacks) {
    for (const double token_weight : kTokenWeights) {
      if (!options.moves && token_weight < 1) continue;
      consider(partition(slack, token_weight).plan());
    }
  }
  const auto name = best.plan.sharding;
  ShardPlan even = shard_ring(cu_seqlens, num_ranks, cost);
  if (tokens_of_fullest(even) <= capacity) consider(std::move(even));
  best.plan.sharding = name;
  return best;
}

}  // namespace ballast
