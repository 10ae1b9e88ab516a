// Which GPU has which place in the mesh of tensor, context, pipeline and data parallel ranks: the order of the axes
// from the inside out (requirement L5). The axis named first has its ranks side by side.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "ballast/spec/parallel_dims.h"

namespace ballast {

enum class MeshAxis { tp, cp, pp, dp };

struct MeshOrder {
  std::array<MeshAxis, 4> axes = {MeshAxis::tp, MeshAxis::cp, MeshAxis::pp, MeshAxis::dp};

  // GPUs from one rank of `axis` to the next.
  int stride(MeshAxis axis, const ParallelDims& dims, int tp) const;
  // The GPU of tensor parallel rank `tp_rank` of rank `rank`, and the rank that a GPU is part of.
  int gpu(const ParallelDims& dims, int tp, int rank, int tp_rank = 0) const;
  int rank_of_gpu(const ParallelDims& dims, int tp, int gpu) const;
  bool operator==(const MeshOrder&) const = default;
};

std::string to_string(const MeshOrder& order);                     // "tp-cp-pp-dp"
std::optional<MeshOrder> parse_mesh_order(std::string_view text);  // nothing where it does not name each axis once

}  // namespace ballast
