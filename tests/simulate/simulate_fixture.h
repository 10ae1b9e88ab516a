// Hand-made programs whose answers can be checked in the head: `10_ms`.
#pragma once

#include "ballast/simulate/program.h"

namespace ballast {

constexpr Seconds operator""_ms(unsigned long long milliseconds) { return static_cast<double>(milliseconds) * 1e-3; }

inline constexpr Seconds kClose = 1e-12;

inline Op gather(Seconds seconds) { return communicate({.kind = SpanKind::GATHER_KV, .axis = Axis::cp}, seconds); }
inline Op send_f(int to, Seconds seconds = 0) {
  return communicate({.kind = SpanKind::SEND_F, .stage = 0, .micro_batch = 0, .peer = to}, seconds);
}
inline Op receive_f(int from, Seconds seconds = 0) {
  return communicate({.kind = SpanKind::RECV_F, .stage = 1, .micro_batch = 0, .peer = from}, seconds);
}
inline Span forward(int stage = 0, int micro_batch = 0) {
  return {.kind = SpanKind::F, .stage = stage, .micro_batch = micro_batch};
}

inline Seconds end_of(const Timeline& timeline) {
  Seconds end = 0;
  for (const Span& span : timeline.spans) end = span.end > end ? span.end : end;
  return end;
}

}  // namespace ballast
