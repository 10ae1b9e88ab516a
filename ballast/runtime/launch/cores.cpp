#include "ballast/runtime/launch/cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ballast/base/error.h"

namespace ballast {
namespace {

// The text of cpu.max of the cgroup (version 2) this process is in; empty where there is none.
std::string read_cpu_max() {
  std::ifstream membership("/proc/self/cgroup");
  std::string line;
  while (std::getline(membership, line)) {
    if (!line.starts_with("0::")) continue;
    std::ifstream file("/sys/fs/cgroup" + line.substr(3) + "/cpu.max");
    std::string text;
    std::getline(file, text);
    return text;
  }
  return "";
}

}  // namespace

int cores_of_quota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(quota / period));
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  for (int most = 1024; most <= 1 << 16; most *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(most));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    const bool fits = sched_getaffinity(0, bytes, mask) == 0;
    for (int core = 0; fits && core < most; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, mask)) cores.push_back(core);
    }
    CPU_FREE(mask);
    if (fits) break;
  }
  if (cores.empty()) cores.push_back(0);
  const int quota = cores_of_quota(read_cpu_max());
  if (quota > 0 && quota < static_cast<int>(cores.size())) cores.resize(static_cast<std::size_t>(quota));
  return cores;
}

CoreShare share_cores(const std::vector<int>& cores, int local_rank, int num_local_ranks, const LaunchSpec& spec) {
  BALLAST_ASSERT(!cores.empty() && local_rank >= 0 && local_rank < num_local_ranks, "a rank of this host, and a core");
  const int num_cores = static_cast<int>(cores.size());
  CoreShare share;
  share.local_rank = local_rank;
  share.num_local_ranks = num_local_ranks;
  share.num_cores = num_cores;
  share.pinned = spec.pin;
  const bool crowded = num_local_ranks > num_cores;
  if (crowded) {
    // Neighbours on different cores: ranks of a context parallel group compute at the same time.
    share.cores = {cores[static_cast<std::size_t>(local_rank % num_cores)]};
    if (spec.pin && num_cores > 1) share.io_core = cores[static_cast<std::size_t>((local_rank + 1) % num_cores)];
  } else {
    const int begin = num_cores * local_rank / num_local_ranks;
    const int end = num_cores * (local_rank + 1) / num_local_ranks;
    share.cores.assign(cores.begin() + begin, cores.begin() + end);
  }
  share.threads = spec.threads > 0 ? spec.threads : static_cast<int>(share.cores.size());
  share.leased = spec.lease == "on" || (spec.lease == "auto" && crowded);
  return share;
}

std::string to_string(const CoreShare& share) {
  const auto count = [](int n, const std::string& noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
  };
  std::string text = count(share.num_local_ranks, "rank") + " on " + count(share.num_cores, "core") + ": rank " +
                     std::to_string(share.local_rank);
  const bool crowded = share.num_local_ranks > share.num_cores;
  text += crowded ? " shares core " : share.cores.size() == 1 ? " has core " : " has cores ";
  for (std::size_t i = 0; i < share.cores.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(share.cores[i]);
  if (crowded) {
    int others = -1;
    for (int rank = share.local_rank % share.num_cores; rank < share.num_local_ranks; rank += share.num_cores) ++others;
    text += others == 0 ? " with nobody" : " with " + count(others, "other");
  }
  if (share.leased) text += " under a lease";
  return text + ", " + count(share.threads, "thread") + (share.pinned ? ", pinned" : ", not pinned");
}

void pin_this_thread(const std::vector<int>& cores) {
  const std::size_t most = static_cast<std::size_t>(*std::max_element(cores.begin(), cores.end())) + 1;
  cpu_set_t* mask = CPU_ALLOC(most);
  const std::size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, mask);
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes, mask);
  const int failed = sched_setaffinity(0, bytes, mask);
  const int error = errno;
  CPU_FREE(mask);
  if (failed != 0) throw RunError(std::string("cannot pin to cores: ") + std::strerror(error));
}

}  // namespace ballast
