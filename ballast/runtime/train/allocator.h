// How this process takes memory from the system. By default glibc gives a large tensor fresh pages and returns them
// when it is freed, so every step faults the same pages in again: up to 15% of a step, and uneven between sizes, which
// no cost model predicts. With this, freed memory stays with the process.
#pragma once

namespace ballast {

// Call once, before the first tensor is made and before threads start. `ballast train` and `ballast profile` both do,
// so that what is measured is what runs. Nothing happens where the C library isn't glibc.
void configure_allocator();

}  // namespace ballast
