// N ranks as N threads of one process: the fixture for everything that crosses ranks, in tests and microbenchmarks.
//
//   run_thread_ranks(4, [](int rank, c10::intrusive_ptr<c10d::Store> store) {
//     Mesh mesh = make_mesh({.dp = 2, .pp = 1, .cp = 2}, rank, store, {.timeout = 20});
//     ...
//   });
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <functional>

#include "ballast/base/units.h"
#include "ballast/runtime/comm/mesh.h"

namespace ballast {

// Runs `rank_main` on `num_ranks` threads, each of which computes alone, over one in-memory store and rethrows the
// error that came first: when a rank throws, its groups close, and the errors this causes elsewhere come later. Threads
// cannot be stopped from outside, so ranks still running after `timeout` end the process with exit code 1 and a line
// that names them.
void run_thread_ranks(int num_ranks,
                      const std::function<void(int rank, c10::intrusive_ptr<c10d::Store> store)>& rank_main,
                      Seconds timeout = 120);

// The same with the mesh made: rank_main(mesh) on every rank of `dims`.
void run_thread_mesh(const ParallelDims& dims, const std::function<void(Mesh& mesh)>& rank_main,
                     Seconds group_timeout = 60);

}  // namespace ballast
