#include "ballast/ir/checkpoint_manifest.h"

#include <set>

namespace ballast {

Violations CheckpointManifest::violations() const {
  Violations found;
  if (step < 0) found.push_back("step must be 0 or more");
  std::set<std::string> names;
  for (const CheckpointTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) found.push_back("tensor " + tensor.name + " is listed twice");
    if (tensor.file.empty() || tensor.file.find('/') != std::string::npos) {
      found.push_back("tensor " + tensor.name + ": file \"" + tensor.file + "\" is not inside the checkpoint");
    }
  }
  if (tensors.empty()) found.push_back("it lists no tensor");
  return found;
}

}  // namespace ballast
