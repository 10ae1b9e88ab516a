// Units of measure. Each is a plain number whose name says what it counts; names carry the unit where a type does not
// (`wait_seconds`, `num_layers`). Token counts are 64 bits everywhere: the square of a document of 46,341 tokens no
// longer fits in 32.
#pragma once

#include <cstdint>

namespace ballast {

using Tokens = std::int64_t;
using Bytes = std::int64_t;
using Seconds = double;

}  // namespace ballast
