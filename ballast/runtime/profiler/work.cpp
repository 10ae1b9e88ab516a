#include "ballast/runtime/profiler/work.h"

namespace ballast {

Work work_of(const std::vector<Span>& spans) {
  Work sum;
  Seconds compute_ends = -1;  // of the compute span at hand
  for (const Span& span : spans) {
    const bool inside = span.begin < compute_ends;
    if (is_compute(span.kind)) {
      sum.work_seconds += span.end - span.begin;
      compute_ends = span.end;
    } else if (inside) {
      sum.work_seconds -= span.end - span.begin;
    }
    if (!is_compute(span.kind)) sum.wait_seconds += span.wait;
  }
  return sum;
}

}  // namespace ballast
