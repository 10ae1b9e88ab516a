// All that a user states about a training run: the content of RUN.toml. Read by io/run_toml.h, which refuses unknown
// keys; the defaults here are the defaults of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"
#include "ballast/spec/fault_spec.h"
#include "ballast/spec/model_spec.h"
#include "ballast/spec/parallel_dims.h"
#include "ballast/spec/plan_spec.h"
#include "ballast/spec/software_spec.h"

namespace ballast {

enum class Precision { float64, float32, bfloat16 };
enum class Oversize { truncate, split, refuse };  // what to do with a document longer than the window

std::string to_string(Precision precision);
std::string to_string(Oversize oversize);
// Of a number.
Bytes bytes_of(Precision precision);

// [packing]: which documents share a micro-batch. Also what `ballast pack` takes as flags.
struct PackingSpec {
  std::string packer = "wlb";  // plain, next-fit, fixed-greedy, fixed-solver, wlb, pool
  Tokens window = 16384;       // S, tokens
  int micro_batches = 2;       // N a step, over all data parallel ranks
  int global_batches = 1;      // K, fixed packers: balance over K global batches
  Tokens max_tokens = 0;       // S_max, the cap of a micro-batch; 0 means the window
  std::vector<Tokens> queues;  // L_1 < L_2 < ...: documents of L_1 and more wait in bands; empty: no queue
  bool tune_queues = false;    // wlb: find `queues` on a sample of the data; whoever does so clears this
  int max_delay = 0;           // steps a document may wait; 0: no bound
  double token_swing = 0;      // most a step's tokens may differ from N windows, as a share; 0: no bound
  Tokens max_held = 0;         // most tokens that wait for their like between steps; 0: no bound
  int max_documents = 0;       // most documents of a micro-batch; 0: no bound
  double mix_weight = 0;       // pool: what keeping a step's mix of domains is worth, in imbalance; 0: nothing
  Oversize oversize = Oversize::truncate;
  bool cut_at_windows = false;  // cut documents first where plain packing would, so that packers see equal pieces

  Tokens cap() const { return max_tokens > 0 ? max_tokens : window; }
  // Whether micro-batches may be longer than the window.
  bool variable_length() const { return packer == "wlb" || packer == "pool"; }
  // The most tokens that a micro-batch of this packer may have.
  Tokens most_tokens() const { return variable_length() ? cap() : window; }
  Violations violations() const;
  bool operator==(const PackingSpec&) const = default;
};

// [schedule]
struct ScheduleSpec {
  std::string name = "1f1b";  // 1f1b, interleaved, all-forward-all-backward
  int virtual_stages = 1;     // V, stages a rank
  int round_size = 0;         // n_c, interleaved: micro-batches a virtual stage at a time; 0: as many as pipeline ranks
  std::vector<int> stage_layers = {};  // layers of each stage, in stage order; empty: as even as possible

  // Layers of each of the pp x virtual_stages stages.
  std::vector<int> layers_by_stage(int num_layers, int pp) const;
  bool operator==(const ScheduleSpec&) const = default;
};

// [training]
struct TrainingSpec {
  int steps = 20;
  Precision precision = Precision::float32;
  double lr = 1e-3;      // peak learning rate
  double min_lr = 1e-4;  // where the cosine ends
  int warmup_steps = 2;
  double weight_decay = 0.1;  // matrices only, not norms
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double clip_norm = 1.0;    // global gradient norm; 0: no clipping
  int checkpoint_every = 0;  // steps; 0: only at the end and when stopped
  int keep_checkpoints = 2;
  bool operator==(const TrainingSpec&) const = default;
};

// [launch]
struct LaunchSpec {
  double timeout_seconds = 60;  // longest wait for a peer
  std::string lease = "auto";   // core lease: on, off, or auto (on where there are more ranks than cores)
  int threads = 0;              // compute threads a rank; 0: cores / local ranks
  bool pin = true;              // pin a rank to its cores
  bool operator==(const LaunchSpec&) const = default;
};

struct RunSpec {
  std::string folder;                   // [run] folder: where metrics, timeline and checkpoints go
  std::uint64_t seed = 1;               // [run] seed: weights and order of documents
  std::string corpus;                   // [corpus] path, a folder made by `ballast corpus build`
  bool shuffle = true;                  // [corpus] shuffle documents every epoch
  std::int64_t epochs = 0;              // [corpus] how often each document comes; 0: for ever
  std::int64_t documents = 0;           // [corpus] only so many, the first of epoch 0; 0: all
  ModelSpec model;                      // [model]
  ParallelDims parallel;                // [parallel]
  int tensor_parallel = 1;              // [parallel] tp: GPUs that stand as one rank of the mesh
  bool overlap_tp = false;              // [parallel] overlap_tp: tensor exchanges beside matrix products
  int zero = 0;                         // [parallel] zero: ZeRO stage over dp x cp; 0: all replicated
  std::string recompute = "none";       // [parallel] recompute: of activations in backward: none, full
  std::string mapping = "tp-cp-pp-dp";  // [parallel] mapping: axes of the mesh over the cluster, inside out
  std::string cluster;                  // [cluster] file: what a simulated run is planned for
  std::string lengths;                  // [workload] lengths: of a simulated run, where no corpus is named
  ScheduleSpec schedule;                // [schedule]
  PackingSpec packing;                  // [packing]
  std::string sharding = "adaptive";    // [sharding] strategy
  Tokens rank_tokens = 0;               // [sharding] rank_tokens: most of a rank in attention; 0: twice an even share
  std::string moves = "auto";           // [sharding] moves: tokens move for linear modules where it pays, or off
  std::string routing = "auto";         // [sharding] routing: over several network cards where it pays, or off
  std::string profile;                  // [cost] profile: file of `ballast profile`; empty: none
  std::optional<std::vector<double>> synthetic_cost;  // [cost] synthetic = [A, B]: A a token, B a squared token
  TrainingSpec training;                              // [training]
  LaunchSpec launch;                                  // [launch]
  SoftwareSpec software;                              // [software], of a simulated run
  FaultSpec faults;                                   // [faults], of a simulated run
  StorageSpec storage;                                // [storage], of a simulated run
  PlanSpec plan;                                      // [plan], what `ballast plan` may choose

  std::vector<int> layers_by_stage() const { return schedule.layers_by_stage(model.num_layers, parallel.pp); }

  // Rules between sections as well: layers against stages, micro-batches against dp, schedule against V.
  Violations violations() const;
  bool operator==(const RunSpec&) const = default;
};

// By name, as RUN.toml has them.
std::vector<std::string> schedule_names();

// Layers of each stage, in stage order: as even as possible, earlier stages take the rest.
std::vector<int> layers_per_stage(int num_layers, int num_stages);

}  // namespace ballast
