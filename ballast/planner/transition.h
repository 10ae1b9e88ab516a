// Whether a running plan is to be given up for another (requirement L9): only where what is saved over the steps left
// exceeds the cost of changing over with margin, and never on noise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

struct TransitionQuestion {
  // Of the same steps, in pairs: what the running plan took, measured, and what the other is expected to take.
  std::vector<Seconds> running;
  std::vector<Seconds> proposed;
  std::int64_t steps_left = 0;
  Seconds change_seconds = 0;  // checkpoint in the new layout, restart, warm-up
};

// A saving counts where a paired, one-sided t-test says so at this level, and it must cover the cost of the change this
// often.
inline constexpr double kTransitionLevel = 0.01;
inline constexpr double kTransitionMargin = 1.5;

struct TransitionAnswer {
  bool change = false;
  Seconds saved_a_step = 0;       // mean over the pairs
  Seconds sure_saved_a_step = 0;  // the least that the test leaves open at its level; below 0: none
  double p_value = 1;             // of a mean saving this large, were there none
  Seconds saved_in_all = 0;       // steps left x sure saving
  Seconds needed = 0;             // margin x cost
  std::string why;                // one sentence, with the figures
};

// REQUIRES: as many running as proposed.
TransitionAnswer decide_transition(const TransitionQuestion& question);

// Student's t with `degrees` degrees of freedom: the chance of a value over `t`; the value with a chance of `level`.
double student_t_tail(double t, int degrees);
double student_t_quantile(double level, int degrees);

}  // namespace ballast
