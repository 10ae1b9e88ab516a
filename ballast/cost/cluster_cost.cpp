#include "ballast/cost/cluster_cost.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ballast/cost/derived_profile.h"
#include "ballast/cost/network.h"

namespace ballast {

namespace {

// Of the group that rank 0 is in: those of other ranks lie alike.
GroupPlacement placement_of(const ClusterSpec& cluster, const ClusterMesh& mesh, Axis axis) {
  std::vector<int> gpus;
  for (const int rank : axis_group(mesh.dims, axis, 0)) gpus.push_back(mesh.order.gpu(mesh.dims, mesh.tp, rank));
  return place_group(cluster, gpus);
}

// The pair of pipeline neighbours that is farthest apart; the last stage of a rank's sends to the first rank's next.
std::pair<int, int> farthest_neighbours(const ClusterSpec& cluster, const ClusterMesh& mesh) {
  std::pair<int, int> farthest = {0, 0};
  std::size_t outermost = 0;
  const std::vector<int> pipeline = axis_group(mesh.dims, Axis::pp, 0);
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    const int from = mesh.order.gpu(mesh.dims, mesh.tp, pipeline[i]);
    const int to = mesh.order.gpu(mesh.dims, mesh.tp, pipeline[(i + 1) % pipeline.size()]);
    if (from == to) continue;
    const std::size_t tier = cluster.tier_of(from, to);
    if (farthest.first != farthest.second && tier <= outermost) continue;
    farthest = {from, to};
    outermost = tier;
  }
  return farthest;
}

class ClusterCost final : public CostModel {
 public:
  ClusterCost(std::shared_ptr<const DeviceCost> device, ClusterSpec cluster, const ModelSpec& model,
              const ClusterMesh& mesh, bool overlap_tp)
      : device_(std::move(device)),
        compute_(device_->compute()),
        cluster_(std::move(cluster)),
        model_(model),
        tp_(mesh.tp),
        overlap_tp_(overlap_tp),
        routed_(mesh.routed) {
    require_valid(cluster_.violations(), "cluster " + cluster_.name);
    for (const Axis axis : {Axis::cp, Axis::dp_cp, Axis::pp, Axis::tied, Axis::world}) {
      groups_[axis] = placement_of(cluster_, mesh, axis);
    }
    farthest_ = farthest_neighbours(cluster_, mesh);
    std::vector<int> tensor_group;
    for (int rank = 0; rank < tp_; ++rank) tensor_group.push_back(mesh.order.gpu(mesh.dims, tp_, 0, rank));
    tensor_group_ = place_group(cluster_, tensor_group);
  }

  Seconds attention(Pass pass, const AttentionBlock& block) const override { return compute_.attention(pass, block); }
  std::array<Seconds, 2> attention_passes(const AttentionBlock& block) const override {
    return compute_.attention_passes(block);
  }
  Seconds layer(Pass pass, Tokens tokens) const override { return compute_.layer(pass, tokens); }
  Seconds reorder(Pass pass, Tokens tokens) const override { return compute_.reorder(pass, tokens); }
  Seconds embedding(Pass pass, Tokens tokens) const override { return compute_.embedding(pass, tokens); }
  Seconds head(Pass pass, Tokens tokens) const override { return compute_.head(pass, tokens); }
  Seconds optimizer(std::int64_t parameters) const override { return compute_.optimizer(parameters); }
  Seconds accumulation(std::int64_t parameters) const override { return device_->accumulation(parameters); }
  Bytes kv_bytes_per_token() const override { return compute_.kv_bytes_per_token() / tp_; }
  Bytes activation_bytes_per_token() const override { return compute_.activation_bytes_per_token() / tp_; }
  Bytes kv_gradient_bytes_per_token() const override { return compute_.kv_gradient_bytes_per_token() / tp_; }
  Bytes query_bytes_per_token() const override { return compute_.query_bytes_per_token() / tp_; }

  // The ranks of a node share its cards with the others that sit there: they have as much of them as of its GPUs.
  CpLinks cp_links() const override {
    const GroupPlacement& group = groups_.at(Axis::cp);
    CpLinks links;
    links.node_bytes_per_second = cluster_.tiers.front().bytes_per_second;
    links.node_latency = cluster_.tiers.front().latency;
    links.routed = routed_;
    const int in_node = group.parts.front();
    if (in_node == group.size()) return links;
    std::size_t outermost = 1;
    for (std::size_t t = 1; t < group.parts.size(); ++t) {
      if (group.parts[t] > 1) outermost = t;
    }
    const FabricTier& tier = cluster_.tiers[outermost];
    const int gpus = cluster_.gpus_per_node();
    links.ranks_per_node = in_node;
    links.lanes_per_node = std::clamp(cluster_.cards() * in_node * tp_ / gpus, 1, in_node);
    links.lane_bytes_per_second =
        tier.bytes_per_second * (1 - tier.other_tenants_share) * in_node / links.lanes_per_node;
    links.lane_latency = tier.latency;
    return links;
  }
  Seconds document_attention(Tokens length) const override { return compute_.document_attention(length); }
  Seconds document_linear(Tokens length) const override {
    return compute_.document_linear(length) +
           model_.num_layers *
               (tensor_exchange(Pass::forward, kTypicalTokens) + tensor_exchange(Pass::backward, kTypicalTokens)) *
               static_cast<double>(length) / static_cast<double>(kTypicalTokens);
  }
  std::string name() const override { return device_->device() + ", published rates, on " + cluster_.name; }

