// A half-open range of token positions, [begin, end).
#pragma once

#include "ballast/base/units.h"

namespace ballast {

struct TokenRange {
  Tokens begin = 0;
  Tokens end = 0;

  Tokens size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const TokenRange&) const = default;
};

}  // namespace ballast
