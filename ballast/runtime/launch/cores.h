// Shares the cores of a host among its ranks: each rank has cores of its own, or, where there are more ranks than
// cores, its turn on one.
#pragma once

#include <string>
#include <vector>

#include "ballast/spec/run_spec.h"

namespace ballast {

struct CoreShare {
  std::vector<int> cores;  // this rank's, as the system numbers them
  int threads = 1;         // compute threads
  bool leased = false;     // compute only while holding the lease of the first of `cores`
  bool pinned = false;
  int io_core = -1;  // of the thread that serves the network, see GlooOptions; -1: any
  int local_rank = 0;
  int num_local_ranks = 1;
  int num_cores = 1;  // of the host, that we may use
  bool operator==(const CoreShare&) const = default;
};

// Cores this process may run on: the scheduler's affinity mask, cut to the cgroup's quota of CPU time. Never empty.
std::vector<int> allowed_cores();

// REQUIRES: cores not empty, 0 <= local_rank < num_local_ranks. spec.lease is "on", "off" or "auto".
CoreShare share_cores(const std::vector<int>& cores, int local_rank, int num_local_ranks, const LaunchSpec& spec);

// "8 ranks on 2 cores: rank 2 shares core 0 with 3 others under a lease, 1 thread, pinned"
std::string to_string(const CoreShare& share);

// Binds the calling thread to `cores`; threads it makes later inherit this, those made before (network I/O) do not.
// Throws RunError where the system refuses.
void pin_this_thread(const std::vector<int>& cores);

// Whole cores in the text of a cgroup's cpu.max ("150000 100000" -> 1, "max 100000" -> no limit, 0). At least 1.
int cores_of_quota(const std::string& cpu_max);

}  // namespace ballast
