// What a planner decides about a run (requirement L6): a value that turns a stated run into another.
#pragma once

#include <string>

#include "ballast/spec/mesh_order.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

struct RunChoice {
  ParallelDims dims = {};
  int tp = 1;
  MeshOrder mapping = {};
  ScheduleSpec schedule = {};
  int zero = 0;
  std::string recompute = "none";
  int windows = 1;  // of the stated run's window, that a micro-batch holds
  std::string packer = "plain";
  std::string sharding = "per-sequence";
  bool operator==(const RunChoice&) const = default;
};

// "tp 8 cp 4 pp 4 dp 8 (tp-cp-pp-dp), interleaved V 5 nc 4, zero 1, recompute none, 1 window, pool, hybrid"
std::string to_string(const RunChoice& choice);

// The choice that a run states.
RunChoice choice_of(const RunSpec& run);

// `run` with the choice made. Its window grows to the micro-batch's windows and its micro-batches become fewer, so that
// a step holds as many tokens, and with it the thresholds of wlb's queues; bounds and queues of packers that the choice
// has none for are dropped; where no cap of a micro-batch is stated, packers of variable length get a quarter more than
// its windows. Queues are not tuned any more. REQUIRES: choice.windows divides the run's micro-batches.
RunSpec with_choice(RunSpec run, const RunChoice& choice);

}  // namespace ballast
