// `--nproc N`: runs N ranks of this very program on this host and stays with them to the end.
//
// - A rank that dies takes the others down at once. One that is stopped is found by the others' time-out, or here once
//   it has been stopped that long. No rank outlives this process, however it ends.
// - SIGINT or SIGTERM is passed on for a clean stop after the step; a second one ends the ranks.
// - The ranks' output passes through. The last lines on standard error name the rank that failed first, its last action
//   and its error; a user's fault is one line.
#pragma once

#include <string>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

struct LocalLaunch {
  int num_ranks = 1;
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;  // argv of every rank, argv[0] included
  Seconds timeout = 60;                // longest wait of a rank for a peer
};

// The exit code for the program: 0 all ranks finished (also after a clean stop), 1 the work failed, 2 a user's fault.
// Call on the main thread: ranks end when the calling thread does. Throws RunError where no rank can be started.
int launch_local_ranks(const LocalLaunch& launch);

}  // namespace ballast
