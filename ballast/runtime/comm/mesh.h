// All groups of one rank, made once at the start: one a mesh axis, named as the axis is. Each has connections of its
// own, so a small message on one (a stop flag on `world`) never waits behind bulk on another (activations on `pp`).
#pragma once

#include <memory>

#include "ballast/runtime/comm/communicator.h"
#include "ballast/runtime/comm/gloo.h"
#include "ballast/spec/parallel_dims.h"

namespace ballast {

struct Mesh {
  ParallelDims dims;
  int rank = 0;       // global
  RankCoordinate at;  // of this rank
  std::unique_ptr<GlooNetwork> network;
  std::unique_ptr<Communicator> world;  // loss, norm, agreement; also point to point between any two ranks
  std::unique_ptr<Communicator> cp;     // keys and values
  std::unique_ptr<Communicator> dp_cp;  // gradients
  std::unique_ptr<Communicator> pp;     // activations and their gradients; rank within it = stage within the pipeline
  std::unique_ptr<Communicator> tied;   // tied embedding: first and last stage. Group of one on stages between them.

  // Leave before whoever holds the store does. Members go in reverse order: groups before the network.
  Mesh() = default;
  Mesh(Mesh&&) = default;
  Mesh& operator=(Mesh&&) = default;
};

// Every rank of `dims` calls this with the same store contents and routing. Returns once all are connected and throws
// CommunicationError where they are not within the time-out, UserError where the routing does not fit. REQUIRES: no
// violations in `dims`, rank < world size.
Mesh make_mesh(const ParallelDims& dims, int rank, c10::intrusive_ptr<c10d::Store> store, const GlooOptions& options);

}  // namespace ballast
