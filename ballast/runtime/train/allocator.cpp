#include "ballast/runtime/train/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include <atomic>
#include <climits>

namespace ballast {

namespace {

std::atomic<Bytes> live_bytes = 0;
std::atomic<Bytes> peak_bytes = 0;

Bytes size_of(void* memory) { return static_cast<Bytes>(::malloc_usable_size(memory)); }

void release(void* memory) {
  if (memory != nullptr) live_bytes -= size_of(memory);
  c10::free_cpu(memory);
}

// libtorch's own allocation, counted.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = c10::alloc_cpu(bytes);
    if (memory != nullptr) {
      const Bytes live = live_bytes += size_of(memory);
      Bytes peak = peak_bytes;
      while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
      }
    }
    return {memory, memory, &release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void configure_allocator() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);              // large blocks come from the heap too, so that freeing keeps their pages
  mallopt(M_TRIM_THRESHOLD, INT_MAX);  // and the heap never shrinks
  mallopt(M_TOP_PAD, 64 << 20);        // it grows by 64 MB at a time
  static CountingAllocator counting;
  c10::SetCPUAllocator(&counting, 1);
#endif
}

Bytes peak_tensor_bytes() { return peak_bytes; }
void reset_peak_tensor_bytes() { peak_bytes = live_bytes.load(); }

}  // namespace ballast
