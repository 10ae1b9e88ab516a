#include "cli/emulated_pace.h"

#include <thread>

namespace ballast::cli {

EmulatedPace::EmulatedPace(const CostModel& cost, RankHooks& inner)
    : cost_(cost), inner_(inner), since_(Clock::now()) {}

void EmulatedPace::compute_begins() {
  inner_.compute_begins();
  since_ = Clock::now();
}

void EmulatedPace::linear_done(bool forward, Tokens tokens) {
  busy_for(cost_.layer(forward ? Pass::forward : Pass::backward, tokens));
}

void EmulatedPace::attention_done(bool forward, const std::vector<AttentionPart>& parts) {
  const Pass pass = forward ? Pass::forward : Pass::backward;
  Seconds seconds = 0;
  for (const AttentionPart& part : parts) {
    seconds += cost_.part_attention(pass, part.queries, part.keys, part.causal);
  }
  busy_for(seconds);
}

void EmulatedPace::busy_for(Seconds seconds) {
  worked_ += seconds;
  const auto until = since_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto now = Clock::now();
  if (now > until) {
    late_ += std::chrono::duration<double>(now - until).count();
    since_ = now;
    return;
  }
  std::this_thread::sleep_until(until);
  since_ = until;  // a device does not oversleep: what this thread does is made up for at the next part
}

}  // namespace ballast::cli
