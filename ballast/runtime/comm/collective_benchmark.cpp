#include "ballast/runtime/comm/collective_benchmark.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "ballast/runtime/comm/thread_ranks.h"

namespace ballast {
namespace {

using Clock = std::chrono::steady_clock;

// Time of one call, of the slowest member; the same number on every member.
Seconds time_once(Communicator& group, const std::function<void()>& call) {
  group.barrier();
  const Clock::time_point began = Clock::now();
  call();
  at::Tensor slowest = at::full({1}, std::chrono::duration<double>(Clock::now() - began).count(), at::kDouble);
  group.all_reduce(slowest, ReduceOp::max);
  return slowest.item<double>();
}

Seconds measure(Communicator& group, const std::function<void()>& call, Seconds budget) {
  call();  // first touch of buffers and connections
  const Seconds estimate = std::max(time_once(group, call), 1e-6);
  const int repeats = static_cast<int>(std::clamp(budget / estimate, 3.0, 100.0));
  std::vector<Seconds> times;
  for (int i = 0; i < repeats; ++i) times.push_back(time_once(group, call));
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

std::vector<std::int64_t> even_rows(std::int64_t rows, int size) {
  std::vector<std::int64_t> parts;
  for (int i = 0; i < size; ++i) parts.push_back(rows * (i + 1) / size - rows * i / size);
  return parts;
}

}  // namespace

std::vector<CollectivePoint> measure_collectives(Communicator& group, const std::vector<Bytes>& sizes,
                                                 Seconds seconds_a_point) {
  std::vector<CollectivePoint> points;
  if (group.size() == 1) return points;
  for (const Bytes bytes : sizes) {
    const std::int64_t count = std::max<Bytes>(bytes / 4, 1);
    const at::Tensor whole = at::zeros({count}, at::kFloat);
    const std::vector<std::int64_t> rows = even_rows(count, group.size());
    const at::Tensor own = at::zeros({rows[static_cast<std::size_t>(group.rank())]}, at::kFloat);
    const auto add = [&](const std::string& operation, const std::function<void()>& call) {
      points.push_back({operation, group.size(), count * 4, measure(group, call, seconds_a_point)});
    };
    add("all_reduce", [&] { group.all_reduce(whole); });
    add("all_gather", [&] { group.all_gather_rows(own, rows); });
    add("reduce_scatter", [&] { group.reduce_scatter_rows(whole, rows); });
    add("send", [&] {
      if (group.rank() == 0) group.send(whole, 1, 0)->wait();
      if (group.rank() == 1) group.receive(whole, 0, 0)->wait();
    });
  }
  return points;
}

std::vector<CollectivePoint> measure_local_collectives(int num_ranks, const std::vector<Bytes>& sizes,
                                                       Seconds seconds_a_point) {
  std::vector<CollectivePoint> points;
  run_thread_mesh({.dp = num_ranks, .pp = 1, .cp = 1}, [&](Mesh& mesh) {
    std::vector<CollectivePoint> measured = measure_collectives(*mesh.world, sizes, seconds_a_point);
    if (mesh.rank == 0) points = std::move(measured);
  });
  return points;
}

}  // namespace ballast
