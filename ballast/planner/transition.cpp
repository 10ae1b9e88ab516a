#include "ballast/planner/transition.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ballast/base/error.h"

namespace ballast {

namespace {

constexpr int kMostDegrees = 1000;  // beyond it the distribution no longer changes in the fourth figure

std::string seconds_text(Seconds seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g s", seconds);
  return text;
}

}  // namespace

// By Simpson's rule over the angle whose tangent is t / sqrt(degrees), where the density is a power of a cosine.
double student_t_tail(double t, int degrees) {
  degrees = std::min(degrees, kMostDegrees);
  const double from = std::atan(std::abs(t) / std::sqrt(degrees));
  const auto integral = [&](double a, double b) {
    constexpr int kPieces = 400;
    const double width = (b - a) / kPieces;
    double sum = 0;
    for (int i = 0; i <= kPieces; ++i) {
      const double weight = i == 0 || i == kPieces ? 1 : i % 2 == 1 ? 4 : 2;
      sum += weight * std::pow(std::cos(a + i * width), degrees - 1);
    }
    return sum * width / 3;
  };
  const double half_pi = std::acos(0.0);
  const double tail = 0.5 * integral(from, half_pi) / integral(0, half_pi);
  return t >= 0 ? tail : 1 - tail;
}

double student_t_quantile(double level, int degrees) {
  double low = 0;
  double high = 1;
  while (student_t_tail(high, degrees) > level) high *= 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (student_t_tail(middle, degrees) > level ? low : high) = middle;
  }
  return high;
}

TransitionAnswer decide_transition(const TransitionQuestion& question) {
  BALLAST_ASSERT(question.running.size() == question.proposed.size(), "steps are not in pairs");
  TransitionAnswer answer{.needed = kTransitionMargin * question.change_seconds, .why = {}};
  const std::size_t pairs = question.running.size();
  if (pairs < 3) {
    answer.why = "stay: " + std::to_string(pairs) + " measured steps are too few to tell a saving from noise";
    return answer;
  }
  const auto count = static_cast<double>(pairs);
  double sum = 0;
  for (std::size_t i = 0; i < pairs; ++i) sum += question.running[i] - question.proposed[i];
  const double mean = sum / count;
  double squares = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double off = question.running[i] - question.proposed[i] - mean;
    squares += off * off;
  }
  const double error = std::sqrt(squares / (count - 1) / count);
  const int degrees = static_cast<int>(pairs) - 1;
  answer.saved_a_step = mean;
  answer.p_value = error > 0 ? student_t_tail(mean / error, degrees) : mean > 0 ? 0 : 1;
  answer.sure_saved_a_step = mean - error * student_t_quantile(kTransitionLevel, degrees);
  answer.saved_in_all = std::max(0.0, answer.sure_saved_a_step) * static_cast<double>(question.steps_left);
  answer.change = answer.sure_saved_a_step > 0 && answer.saved_in_all > answer.needed;

  const std::string saving = seconds_text(answer.saved_a_step) + " a step";
  const std::string left = std::to_string(question.steps_left) + " steps left";
  if (answer.sure_saved_a_step <= 0) {
    answer.why = mean > 0
                     ? "stay: a saving of " + saving + " over " + std::to_string(pairs) + " steps is within their noise"
                     : "stay: the other plan is no faster";
    return answer;
  }
  answer.why = std::string(answer.change ? "change" : "stay") + ": at least " + seconds_text(answer.sure_saved_a_step) +
               " a step surely saved, " + seconds_text(answer.saved_in_all) + " over " + left + ", against " +
               seconds_text(answer.needed) + " that a change must be worth";
  return answer;
}

}  // namespace ballast
