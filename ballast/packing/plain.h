// Plain packing (W2): documents in arrival order, cut into windows of S tokens, N windows a step. The document that
// crosses a window's end is cut there; its rest opens the next window as a document of its own. The baseline.
#pragma once

#include <memory>

#include "ballast/packing/packer.h"

namespace ballast {

std::unique_ptr<Packer> make_plain_packer(const PackingSpec& spec);

// Next fit: the same, but documents stay whole. One that does not fit what is left of a window opens the next, so
// windows are not full. The fair baseline where documents may not be cut.
std::unique_ptr<Packer> make_next_fit_packer(const PackingSpec& spec);

}  // namespace ballast
