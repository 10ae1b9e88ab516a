#include "ballast/runtime/comm/mesh.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ballast/base/error.h"

namespace ballast {
namespace {

std::unique_ptr<Communicator> join(GlooNetwork& network, const std::string& name, const std::vector<int>& members,
                                   int rank) {
  const auto place = std::find(members.begin(), members.end(), rank);
  // A stage between the first and the last is in no tied group: alone, it has nothing to add.
  if (place == members.end()) return network.join(name, {rank}, 0);
  return network.join(name, members, static_cast<int>(place - members.begin()));
}

}  // namespace

Mesh make_mesh(const ParallelDims& dims, int rank, c10::intrusive_ptr<c10d::Store> store, const GlooOptions& options) {
  BALLAST_ASSERT(dims.violations().empty() && rank >= 0 && rank < dims.world_size(), "a rank of the mesh");
  Mesh mesh;
  mesh.dims = dims;
  mesh.rank = rank;
  mesh.at = dims.coordinate(rank);
  mesh.network = std::make_unique<GlooNetwork>(std::move(store), options);
  mesh.network->start_routing(rank, dims.world_size());
  std::vector<int> everyone(static_cast<std::size_t>(dims.world_size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  // All ranks join in the same order, so nobody waits for a rank that waits elsewhere.
  mesh.world = join(*mesh.network, "world", everyone, rank);
  mesh.cp = join(*mesh.network, "cp", dims.cp_group(rank), rank);
  mesh.dp_cp = join(*mesh.network, "dp_cp", dims.dp_cp_group(rank), rank);
  mesh.pp = join(*mesh.network, "pp", dims.pp_group(rank), rank);
  mesh.tied = join(*mesh.network, "tied", dims.tied_group(rank), rank);
  return mesh;
}

}  // namespace ballast
