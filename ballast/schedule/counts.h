// What every schedule refuses.
#pragma once

#include <string>

#include "ballast/base/error.h"

namespace ballast {

// Throws UserError where a number is less than 1.
inline void require_counts(int num_ranks, int virtual_stages, int num_micro_batches) {
  const auto require = [](const char* what, int value) {
    if (value < 1)
      throw UserError(std::string("schedule: ") + what + " = " + std::to_string(value) + ": must be 1 or more");
  };
  require("pipeline ranks", num_ranks);
  require("virtual_stages", virtual_stages);
  require("micro-batches", num_micro_batches);
}

}  // namespace ballast