  Seconds collective(Collective operation, Axis axis, int ranks, Bytes bytes) const override {
    if (ranks <= 1) return 0;
    if (operation == Collective::send) {
      const auto [from, to] = farthest_;
      return cluster_.tier_of(from, to) > 0 ? send_seconds(cluster_, from, to, bytes)
                                            : compute_.collective(operation, axis, 2, bytes);
    }
    return exchange(operation, groups_.at(axis), bytes);
  }

  // With sequence parallelism: an all-gather before and a reduce-scatter after attention and feed-forward, and the same
  // backwards, where the gathered inputs are needed a second time for the gradients of the weights.
  Seconds tensor_exchange(Pass pass, Tokens tokens) const override {
    if (tp_ == 1 || tokens == 0) return 0;
    const Bytes bytes = tokens * compute_.activation_bytes_per_token();
    const double gathers = pass == Pass::forward ? 2 : 4;
    const Seconds whole = gathers * exchange(Collective::all_gather, tensor_group_, bytes) +
                          2 * exchange(Collective::reduce_scatter, tensor_group_, bytes);
    if (!overlap_tp_) return whole;
    const double piece = 1.0 / tp_;
    return std::max(whole * piece, whole - (1 - piece) * layer(pass, tokens));
  }

 private:
  static constexpr Tokens kTypicalTokens = 8192;

  Seconds exchange(Collective operation, const GroupPlacement& group, Bytes bytes) const {
    const int size = group.size();
    if (size <= 1) return 0;
    const bool in_node = group.parts.front() == size;
    if (in_node && device_->measured(operation, size)) return compute_.collective(operation, Axis::none, size, bytes);
    return collective_seconds(cluster_, group, operation, bytes);
  }

  std::shared_ptr<const DeviceCost> device_;
  const CostModel& compute_;  // the device's
  ClusterSpec cluster_;
  ModelSpec model_;
  int tp_;
  bool overlap_tp_;
  bool routed_;
  std::map<Axis, GroupPlacement> groups_;
  GroupPlacement tensor_group_;
  std::pair<int, int> farthest_;  // GPUs of pipeline neighbours
};

}  // namespace

DeviceCost::DeviceCost(const DeviceProfile& device, const ModelSpec& model, int tp, const SoftwareSpec& software)
    : device_(device.device + ", " + device.precision) {
  HardwareProfile profile = derive_profile(device, model, tp, software);
  accumulation_seconds_ = software.accumulation_bytes / device.memory_bytes_per_second;
  profile.collectives = device.collectives;
  for (const CollectivePoint& point : profile.collectives) {
    for (const auto& [operation, name] : {std::pair{Collective::all_reduce, "all_reduce"},
                                          {Collective::all_gather, "all_gather"},
                                          {Collective::reduce_scatter, "reduce_scatter"}}) {
      if (point.operation == name) measured_ranks_[operation].push_back(point.ranks);
    }
  }
  compute_ = make_profile_cost(std::move(profile), model);
}

Seconds DeviceCost::accumulation(std::int64_t parameters) const {
  return accumulation_seconds_ * static_cast<double>(parameters);
}

bool DeviceCost::measured(Collective operation, int ranks) const {
  const auto found = measured_ranks_.find(operation);
  return found != measured_ranks_.end() &&
         std::find(found->second.begin(), found->second.end(), ranks) != found->second.end();
}

std::unique_ptr<CostModel> make_cluster_cost(const DeviceProfile& device, const ClusterSpec& cluster,
                                             const ModelSpec& model, const ClusterMesh& mesh, bool overlap_tp,
                                             const SoftwareSpec& software) {
  return make_cluster_cost(std::make_shared<DeviceCost>(device, model, mesh.tp, software), cluster, model, mesh,
                           overlap_tp);
}

std::unique_ptr<CostModel> make_cluster_cost(std::shared_ptr<const DeviceCost> device, const ClusterSpec& cluster,
                                             const ModelSpec& model, const ClusterMesh& mesh, bool overlap_tp) {
  return std::make_unique<ClusterCost>(std::move(device), cluster, model, mesh, overlap_tp);
}

std::map<Axis, int> link_tiers(const ClusterSpec& cluster, const ClusterMesh& mesh) {
  std::map<Axis, int> tiers;
  for (const Axis axis : {Axis::cp, Axis::dp_cp, Axis::tied, Axis::world}) {
    const std::vector<int> parts = placement_of(cluster, mesh, axis).parts;
    for (std::size_t t = 0; t < parts.size(); ++t) {
      if (parts[t] > 1) tiers[axis] = static_cast<int>(t);
    }
  }
  const auto [from, to] = farthest_neighbours(cluster, mesh);
  if (from != to) tiers[Axis::pp] = static_cast<int>(cluster.tier_of(from, to));
  return tiers;
}

std::vector<Axis> axes_across_nodes(const ClusterSpec& cluster, const ClusterMesh& mesh) {
  std::vector<Axis> found;
  for (const Axis axis : {Axis::cp, Axis::dp_cp, Axis::tied, Axis::world}) {
    const GroupPlacement placement = placement_of(cluster, mesh, axis);
    if (placement.parts.front() < placement.size()) found.push_back(axis);
  }
  const auto [from, to] = farthest_neighbours(cluster, mesh);
  if (from != to && cluster.tier_of(from, to) > 0) found.push_back(Axis::pp);
  return found;
}

}  // namespace ballast
