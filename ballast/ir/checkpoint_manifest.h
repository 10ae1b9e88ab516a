// What a checkpoint says of itself: where the run stood, and every tensor with its file and checksum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

struct CheckpointTensor {
  std::string name;  // "model/layers.3.attention.wq", "adam_m/...", "adam_v/..."
  std::string file;  // within the checkpoint's folder
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string checksum;  // of its bytes
  bool operator==(const CheckpointTensor&) const = default;
};

struct CheckpointManifest {
  static constexpr int kVersion = 1;

  std::int64_t step = 0;  // steps done: the number of the next one
  std::string model;      // to_string(ModelSpec)
  std::string precision;
  std::string layout;  // degrees and stages; bit for bit the same only under the same
  std::string corpus;  // what identifies the data: documents and tokens
  std::uint64_t seed = 0;
  std::string source_state;  // of the step source: packer and position in the data (W12); opaque here
  std::vector<CheckpointTensor> tensors;

  Violations violations() const;
  bool operator==(const CheckpointManifest&) const = default;
};

}  // namespace ballast
