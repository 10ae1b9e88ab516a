#include "ballast/runtime/train/allocator.h"

#include <malloc.h>

#include <climits>

namespace ballast {

void configure_allocator() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);              // large blocks come from the heap too, so that freeing keeps their pages
  mallopt(M_TRIM_THRESHOLD, INT_MAX);  // and the heap never shrinks
  mallopt(M_TOP_PAD, 64 << 20);        // it grows by 64 MB at a time
#endif
}

}  // namespace ballast
