// Writes and reads checkpoints: safetensors files beside a manifest with checksums. A checkpoint is complete or absent:
// it is written in a folder aside, synced and renamed, so a crash at any instant leaves the last good one.
//
// Tensors are stored whole and by name, each by the one rank that owns it, so what is read back does not depend on the
// layout that wrote it.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ballast/ir/checkpoint_manifest.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // contiguous, on the CPU
};

// Collective over `world`. Writes `tensors`, those this rank owns (none is fine), to `folder`/step-NNNNNN and removes
// all but the `keep` newest. `manifest.tensors` is filled in here. Where one rank fails every rank throws RunError, and
// nothing appears under the final name.
void save_checkpoint(const std::filesystem::path& folder, CheckpointManifest manifest,
                     const std::vector<NamedTensor>& tensors, Communicator& world, int keep);

// The newest complete checkpoint in `folder`, or an empty path.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder);

// Throws UserError naming the file and what is wrong with it.
CheckpointManifest read_checkpoint_manifest(const std::filesystem::path& checkpoint);

// Fills `tensors` by name. Throws UserError naming tensor and file where one is missing, has another shape or type, or
// bytes that do not match their checksum.
void load_checkpoint(const std::filesystem::path& checkpoint, const CheckpointManifest& manifest,
                     const std::vector<NamedTensor>& tensors);

}  // namespace ballast
