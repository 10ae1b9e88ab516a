// The least of N changing numbers, by index: a complete binary tree of winners. Reading the least takes constant time,
// a change log N. Of equal numbers the lowest index wins, so that packing is the same on every machine.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace ballast {

template <class Key>
class Tournament {
 public:
  // All numbers start at zero. REQUIRES: size > 0.
  explicit Tournament(std::size_t size)
      : leaves_(std::bit_ceil(size)), size_(size), keys_(size, Key{}), winners_(2 * leaves_) {
    for (std::size_t i = 0; i < leaves_; ++i) winners_[leaves_ + i] = i;
    for (std::size_t node = leaves_ - 1; node >= 1; --node) play(node);
  }

  std::size_t least() const { return winners_[1]; }
  const Key& operator[](std::size_t index) const { return keys_[index]; }

  void set(std::size_t index, Key key) {
    keys_[index] = key;
    for (std::size_t node = (leaves_ + index) / 2; node >= 1; node /= 2) play(node);
  }

 private:
  void play(std::size_t node) {
    const std::size_t left = winners_[2 * node];
    const std::size_t right = winners_[2 * node + 1];
    winners_[node] = right < size_ && keys_[right] < keys_[left] ? right : left;
  }

  std::size_t leaves_;  // a power of two; leaves from size_ on never win
  std::size_t size_;
  std::vector<Key> keys_;
  std::vector<std::size_t> winners_;  // [1] is the root, [leaves_ + i] is leaf i
};

}  // namespace ballast
