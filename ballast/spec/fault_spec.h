// [faults] and [storage]: what a simulated run meets besides its own work (requirement L12).
#pragma once

#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct FaultSpec {
  std::vector<std::vector<double>> slow_gpus = {};  // {GPU, times as long it computes}
  std::vector<std::vector<double>> slow_nics = {};  // {GPU, times as long its exchanges take that leave the node}
  double failures_per_gpu_day = 0;                  // that stop the run
  Seconds restart_seconds = 0;                      // from a failure to the first step, reading the checkpoint aside
  Violations violations(int gpus) const;
  bool operator==(const FaultSpec&) const = default;
};

// One store that all ranks write checkpoints to and read documents from.
struct StorageSpec {
  double bytes_per_second = 0;          // of all ranks together; 0: it costs nothing
  double gpu_bytes_per_second = 0;      // of one GPU; 0: only the store bounds it
  bool background_checkpoints = false;  // written beside the next steps, from a copy
  double loader_bytes_per_token = 4;    // read for every token trained
  Violations violations() const;
  bool operator==(const StorageSpec&) const = default;
};

}  // namespace ballast
