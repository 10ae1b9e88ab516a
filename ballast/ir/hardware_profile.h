// What one device was measured to do with one model shape. A profile belongs to its key: used with any other it is
// refused with the difference named (requirement W6).
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct ProfileKey {
  std::string device;        // "AMD EPYC, avx2": model name and vector unit
  std::string kernel_build;  // "torch 2.13.0"
  std::string precision;     // "float32"
  std::string mapping;       // model shape and threads a rank, as to_string(ModelSpec) + ", threads 1"
  bool operator==(const ProfileKey&) const = default;
};

// One sentence a field that differs, such as: precision: profile has float32, run has bfloat16.
std::vector<std::string> differences(const ProfileKey& profile, const ProfileKey& run);

// Attention of one layer, all its heads: `queries` rows against `keys` rows. causal: the block on the diagonal
// (keys = queries); otherwise every query sees every key.
struct AttentionPoint {
  Tokens queries = 0;
  Tokens keys = 0;
  bool causal = false;
  Seconds forward = 0;
  Seconds backward = 0;
  bool operator==(const AttentionPoint&) const = default;
};

// Everything that is linear in tokens, by part of the model, at one token count.
struct LinearPoint {
  std::string part;  // "layer": norms, projections, rotary, MLP of one layer; "embedding"; "head": norm, logits, loss;
                     // "reorder": gathered keys and values of a layer into packed order, their gradients back
  Tokens tokens = 0;
  Seconds forward = 0;
  Seconds backward = 0;
  bool operator==(const LinearPoint&) const = default;
};

struct CollectivePoint {
  std::string operation;  // all_reduce, all_gather, reduce_scatter, send
  int ranks = 2;
  Bytes bytes = 0;  // all_reduce: of the tensor; all_gather and reduce_scatter: of the gathered whole; send: sent
  Seconds seconds = 0;
  bool operator==(const CollectivePoint&) const = default;
};

struct HardwareProfile {
  static constexpr int kVersion = 1;

  ProfileKey key;
  std::string measured_by;  // command and date
  double seconds_taken = 0;
  std::vector<AttentionPoint> attention;
  std::vector<LinearPoint> linear;
  std::vector<CollectivePoint> collectives;
  Seconds optimizer_seconds_per_parameter = 0;
  Seconds attention_block_overhead = 0;  // a block of one query and one key: launch and bookkeeping

  Violations violations() const;
  bool operator==(const HardwareProfile&) const = default;
};

}  // namespace ballast
