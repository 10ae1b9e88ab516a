// Tests run many ranks and many test programs at once: each computes with one thread. Include in one file a program.
#pragma once

#include <ATen/Parallel.h>

namespace ballast::testing {
inline const bool computes_with_one_thread = (at::set_num_threads(1), true);
}
