// manifest.json of a checkpoint (docs/formats/checkpoint.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ballast/ir/checkpoint_manifest.h"

namespace ballast {

std::string to_json(const CheckpointManifest& manifest);
// Throws UserError naming `where` and the key; another version is refused.
CheckpointManifest checkpoint_manifest_from_json(std::string_view text, std::string_view where);

// The list of tensors alone, as each writing rank leaves it for rank 0.
std::string to_json(const std::vector<CheckpointTensor>& tensors);
std::vector<CheckpointTensor> checkpoint_tensors_from_json(std::string_view text, std::string_view where);

}  // namespace ballast
