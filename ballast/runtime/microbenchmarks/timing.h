// How long a piece of work takes: the median over repeats, after one that warms caches, pages and thread pools.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

// Short work is repeated more often; work of half a second and more runs once after its warm-up.
struct RepeatRule {
  int least = 3;
  int most = 25;
  Seconds enough = 0.15;  // stop repeating, past `least`, once this much time was measured
  Seconds slow = 0.5;     // one repeat is enough for work that takes this long
};

// Work in two halves, such as forward and backward, of which the second needs the first.
struct TwoTimes {
  Seconds first = 0;
  Seconds second = 0;
};

inline Seconds median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// `first` and `second` are run by turns.
template <class First, class Second>
TwoTimes time_both(const First& first, const Second& second, const RepeatRule& rule = {}) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration elapsed) { return std::chrono::duration<double>(elapsed).count(); };
  std::vector<Seconds> first_times, second_times;
  Seconds spent = 0;
  for (int run = 0; run <= rule.most; ++run) {
    const auto begin = Clock::now();
    first();
    const auto between = Clock::now();
    second();
    const auto end = Clock::now();
    if (run == 0) continue;  // warm-up
    first_times.push_back(seconds(between - begin));
    second_times.push_back(seconds(end - between));
    spent += seconds(end - begin);
    if (seconds(end - begin) >= rule.slow || (run >= rule.least && spent >= rule.enough)) break;
  }
  return {median(std::move(first_times)), median(std::move(second_times))};
}

template <class Work>
Seconds time_one(const Work& work, const RepeatRule& rule = {}) {
  return time_both(
             work, [] {}, rule)
      .first;
}

}  // namespace ballast
