#include "ballast/cost/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ballast/base/error.h"

namespace ballast {

namespace {

class Exchange {
 public:
  Exchange(const ClusterSpec& cluster, const GroupPlacement& group, Bytes bytes)
      : tiers_(cluster.tiers), parts_(group.parts), size_(group.size()), bytes_(static_cast<double>(bytes)) {}

  // All-gather or reduce-scatter.
  Seconds ring() const {
    const double moved = bytes_ * (size_ - 1) / size_;
    Seconds latency = 0;
    Seconds slowest = 0;
    double lanes = 1;
    int domains = size_;
    for (std::size_t t = 0; t < parts_.size(); ++t) {
      domains /= parts_[t];  // of this tier: each is a stretch of the ring
      latency += domains * (parts_[t] - 1) * tiers_[t].latency;
      if (parts_[t] > 1) slowest = std::max(slowest, over(t, moved / lanes));
      lanes *= parts_[t];
    }
    return latency + slowest;
  }

  Seconds hierarchical() const {
    Seconds sum = 0;
    double lanes = 1;
    for (std::size_t t = 0; t < parts_.size(); ++t) {
      // Once the tiers outside it are done, a member of a domain of tier t needs a lane's share, all but its own part.
      const double received = bytes_ / lanes * (parts_[t] - 1) / parts_[t];
      sum += (parts_[t] - 1) * tiers_[t].latency + over(t, received);
      lanes *= parts_[t];
    }
    return sum;
  }

  // All-reduce.
  Seconds tree() const {
    Seconds latency = 0;
    Seconds slowest = 0;
    double lanes = 1;
    for (std::size_t t = 0; t < parts_.size(); ++t) {
      latency += 2 * std::ceil(std::log2(parts_[t])) * tiers_[t].latency;
      if (parts_[t] > 1) slowest = std::max(slowest, over(t, 2 * bytes_ / lanes));
      lanes *= parts_[t];
    }
    return latency + slowest;
  }

 private:
  // What a GPU sends over tier t.
  Seconds over(std::size_t t, double bytes) const { return bytes / tiers_[t].available_bytes_per_second(bytes); }

  const std::vector<FabricTier>& tiers_;
  const std::vector<int>& parts_;
  int size_;
  double bytes_;
};

}  // namespace

int GroupPlacement::size() const {
  int size = 1;
  for (const int part : parts) size *= part;
  return size;
}

GroupPlacement place_group(const ClusterSpec& cluster, const std::vector<int>& gpus) {
  GroupPlacement placement;
  int inner = 1;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    const auto members = static_cast<int>(
        std::count_if(gpus.begin(), gpus.end(), [&](int gpu) { return cluster.tier_of(gpus.front(), gpu) <= t; }));
    placement.parts.push_back((members + inner - 1) / inner);
    inner = members;
  }
  return placement;
}

Seconds collective_seconds(const ClusterSpec& cluster, const GroupPlacement& group, Collective operation, Bytes bytes,
                           CollectiveAlgorithm algorithm) {
  if (group.size() <= 1) return 0;
  const bool reduces_all = operation == Collective::all_reduce;
  const Exchange exchange(cluster, group, bytes);
  const double rounds = reduces_all ? 2 : 1;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return rounds * exchange.ring();
    case CollectiveAlgorithm::hierarchical:
      return rounds * exchange.hierarchical();
    case CollectiveAlgorithm::tree:
      if (!reduces_all) throw UserError("a tree is for all-reduce; an all-gather or reduce-scatter takes a ring");
      return exchange.tree();
    case CollectiveAlgorithm::automatic:
      break;
  }
  const Seconds best = rounds * std::min(exchange.ring(), exchange.hierarchical());
  return reduces_all ? std::min(best, exchange.tree()) : best;
}

Seconds send_seconds(const ClusterSpec& cluster, int from, int to, Bytes bytes) {
  if (from == to) return 0;
  const FabricTier& tier = cluster.tiers[cluster.tier_of(from, to)];
  return tier.latency + static_cast<double>(bytes) / tier.available_bytes_per_second(static_cast<double>(bytes));
}

}  // namespace ballast
