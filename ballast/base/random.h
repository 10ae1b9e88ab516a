// Random numbers that are the same on every machine: the standard library fixes its engines but not its distributions,
// so the distributions here are our own. Not for cryptography.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ballast {

// splitmix64 (Steele, Lea, Flood, 2014): one 64-bit word of state, so a position in the stream is a plain number.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  // Uniform in [0, bound). REQUIRES: bound > 0. Unbiased (rejection).
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1), 53 bits.
  double uniform();
  // Standard normal (Box-Muller, one value a call).
  double normal();

  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

// Mixes words into one seed, so that (seed, epoch) or (seed, rank) give streams that do not overlap in practice.
std::uint64_t mix_seed(std::uint64_t a, std::uint64_t b);

// Fisher-Yates.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(i))]);
  }
}

}  // namespace ballast
