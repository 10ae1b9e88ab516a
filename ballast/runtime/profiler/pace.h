// How long a rank's computation takes. On a device it takes what it takes; where several ranks of an emulated cluster
// share a machine, each does its numerics and then waits until the device that it stands for would be done, while its
// messages go on (`ballast train --emulate`).
#pragma once

#include <vector>

#include "ballast/base/units.h"

namespace ballast {

// Queries that all see `keys` keys or, if causal, as many keys as there are queries, the i-th the first i.
struct AttentionPart {
  Tokens queries = 0;
  Tokens keys = 0;
  bool causal = false;
};

// Told on the rank's own thread when a part of its work is done. This base does nothing.
class Pace {
 public:
  virtual ~Pace() = default;
  // The modules of one layer that are linear in tokens.
  virtual void linear_done(bool /*forward*/, Tokens /*tokens*/) {}
  virtual void attention_done(bool /*forward*/, const std::vector<AttentionPart>& /*parts*/) {}
};

}  // namespace ballast
