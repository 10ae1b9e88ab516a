#include "ballast/spec/mesh_order.h"

#include <algorithm>

namespace ballast {

namespace {

constexpr std::array<std::pair<MeshAxis, const char*>, 4> kNames = {
    {{MeshAxis::tp, "tp"}, {MeshAxis::cp, "cp"}, {MeshAxis::pp, "pp"}, {MeshAxis::dp, "dp"}}};

int size_of(MeshAxis axis, const ParallelDims& dims, int tp) {
  switch (axis) {
    case MeshAxis::tp:
      return tp;
    case MeshAxis::cp:
      return dims.cp;
    case MeshAxis::pp:
      return dims.pp;
    case MeshAxis::dp:
      return dims.dp;
  }
  return 1;
}

}  // namespace

int MeshOrder::stride(MeshAxis axis, const ParallelDims& dims, int tp) const {
  int stride = 1;
  for (const MeshAxis inner : axes) {
    if (inner == axis) break;
    stride *= size_of(inner, dims, tp);
  }
  return stride;
}

int MeshOrder::gpu(const ParallelDims& dims, int tp, int rank, int tp_rank) const {
  const RankCoordinate at = dims.coordinate(rank);
  return tp_rank * stride(MeshAxis::tp, dims, tp) + at.cp * stride(MeshAxis::cp, dims, tp) +
         at.pp * stride(MeshAxis::pp, dims, tp) + at.dp * stride(MeshAxis::dp, dims, tp);
}

int MeshOrder::rank_of_gpu(const ParallelDims& dims, int tp, int gpu) const {
  const auto along = [&](MeshAxis axis) { return gpu / stride(axis, dims, tp) % size_of(axis, dims, tp); };
  return dims.rank({.dp = along(MeshAxis::dp), .pp = along(MeshAxis::pp), .cp = along(MeshAxis::cp)});
}

std::string to_string(const MeshOrder& order) {
  std::string text;
  for (const MeshAxis axis : order.axes) {
    for (const auto& [named, name] : kNames) {
      if (named == axis) text += (text.empty() ? "" : "-") + std::string(name);
    }
  }
  return text;
}

std::optional<MeshOrder> parse_mesh_order(std::string_view text) {
  MeshOrder order;
  std::array<MeshAxis, 4> sorted = order.axes;
  do {
    order.axes = sorted;
    if (to_string(order) == text) return order;
  } while (std::next_permutation(sorted.begin(), sorted.end()));
  return std::nullopt;
}

}  // namespace ballast
