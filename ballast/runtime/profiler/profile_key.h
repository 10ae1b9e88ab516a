// What a profile made by this process, on this machine, would be keyed with. `ballast profile` writes it; `ballast
// train` compares it with the profile it was given (requirement W6).
#pragma once

#include "ballast/ir/hardware_profile.h"
#include "ballast/spec/model_spec.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// `threads`: compute threads of one rank. Device: the processor's model name and the vector unit libtorch chose.
ProfileKey key_of_this_machine(const ModelSpec& model, Precision precision, int threads);

}  // namespace ballast
