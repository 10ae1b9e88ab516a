// How this process takes memory from the system, and how much of it tensors hold. By default glibc gives a large tensor
// fresh pages and returns them when it is freed, so every step faults the same pages in again: up to 15% of a step, and
// uneven between sizes, which no cost model predicts. Configured, freed memory stays with the process.
#pragma once

#include "ballast/base/units.h"

namespace ballast {

// Call once, before the first tensor is made and before threads start. `ballast train` and `ballast profile` both do,
// so that what is measured is what runs. Nothing happens where the C library isn't glibc. From then on tensors in this
// process's memory are counted.
void configure_allocator();

// The most that tensors held at once since the last reset, in bytes as the allocator gave them; 0 where
// configure_allocator() was not called. Any thread.
Bytes peak_tensor_bytes();
void reset_peak_tensor_bytes();

}  // namespace ballast
